//! The administration of a running server: purges in JSON, the status, and what is refused.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;

use crate::common::admin::{Socket, ask_at, json, token_file};
use crate::common::client::Reply;
use crate::common::command::{eyewall, run};
use crate::common::origin::Origin;
use crate::common::server::Server;

const TARGETS: [&str; 4] =
    ["http://one.example/a", "http://one.example/a/b", "http://one.example:81/a", "http://two.example/a"];

fn two_sites(socket: &Socket, origin: &Origin) -> Server {
    let site = |host: &str| format!("[[site]]\nhosts = [\"{host}\"]\norigins = [\"{}\"]\n", origin.url());
    Server::configured(&format!("{}{}{}", socket.table(), site("one.example"), site("two.example")))
}

/// The targets that are still hits after this purge.
fn left(server: &Server, socket: &Socket, body: &str) -> [bool; 4] {
    for target in TARGETS {
        server.get_until(target, Reply::is_hit);
    }
    let reply = socket.purge(body);
    assert_eq!(reply.status, 200, "{body}: {reply:?}");
    TARGETS.map(|target| server.get(target).is_hit())
}

#[test]
fn each_kind_of_subject_purges_its_targets() {
    let origin = Origin::counting("Cache-Control: max-age=600\r\nXkey: all");
    let socket = Socket::new();
    let server = two_sites(&socket, &origin);
    for (body, expected) in [
        (r#"{"url": "https://one.example/a"}"#, [false, true, true, true]),
        (r#"{"url": ["http://one.example:81/a", "http://two.example/a"]}"#, [true, true, false, false]),
        (r#"{"prefix": "http://one.example/a/"}"#, [true, false, true, true]),
        (r#"{"prefix": ["http://one.example/a", "http://two.example/"]}"#, [false, false, true, false]),
        (r#"{"tag": "all", "host": "one.example"}"#, [false, false, false, true]),
        (r#"{"tag": ["none", "all"]}"#, [false; 4]),
        (r#"{"tag": "none"}"#, [true; 4]),
        (r#"{"host": "one.example"}"#, [false, false, false, true]),
        (r#"{"host": "one.example:80"}"#, [false, false, true, true]),
        (r#"{"everything": true}"#, [false; 4]),
    ] {
        assert_eq!(left(&server, &socket, body), expected, "{body}");
    }
}

#[test]
fn the_response_reports_the_result() {
    let origin = Origin::counting("Cache-Control: max-age=600");
    let socket = Socket::new();
    let server = two_sites(&socket, &origin);
    server.get_until("http://one.example/a", Reply::is_hit);
    let report = |body: &str| json(&socket.purge(body)).to_string();
    assert_eq!(
        report(r#"{"url": ["http://ONE.example:80/a", "http://two.example/b"]}"#),
        r#"{"kind":"hard","purge_overflows":0,"purged":[{"name":"http://one.example/a","result":"found","what":"url"},{"name":"http://two.example/b","result":"absent","what":"url"}]}"#
    );
    assert_eq!(
        report(r#"{"tag": "a", "host": "one.example", "soft": true}"#),
        r#"{"kind":"soft","purge_overflows":0,"purged":[{"host":"one.example","name":"a","result":"accepted","what":"tag"}]}"#
    );
    assert_eq!(
        report(r#"{"everything": true}"#),
        r#"{"kind":"hard","purge_overflows":0,"purged":[{"result":"accepted","what":"everything"}]}"#
    );
}

#[test]
fn the_status_shows_the_state_of_the_server() {
    let origin = Origin::counting("Cache-Control: max-age=600");
    let socket = Socket::new();
    let server = two_sites(&socket, &origin);
    server.get_until("http://one.example/a", Reply::is_hit);
    let status = json(&socket.ask("GET", "/status", &[], ""));
    assert_eq!(status["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(status["process"], server.child.id());
    assert!(status["uptime_seconds"].is_u64());
    assert_eq!(status["sites"][1]["hosts"], serde_json::json!(["two.example"]));
    assert_eq!(status["sites"][0]["origins"], serde_json::json!([origin.url()]));
    assert_eq!((&status["volume"]["entries"], &status["volume"]["path"]), (&1.into(), &serde_json::Value::Null));
    let head = socket.ask("HEAD", "/status", &[], "");
    assert_eq!((head.status, head.body.len()), (200, 0));
}

#[test]
fn a_wrong_request_is_refused_as_a_whole_with_a_message() {
    let origin = Origin::counting("Cache-Control: max-age=600");
    let socket = Socket::new();
    let server = two_sites(&socket, &origin);
    server.get_until("http://one.example/a", Reply::is_hit);
    let long = format!(r#"{{"url": "http://one.example/{}"}}"#, "a".repeat(1 << 20));
    for (method, target, body, status, words) in [
        ("POST", "/purge", "", 400, "not a purge request"),
        ("POST", "/purge", r#"{"page": "/a"}"#, 400, "unknown field `page`"),
        ("POST", "/purge", r#"{"url": "http://one.example/a", "host": "one.example"}"#, 400, "several kinds"),
        ("POST", "/purge", r#"{"url": ["http://one.example/a", "/b"]}"#, 400, "give a whole one"),
        ("POST", "/purge", r#"{"url": ["http://one.example/a", "http://three.example/"]}"#, 421, "three.example"),
        ("POST", "/purge", r#"{"prefix": "http://one.ex"}"#, 400, "whole host"),
        ("POST", "/purge", r#"{"prefix": "http://one.example"}"#, 400, "slash after the host"),
        ("POST", "/purge", r#"{"host": "*.example"}"#, 400, "is not a host"),
        ("POST", "/purge", r#"{"tag": ""}"#, 400, "can't be empty"),
        ("POST", "/purge", &long, 413, "larger than 1 MiB"),
        ("GET", "/purge", "", 405, "POST"),
        ("DELETE", "/status", "", 405, "GET, HEAD"),
        ("GET", "/nowhere", "", 404, "GET /status"),
    ] {
        let reply = socket.ask(method, target, &[], body);
        let told = json(&reply)["error"].as_str().unwrap().to_owned();
        assert_eq!((reply.status, told.contains(words)), (status, true), "{method} {target} {words}: {told}");
        assert_eq!(reply.field("allow").is_empty(), status != 405);
    }
    assert_eq!(socket.ask("GET", "/status", &["Origin: http://one.example"], "").status, 403, "a page in a browser");
    assert!(server.get("http://one.example/a").is_hit(), "nothing of it was purged");
}

#[test]
fn a_loopback_address_needs_the_token() {
    let origin = Origin::counting("Cache-Control: max-age=600");
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    token_file(&token, "secret\n");
    let server = Server::configured(&format!(
        "[server.admin]\nlisten = \"127.0.0.1:0\"\ntoken_file = \"{}\"\n[[site]]\norigins = [\"{}\"]\n",
        token.display(),
        origin.url()
    ));
    let address =
        server.announced.lines().find_map(|line| line.strip_prefix("admin        http://")?.strip_suffix('/'));
    let address = address.unwrap().parse().unwrap();
    let ask = |fields: &[&str]| ask_at(address, "GET", "/status", fields, "");
    for fields in [&[][..], &["Authorization: Bearer wrong"], &["Authorization: Basic secret"]] {
        let reply = ask(fields);
        assert_eq!((reply.status, reply.field("www-authenticate")), (401, "Bearer"), "{fields:?}");
    }
    assert_eq!(ask(&["Authorization: Bearer secret"]).status, 200);
    assert_eq!(ask(&["Authorization: Bearer secret", "Origin: null"]).status, 403);
    assert_eq!(ask_at(address, "GET", "/elsewhere", &[], "").status, 401, "who shows none learns nothing");
}

#[test]
fn a_file_without_a_token_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (file, token) = (folder.path().join("eyewall.toml"), folder.path().join("token"));
    token_file(&token, " \n");
    let text = format!(
        "[server]\nlisten = [\"127.0.0.1:0\"]\n[server.admin]\nlisten = \"127.0.0.1:0\"\ntoken_file = \"{}\"\n\
         [[site]]\norigins = [\"http://127.0.0.1:1\"]\n",
        token.display()
    );
    std::fs::write(&file, text).unwrap();
    let ended = run(eyewall().args(["serve", "--config"]).arg(&file), b"");
    assert_eq!((ended.code, ended.text()), (3, ""));
    assert!(ended.stderr.contains("holds no token"), "{}", ended.stderr);
    assert!(!ended.stderr.contains("warning"), "nobody else may read it: {}", ended.stderr);
    std::fs::set_permissions(&token, Permissions::from_mode(0o644)).unwrap();
    let ended = run(eyewall().args(["serve", "--config"]).arg(&file), b"");
    assert!(ended.stderr.contains("every user of this machine can read the token"), "{}", ended.stderr);
}
