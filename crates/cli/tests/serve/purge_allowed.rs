//! PURGE is closed until the operator allows it, by a token or by networks. The address of an untrusted proxy doesn't count as the client's.

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::common::admin::{Socket, json, token_file};
use crate::common::client::Reply;
use crate::common::command::{Volume, eyewall, run};
use crate::common::origin::Origin;
use crate::common::server::Server;

const SHOWN: &str = "Authorization: Bearer secret";

/// An origin, and a server before it that has stored its page.
fn serving(settings: &str) -> (Origin, Server) {
    let origin = Origin::counting("Cache-Control: max-age=600");
    // An empty list keeps the helper from adding its own.
    let text = if settings.contains("purge_from") { "" } else { "purge_from = []\n" };
    let server =
        Server::configured(&format!("[server]\n{text}{settings}\n[[site]]\norigins = [\"{}\"]\n", origin.url()));
    server.get_until("/", Reply::is_hit);
    (origin, server)
}

fn token() -> (TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    token_file(&path, "secret\n");
    let setting = format!("purge_token_file = \"{}\"", path.display());
    (folder, setting)
}

#[track_caller]
fn assert_refused(server: &Server, fields: &[&str], words: &str) {
    let reply = server.ask("PURGE", "/", fields);
    assert_eq!((reply.status, reply.text().contains(words)), (403, true), "{fields:?}: {reply:?}");
    assert!(server.get("/").is_hit(), "{fields:?}: it was purged");
}

#[track_caller]
fn assert_purged(server: &Server, fields: &[&str]) {
    server.get_until("/", Reply::is_hit);
    let reply = server.ask("PURGE", "/", fields);
    assert_eq!((reply.status, json(&reply)["purged"][0]["result"].as_str()), (200, Some("found")), "{fields:?}");
    assert!(!server.get("/").is_hit(), "{fields:?}");
}

#[test]
fn it_is_closed_by_default_even_for_this_machine() {
    let (origin, server) = serving("");
    for fields in [&[][..], &[SHOWN], &["Xkey: a"], &["X-Purge-Method: regex"]] {
        for words in ["purge_token_file", "purge_from", "eyewall purge --server"] {
            assert_refused(&server, fields, words);
        }
    }
    assert!(origin.asked().iter().all(|asked| asked.method == "GET"), "it is not for the origin");
    let volume = Volume::absent();
    let by_flags = Server::spawn(&mut volume.command(["serve", "--listen", "127.0.0.1:0", "--origin", &origin.url()]));
    by_flags.get_until("/", Reply::is_hit);
    assert_refused(&by_flags, &[], "--purge-token-file, --purge-from");
}

#[test]
fn the_socket_stays_open_for_its_own_user() {
    let socket = Socket::new();
    let (_origin, server) = serving(&socket.table());
    assert_refused(&server, &[], "PURGE is closed");
    assert_eq!(socket.purge(r#"{"url": "http://test/"}"#).status, 200);
    assert!(!server.get("/").is_hit());
}

#[test]
fn a_client_with_the_token_may_purge_from_anywhere() {
    let (_folder, setting) = token();
    let (origin, server) = serving(&setting);
    for fields in
        [&[SHOWN][..], &["authorization: bearer secret"], &[SHOWN, "Via: 1.1 proxy", "X-Forwarded-For: 192.0.2.7"]]
    {
        assert_purged(&server, fields);
    }
    server.get_until("/", Reply::is_hit);
    for fields in [
        &[][..],
        &["Authorization: Bearer secre"],
        &["Authorization: Bearer secret2"],
        &["Authorization: Basic secret"],
        &[SHOWN, SHOWN],
        &["X-Purge-Token: secret"],
    ] {
        let reply = server.ask("PURGE", "/", fields);
        assert_eq!((reply.status, reply.field("www-authenticate")), (401, "Bearer"), "{fields:?}");
        assert!(reply.text().contains("purge_token_file"), "{}", reply.text());
        assert!(server.get("/").is_hit(), "{fields:?}");
    }
    assert!(origin.asked().iter().all(|asked| asked.method == "GET" && asked.field("authorization").is_empty()));
}

#[test]
fn the_token_is_neither_sent_to_the_origin_nor_logged() {
    let (folder, setting) = token();
    let log = folder.path().join("access.log");
    let more = format!("{setting}\naccess_log = {{ path = \"{}\", format = \"json\" }}", log.display());
    let (origin, mut server) = serving(&more);
    assert_purged(&server, &[SHOWN]);
    for method in ["GET", "POST", "DELETE"] {
        server.ask(method, "/shown-by-mistake", &[SHOWN, "Content-Length: 0"]);
    }
    server.ask("GET", "/other", &["Authorization: Bearer of-the-application"]);
    let asked = origin.asked();
    let shown: Vec<&str> =
        asked.iter().map(|asked| asked.field("authorization")).filter(|value| !value.is_empty()).collect();
    assert_eq!(shown, ["Bearer of-the-application"], "what is not the token goes on");
    kill_process(Pid::from_child(&server.child), Signal::TERM).unwrap();
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
    let lines = std::fs::read_to_string(&log).unwrap();
    assert!(lines.contains("PURGE") && !lines.contains("secret"), "{lines}");
}

#[test]
fn flags_allow_it_too() {
    let (folder, _) = token();
    let origin = Origin::counting("Cache-Control: max-age=600");
    let volume = Volume::absent();
    let file = folder.path().join("token").display().to_string();
    let words = ["serve", "--listen", "127.0.0.1:0", "--origin", &origin.url(), "--purge-token-file", &file];
    let server = Server::spawn(&mut volume.command(words));
    assert_purged(&server, &[SHOWN]);
    assert_eq!(server.ask("PURGE", "/", &[]).status, 401);
    assert_purged(&Server::over_origin(&origin.url()), &[]);
}

#[test]
fn a_client_behind_a_proxy_on_this_machine_is_not_this_machine() {
    let (_origin, server) = serving("purge_from = [\"127.0.0.0/8\", \"::1\"]");
    assert_purged(&server, &[]);
    server.get_until("/", Reply::is_hit);
    for field in [
        "Forwarded: for=127.0.0.1",
        "X-Forwarded-For: 127.0.0.1",
        "X-Forwarded-For: ",
        "Via: 1.1 proxy",
        "X-Real-IP: 127.0.0.1",
    ] {
        assert_refused(&server, &[field], "trusted_proxies");
    }
}

#[test]
fn the_client_of_a_trusted_proxy_counts() {
    let (_origin, server) =
        serving("trusted_proxies = [\"127.0.0.1\"]\npurge_from = [\"127.0.0.1\", \"192.0.2.0/24\"]");
    assert_purged(&server, &["X-Forwarded-For: 192.0.2.7", "Via: 1.1 proxy"]);
    assert_purged(&server, &[]);
    server.get_until("/", Reply::is_hit);
    assert_refused(&server, &["X-Forwarded-For: 192.0.2.7, 203.0.113.9"], "from this address");
    for fields in [&["Via: 1.1 proxy"][..], &["Forwarded: for=127.0.0.1"], &["X-Forwarded-For: unknown"]] {
        assert_refused(&server, fields, "X-Forwarded-For");
    }
}

#[test]
fn an_unreadable_token_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token").display().to_string();
    let start =
        || run(eyewall().args(["serve", "--listen", "127.0.0.1:0", "--root", "/", "--purge-token-file", &file]), b"");
    let ended = start();
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("the token of PURGE") && ended.stderr.contains("can't be read"), "{}", ended.stderr);
    token_file(file.as_ref(), "two words\n");
    let ended = start();
    assert_eq!(ended.code, 3);
    assert!(ended.stderr.contains("holds no token"), "{}", ended.stderr);
}

#[test]
fn check_shows_who_may_purge() {
    let (folder, setting) = token();
    let file = folder.path().join("eyewall.toml");
    for (setting, told) in [
        ("", "PURGE      closed\n"),
        ("purge_from = [\"192.0.2.7\"]", "PURGE      from 192.0.2.7\n"),
        (setting.as_str(), "PURGE      with a token\n"),
        (&format!("{setting}\npurge_from = [\"10.0.0.0/8\"]"), "PURGE      from 10.0.0.0/8, or with a token\n"),
    ] {
        std::fs::write(&file, format!("[server]\n{setting}\n[[site]]\norigins = [\"http://127.0.0.1:1\"]\n")).unwrap();
        let ended = run(eyewall().arg("check").arg(&file), b"");
        assert!(ended.code == 0 && ended.text().contains(told), "{}{}", ended.text(), ended.stderr);
    }
}
