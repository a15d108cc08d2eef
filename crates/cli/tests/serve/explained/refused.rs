//! Some clients get no connection on which they could send a request, and an explanation says that.

use serde_json::{Value, json};

use crate::common::admin::{Socket, json as json_of};
use crate::common::authority::Authority;
use crate::common::command::{eyewall, run};
use crate::common::origin::Origin;
use crate::common::server::Site;

/// A site with a certificate, and one without.
fn sites(authority: &Authority, origin: &Origin) -> String {
    let plain = format!("[[site]]\nhosts = [\"plain.example\"]\norigins = [\"{}\"]\n", origin.url());
    authority.site("one.example", &origin.url(), "") + &plain
}

fn explained(socket: &Socket, url: &str, from: Option<&str>) -> Value {
    let question = match from {
        Some(from) => json!({ "url": url, "from": from }),
        None => json!({ "url": url }),
    };
    json_of(&socket.ask("POST", "/explain", &[], &question.to_string()))
}

#[test]
fn without_a_certificate_for_the_host_the_handshake_fails() {
    let (authority, origin, socket) = (Authority::new(), Origin::counting("Cache-Control: max-age=600"), Socket::new());
    let https = authority.serve(&sites(&authority, &origin), &socket.table());
    for host in ["plain.example", "unknown.example"] {
        let explanation = explained(&socket, &format!("https://{host}/"), None);
        assert!(authority.connect(https.address, host).is_err(), "{host}");
        assert_eq!((&explanation["verdict"], explanation.get("status")), (&json!("error"), None), "{explanation}");
        let words = explanation["because"].as_str().unwrap();
        assert!(words.contains(&format!("no certificate for {host}")) && words.contains("TLS handshake"), "{words}");
    }
    assert_eq!(explained(&socket, "https://one.example/", None)["verdict"], "miss");
    assert!(authority.get(https.address, "one.example", "/").cache().contains("fwd=uri-miss"));
    assert_eq!(explained(&socket, "https://one.example/", None)["verdict"], "hit");
    assert_eq!(explained(&socket, "http://plain.example/", None)["verdict"], "miss");
}

#[test]
fn a_client_that_may_not_connect_gets_no_response() {
    let (authority, origin, socket) = (Authority::new(), Origin::counting("Cache-Control: max-age=600"), Socket::new());
    let rest = format!("limits = {{ deny = [\"192.0.2.0/24\"] }}\n{}", socket.table());
    let _https = authority.serve(&sites(&authority, &origin), &rest);
    let explanation = explained(&socket, "http://plain.example/", Some("192.0.2.7"));
    assert!(explanation["because"].as_str().unwrap().contains("the connection is closed"), "{explanation}");
    assert!(explanation.get("status").is_none() && explanation["verdict"] == "error", "{explanation}");
    assert_eq!(explained(&socket, "http://plain.example/", Some("198.51.100.7"))["verdict"], "miss");
}

#[test]
fn the_configuration_of_a_server_that_does_not_run_says_the_same() {
    let (authority, origin, folder) = (Authority::new(), Origin::counting("Cache-Control: max-age=600"), Site::new());
    let volume = folder.path().join("volume.eye");
    let created = run(eyewall().args(["create", "--size", "8M", "--cache"]).arg(&volume), b"");
    assert_eq!(created.code, 0, "{}", created.stderr);
    let text = format!("[cache]\npath = \"{}\"\n{}", volume.display(), sites(&authority, &origin));
    folder.write("site.toml", text);
    for (url, expected) in [
        ("https://plain.example/", "no certificate for plain.example"),
        ("https://one.example/", "nothing is stored under this key"),
        ("http://plain.example/", "nothing is stored under this key"),
    ] {
        let ended = run(eyewall().args(["explain", url, "--config"]).arg(folder.path().join("site.toml")), b"");
        assert!(ended.code == 0 && ended.text().contains(expected), "{url}: {} {}", ended.text(), ended.stderr);
    }
}
