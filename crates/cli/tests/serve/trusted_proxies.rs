//! A proxy in front of the server ends TLS, or balances load. Eyewall believes its fields about the client if it is configured as trusted.

use rustix::process::{Pid, Signal, kill_process};

use crate::common::client::Reply;
use crate::common::command::{eyewall, run};
use crate::common::origin::{Asked, Origin};
use crate::common::server::Server;

/// The address of the tests is that of the proxy.
const TRUSTED: &str = "trusted_proxies = [\"127.0.0.1\", \"10.0.0.0/8\"]";
/// A field that forces the full path, and has no other effect.
const FULL_PATH: &str = "TE: trailers";

/// Redirects clients of `http`, as applications behind TLS do.
fn insists_on_tls(asked: &Asked) -> (u16, String, Vec<u8>) {
    match asked.field("x-forwarded-proto") {
        "https" => (200, "Cache-Control: max-age=60".to_owned(), b"page".to_vec()),
        _ => (301, "Cache-Control: max-age=60\r\nLocation: https://shop.example/".to_owned(), Vec::new()),
    }
}

fn behind_a_proxy(origin: &Origin, server: &str, site: &str) -> Server {
    Server::configured(&format!("[server]\n{server}\n[[site]]\norigins = [\"{}\"]\n{site}", origin.url()))
}

#[test]
fn its_fields_go_on_to_the_origin_with_its_own_address_added() {
    let origin = Origin::counting("Cache-Control: no-store");
    let server = behind_a_proxy(&origin, TRUSTED, "");
    let said = [
        "X-Forwarded-For: 203.0.113.9, 192.0.2.7",
        "X-Forwarded-For: 10.1.1.1",
        "X-Forwarded-Proto: https",
        "X-Forwarded-Host: evil.example, shop.example",
        "Forwarded: for=evil",
        "X-Real-IP: 203.0.113.9",
    ];
    for method in ["GET", "POST"] {
        server.ask(method, "/a", &said);
        let asked = origin.asked().pop().unwrap();
        for (name, expected) in [
            ("host", "shop.example"),
            ("x-forwarded-for", "203.0.113.9, 192.0.2.7, 10.1.1.1, 127.0.0.1"),
            ("x-forwarded-proto", "https"),
            ("x-forwarded-host", "shop.example"),
            ("forwarded", "for=192.0.2.7;proto=https;host=\"shop.example\", for=127.0.0.1"),
            ("x-real-ip", ""),
        ] {
            assert_eq!(asked.field(name), expected, "{method} {name}");
            assert!(asked.fields.iter().filter(|(field, _)| field == name).count() <= 1, "{method} {name}");
        }
    }
    server.get("/b");
    let asked = origin.asked().pop().unwrap();
    assert_eq!((asked.field("x-forwarded-for"), asked.field("x-forwarded-proto")), ("127.0.0.1", "http"));
}

#[test]
fn only_trusted_proxies_may_send_the_client_addresses_of_delivery_networks() {
    let said =
        ["CF-Connecting-IP: 192.0.2.7", "True-Client-IP: 192.0.2.7", "Client-IP: 192.0.2.7", "Proxy: http://evil"];
    for (settings, expected) in [("", ""), (TRUSTED, "192.0.2.7")] {
        let origin = Origin::counting("Cache-Control: no-store");
        let server = behind_a_proxy(&origin, settings, "");
        for method in ["GET", "POST"] {
            server.ask(method, "/", &said);
            let asked = origin.asked().pop().unwrap();
            for name in ["cf-connecting-ip", "true-client-ip", "client-ip"] {
                assert_eq!(asked.field(name), expected, "{method} {name} {settings}");
            }
            assert_eq!(asked.field("proxy"), "", "nobody may say it");
        }
    }
}

#[test]
fn a_rule_on_fields_of_a_trusted_proxy_applies_on_both_paths() {
    let origin = Origin::counting("Cache-Control: max-age=600");
    let rule = "[[site.rule]]\nheader = { cf-connecting-ip = \"10.*\" }\nbypass = true\n";
    let server = behind_a_proxy(&origin, TRUSTED, rule);
    server.get_until("/a", Reply::is_hit);
    for extra in [&[][..], &[FULL_PATH]] {
        let reply = server.ask("GET", "/a", &[&["CF-Connecting-IP: 10.1.1.1"], extra].concat());
        assert!(!reply.is_hit(), "{extra:?}: {}", reply.cache());
        assert!(server.ask("GET", "/a", &[&["CF-Connecting-IP: 192.0.2.1"], extra].concat()).is_hit(), "{extra:?}");
    }
}

#[test]
fn an_untrusted_proxy_is_not_believed() {
    let origin = Origin::counting("Cache-Control: no-store");
    let server = behind_a_proxy(&origin, "trusted_proxies = [\"192.0.2.0/24\"]", "");
    let lies = ["X-Forwarded-For: 192.0.2.7", "X-Forwarded-Proto: https", "X-Forwarded-Host: evil.example"];
    server.ask("GET", "/", &lies);
    let asked = origin.asked().remove(0);
    assert_eq!((asked.field("host"), asked.field("x-forwarded-host")), ("test", "test"));
    assert_eq!((asked.field("x-forwarded-for"), asked.field("x-forwarded-proto")), ("127.0.0.1", "http"));
}

#[test]
fn responses_for_tls_clients_are_stored_apart_on_both_paths() {
    let origin = Origin::answering(insists_on_tls);
    let server = behind_a_proxy(&origin, TRUSTED, "");
    let by_tls = ["X-Forwarded-Host: shop.example", "X-Forwarded-Proto: https", "X-Forwarded-For: 192.0.2.7"];
    let in_clear = ["X-Forwarded-Host: shop.example", "X-Forwarded-For: 192.0.2.7"];
    let other_host = ["X-Forwarded-Host: other.example", "X-Forwarded-Proto: https"];
    for (number, (fields, status)) in [(&by_tls[..], 200), (&in_clear, 301), (&other_host, 200)].into_iter().enumerate()
    {
        for (asked_before, extra) in [(false, &[][..]), (true, &[]), (true, &[FULL_PATH])] {
            let reply = server.ask("GET", "/", &[fields, extra].concat());
            // Another thread stores it a little later; until then the request joins the one before.
            let is_shared = reply.is_hit() || reply.cache().contains("collapsed");
            assert_eq!((reply.status, is_shared), (status, asked_before), "{fields:?}, {}", reply.cache());
        }
        assert_eq!(origin.asked().len(), number + 1);
    }
}

#[test]
fn the_site_is_that_of_the_host_that_it_names() {
    let (shop, rest) = (Origin::counting("Cache-Control: max-age=60"), Origin::counting("Cache-Control: max-age=60"));
    let server = Server::configured(&format!(
        "[server]\n{TRUSTED}\n[[site]]\nhosts = [\"shop.example\"]\norigins = [\"{}\"]\n[[site]]\norigins = [\"{}\"]\n",
        shop.url(),
        rest.url()
    ));
    for extra in [&[][..], &[FULL_PATH]] {
        server.ask("GET", "/", &[&["X-Forwarded-Host: shop.example"], extra].concat());
        let malformed = server.ask("GET", "/", &[&["X-Forwarded-Host: a b"], extra].concat());
        assert_eq!((malformed.status, malformed.text().contains("host")), (400, true));
    }
    server.get("http://shop.example/");
    server.get("/");
    assert_eq!((shop.asked().len(), rest.asked().len()), (1, 1));
}

#[test]
fn a_purge_counts_as_the_clients_and_covers_both_schemes() {
    let origin = Origin::answering(insists_on_tls);
    let server = behind_a_proxy(&origin, TRUSTED, "");
    let by_tls = ["X-Forwarded-Proto: https"];
    let fill = || {
        for fields in [&by_tls[..], &[]] {
            // Another thread stores it a little later.
            while !server.ask("GET", "/", fields).is_hit() {}
        }
    };
    fill();
    let refused = server.ask("PURGE", "/", &["X-Forwarded-For: 127.0.0.1, 192.0.2.7"]);
    assert_eq!((refused.status, server.get("/").is_hit()), (403, true));
    // The real client is unknown, and in any case not the proxy.
    for chain in ["203.0.113.9, unknown", "203.0.113.9, unix:", "fe80::1%eth0", "203.0.113.9,"] {
        let chain = format!("X-Forwarded-For: {chain}");
        assert_eq!(server.ask("PURGE", "/", &[&chain]).status, 403, "{chain}");
    }
    assert!(server.get("/").is_hit());
    for (target, fields) in [("/", &by_tls[..]), ("/", &[]), ("/.*", &[]), ("https://test/", &[])] {
        fill();
        assert_eq!(server.ask("PURGE", target, fields).status, 200);
        assert!(!server.ask("GET", "/", &by_tls).is_hit() && !server.get("/").is_hit(), "{target} {fields:?}");
    }
}

#[test]
fn a_change_by_tls_invalidates_responses_for_tls_clients() {
    let origin = Origin::counting("Cache-Control: max-age=60");
    let server = behind_a_proxy(&origin, TRUSTED, "");
    let by_tls = ["X-Forwarded-Proto: https"];
    server.ask("GET", "/", &by_tls);
    assert!(server.ask("GET", "/", &by_tls).is_hit());
    server.ask("POST", "/", &["X-Forwarded-Proto: https", "Content-Length: 0"]);
    assert!(!server.ask("GET", "/", &by_tls).is_hit());
}

#[test]
fn the_log_has_the_address_of_the_real_client() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("access.log");
    let origin = Origin::counting("Cache-Control: max-age=60");
    let path = format!("{TRUSTED}\naccess_log = {{ path = \"{}\", format = \"json\" }}", log.display());
    let mut server = behind_a_proxy(&origin, &path, "");
    for extra in [&[][..], &[], &[FULL_PATH]] {
        let said = ["X-Forwarded-For: 203.0.113.9, 192.0.2.7", "X-Forwarded-Host: shop.example"];
        server.ask("GET", "/", &[&said, extra].concat());
    }
    kill_process(Pid::from_child(&server.child), Signal::TERM).unwrap();
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
    let lines = std::fs::read_to_string(&log).unwrap();
    assert_eq!(lines.lines().count(), 3);
    for line in lines.lines() {
        let object: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(
            (object["client"].as_str(), object["host"].as_str()),
            (Some("192.0.2.7"), Some("shop.example")),
            "{line}"
        );
    }
}

#[test]
fn check_shows_trusted_proxies_and_reports_wrong_networks() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("eyewall.toml");
    let check = |networks: &str| {
        let site = "[[site]]\norigins = [\"http://127.0.0.1:1\"]\n";
        std::fs::write(&file, format!("[server]\ntrusted_proxies = [{networks}]\n{site}")).unwrap();
        let ended = run(eyewall().arg("check").arg(&file), b"");
        (ended.code, format!("{}{}", ended.text(), ended.stderr))
    };
    let (code, text) = check("\"127.0.0.1\", \"10.0.0.0/8\"");
    assert!(code == 0 && text.contains("127.0.0.1, 10.0.0.0/8 are trusted"), "{text}");
    let (code, text) = check("\"localhost\"");
    assert!(code == 2 && text.contains("`localhost` is not a network"), "{text}");
}

#[test]
fn rules_see_the_host_that_it_names_on_both_paths() {
    let origin = Origin::counting("Cache-Control: max-age=60");
    let site = "hosts = [\"shop.example\"]\naliases = [\"www.shop.example\"]\n\
                [[site.rule]]\nheader = { Host = \"www.shop.example\" }\nbypass = true\n";
    let server = behind_a_proxy(&origin, TRUSTED, site);
    let plain = ["X-Forwarded-Host: shop.example"];
    server.ask("GET", "/", &plain);
    assert!(server.ask("GET", "/", &plain).is_hit());
    for extra in [&[][..], &[FULL_PATH]] {
        let named = [&["X-Forwarded-Host: www.shop.example"], extra].concat();
        let reply = server.ask("GET", "/", &named);
        assert!(reply.cache().contains("fwd=bypass"), "{named:?}: {}", reply.cache());
    }
}

#[test]
fn its_fields_do_not_make_a_malformed_request_valid() {
    let origin = Origin::counting("Cache-Control: max-age=60");
    let server = behind_a_proxy(&origin, TRUSTED, "");
    let named = "X-Forwarded-Host: test";
    assert_eq!(server.ask("GET", "/", &["Host: other", named]).status, 400);
    assert_eq!(server.ask("GET", "evil.example", &[named]).status, 400);
    assert!(origin.asked().is_empty());
}
