//! An operator checks a configuration: `check` shows its effect, or all its mistakes at once.

use std::path::Path;

use crate::command::{eyewall, run};
use crate::expected::expect;

const EXAMPLE: &str = include_str!("../../../../docs/examples/eyewall.toml");

/// The example of the documentation, with its folders below this one.
fn example(folder: &Path) -> String {
    for name in ["var/log/eyewall", "run/eyewall", "var/cache/eyewall", "srv/www"] {
        std::fs::create_dir_all(folder.join(name)).unwrap();
    }
    // The test runs in that folder.
    ["/var/", "/run/", "/srv/"].iter().fold(EXAMPLE.to_owned(), |text, path| {
        text.replace(&format!("\"{path}"), &format!("\"{}", path.trim_start_matches('/')))
    })
}

#[test]
fn the_documented_example_is_sound() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("eyewall.toml"), example(folder.path())).unwrap();
    let ended = run(eyewall().args(["check", "eyewall.toml"]).current_dir(&folder), b"");
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    expect("check.txt", ended.text());
}

#[test]
fn missing_folders_get_a_hint_about_systemd() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("eyewall.toml");
    std::fs::write(&file, EXAMPLE.replace("\"/", "\"absent/")).unwrap();
    let ended = run(eyewall().arg("check").arg(&file).current_dir(&folder), b"");
    assert_eq!(
        ended.stderr.matches("systemd creates the folders of a unit when it starts the unit").count(),
        3,
        "{}",
        ended.stderr
    );
}

#[test]
fn the_mode_of_the_sandbox_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("eyewall.toml");
    for (mode, shown) in
        [("on", "as much of Landlock and seccomp as the kernel supports"), ("strict", "or the server doesn't start")]
    {
        let site = "[[site]]\norigins = [\"http://127.0.0.1:3000\"]\n";
        std::fs::write(&file, format!("[server]\nsandbox = \"{mode}\"\n{site}")).unwrap();
        let ended = run(eyewall().arg("check").arg(&file), b"");
        assert!(ended.code == 0 && ended.text().contains(shown), "{}", ended.text());
    }
}

#[test]
fn limits_languages_and_error_pages_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("eyewall.toml");
    let text = "[server.limits]\nmemory = \"1G\"\nconnections = 2000\nconnections_per_listener = 1\nconnections_per_client = 100\n\
                requests_per_second = 50\nrequest_burst = 200\ndeny = [\"192.0.2.0/24\"]\n\
                [[site]]\norigins = [\"http://127.0.0.1:3000\"]\naccept_language = [\"en\", \"de\"]\n\
                error_page = { 404 = \"/404.html\", 5xx = \"/5xx.html\" }\nintercept_errors = true\n\
                [site.limits]\nrequests_per_second = 20\ntotal_requests_per_second = 2000\ntotal_request_burst = 5000\n\
                allow = [\"10.0.0.0/8\"]\norigin_requests = 64\n";
    std::fs::write(&file, text).unwrap();
    let ended = run(eyewall().arg("check").arg(&file), b"");
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    for line in [
        "  clients    1 GiB of memory; 2,000 connections; 1 connection at each address; 100 connections for each client; \
         50 requests a second from each client, 200 at once; no clients from 192.0.2.0/24\n",
        "  languages  en, de\n",
        "  clients    20 requests a second from each client, 20 at once; 2,000 requests a second from all clients together, \
         5,000 at once; only clients from 10.0.0.0/8; 64 requests to the origins at once\n",
        "  errors     404 /404.html, 5xx /5xx.html; also for errors that the origin sends\n",
    ] {
        assert!(ended.text().contains(line), "{line} in {}", ended.text());
    }
}

#[test]
fn four_lines_make_a_site_with_https() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("eyewall.toml");
    let lines = "[[site]]\nhosts = [\"example.org\"]\norigins = [\"http://127.0.0.1:3000\"]\ntls = \"auto\"\n";
    let check = |more: &str| {
        std::fs::write(&file, [lines, more].concat()).unwrap();
        run(eyewall().arg("check").arg(&file), b"")
    };
    let ended = check("redirect_to_https = true\nhsts = \"365d\"\n");
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    for line in [
        "  listen     http://0.0.0.0:80, http://[::]:80, https://0.0.0.0:443, https://[::]:443\n",
        "  TLS        1.2 or newer; state in /var/lib/eyewall\n",
        "  https      certificates by ACME; requests over HTTP are redirected; HSTS for 365d\n",
    ] {
        assert!(ended.text().contains(line), "{line} in {}", ended.text());
    }
    let ended = check("[server]\nlisten = [\"127.0.0.1:80\"]\n");
    assert!(
        ended.code == 2 && ended.stderr.contains("`tls` has no effect: no address speaks HTTPS"),
        "{}",
        ended.stderr
    );
}

#[test]
fn programs_get_the_configuration_with_its_defaults() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("eyewall.toml");
    std::fs::write(&file, "[[site]]\norigins = [\"http://127.0.0.1:3000\"]\npreset = \"blog\"\n").unwrap();
    let ended = run(eyewall().args(["check", "--json"]).arg(&file), b"");
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    let report: serde_json::Value = serde_json::from_str(ended.text()).unwrap();
    assert_eq!(report["problems"], serde_json::json!([]));
    assert_eq!(report["config"]["server"]["limits"]["head_timeout"], "30s");
    assert_eq!(report["config"]["site"][0]["origins"][0], "http://127.0.0.1:3000");
    assert_eq!(report["config"]["site"][0]["rule"][0]["default_ttl"], "1m", "that of the preset");
}

#[test]
fn a_warning_is_no_mistake() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("eyewall.toml");
    let rule =
        "[[site.rule]]\nheader = { User-Agent = \"*Mobile*\" }\nset_request_headers = { X-Device = \"phone\" }\n";
    std::fs::write(&file, format!("[[site]]\norigins = [\"http://127.0.0.1:3000\"]\n{rule}")).unwrap();
    let ended = run(eyewall().arg("check").arg(&file), b"");
    let words = "\nwarning: line 4, column 10: this rule changes requests by the field `user-agent`";
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(ended.text().contains(words) && ended.text().contains("  hint: add it"), "{}", ended.text());
    let ended = run(eyewall().args(["check", "--json"]).arg(&file), b"");
    let report: serde_json::Value = serde_json::from_str(ended.text()).unwrap();
    assert_eq!((ended.code, &report["warnings"][0]["line"]), (0, &serde_json::json!(4)));
}

const WRONG: &str = r#"[server]
lisen = ["127.0.0.1:80"]
limits = { head_timeout = "30", header_count = 5 }

[cache]
size = "64Q"

[[site]]
hosts = ["example.org"]
origins = ["https://app.example.org/?shop"]

[[site]]
hosts = ["www.example.org", "example.org"]
origins = ["http://127.0.0.1:3000"]

[[site.rule]]
extension = [".css"]
default_ttl = "1h"

[[site.rule]]
status = [404]
bypass = true

[[site]]
hosts = ["files.example.org"]
root = "no/such/folder"
"#;

#[test]
fn all_mistakes_are_reported_at_once() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("wrong.toml"), WRONG).unwrap();
    let ended = run(eyewall().args(["check", "wrong.toml"]).current_dir(&folder), b"");
    assert_eq!((ended.code, ended.text()), (2, ""));
    expect("check-wrong.txt", &ended.stderr);
}

#[test]
fn programs_get_the_places_of_mistakes() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("wrong.toml");
    std::fs::write(&file, WRONG).unwrap();
    let ended = run(eyewall().args(["check", "--json"]).arg(&file), b"");
    assert_eq!(ended.code, 2);
    let report: serde_json::Value = serde_json::from_str(ended.text()).unwrap();
    assert_eq!(report["config"], serde_json::Value::Null);
    let first = &report["problems"][0];
    assert_eq!((&first["line"], &first["column"]), (&serde_json::json!(2), &serde_json::json!(1)));
    assert_eq!(first["hint"], "did you mean `listen`?");
}

#[test]
fn a_missing_file_is_reported_with_its_name() {
    let ended = run(eyewall().args(["check", "/no/such/file.toml"]), b"");
    assert_eq!((ended.code, ended.text()), (2, ""));
    assert!(ended.stderr.contains("/no/such/file.toml") && ended.stderr.contains("can't be read"), "{}", ended.stderr);
}
