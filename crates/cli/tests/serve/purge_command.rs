//! `eyewall purge --server` asks a running server to purge.

use std::ffi::OsString;

use crate::common::admin::{Socket, token_file};
use crate::common::client::Reply;
use crate::common::command::{Ended, Volume, eyewall, run};
use crate::common::origin::Origin;
use crate::common::server::Server;

fn purge(server: impl Into<OsString>, words: &[&str]) -> Ended {
    run(eyewall().args(["purge", "--server"]).arg(server.into()).args(words), b"")
}

#[test]
fn each_kind_is_purged() {
    let origin = Origin::counting("Cache-Control: max-age=600\r\nETag: \"1\"\r\nXkey: post-7");
    let socket = Socket::new();
    let server = Server::configured(&format!("{}[[site]]\norigins = [\"{}\"]\n", socket.table(), origin.url()));
    for words in [
        &["--url", "http://test/a", "--url", "http://test/b"][..],
        &["--tag", "post-7"],
        &["--tag", "post-7", "--host", "test"],
        &["--prefix", "http://test/", "--tag", "other"],
        &["--host", "test"],
        &["--all"],
    ] {
        for soft in [&[][..], &["--soft"]] {
            server.get_until("/a", Reply::is_hit);
            let words = [words, soft].concat();
            let ended = purge(socket.path(), &words);
            assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{words:?}");
            let done = if soft.is_empty() { "purged" } else { "made stale" };
            assert!(ended.text().contains(done), "{words:?}: {}", ended.text());
            let why = if soft.is_empty() { "fwd=uri-miss" } else { "fwd=stale" };
            let reply = server.get("/a");
            assert!(reply.cache().contains(why), "{words:?}: {reply:?}");
        }
    }
}

#[test]
fn people_get_a_line_for_each_target() {
    let origin = Origin::counting("Cache-Control: max-age=600\r\nXkey: shop");
    let socket = Socket::new();
    let server = Server::configured(&format!("{}[[site]]\norigins = [\"{}\"]\n", socket.table(), origin.url()));
    server.get_until("/a", Reply::is_hit);
    let words = ["--url", "http://test/a", "--url", "http://test/b", "--tag", "home"];
    let ended = purge(socket.path(), &words);
    let expected = "http://test/a: 1 entry purged\nhttp://test/b: no stored entry matches\n\
                    tag home: no stored entry matches\n";
    assert_eq!((ended.code, ended.text()), (0, expected), "{}", ended.stderr);
    for path in ["/a", "/b/c", "/b/d"] {
        server.get_until(path, Reply::is_hit);
    }
    let ended = purge(socket.path(), &["--tag", "shop", "--host", "test"]);
    assert_eq!(ended.text(), "tag shop of test: 3 entries purged\n");
    for path in ["/a", "/b/c", "/b/d"] {
        server.get_until(path, Reply::is_hit);
    }
    let ended = purge(socket.path(), &["--prefix", "http://test/b/", "--soft"]);
    assert_eq!(ended.text(), "prefix http://test/b/: 2 entries made stale\n");
    assert_eq!(purge(socket.path(), &["--host", "other"]).text(), "host other: no stored entry matches\n");
    assert_eq!(purge(socket.path(), &["--all"]).text(), "everything: 3 entries purged\n");
}

#[test]
fn programs_get_one_json_object() {
    let origin = Origin::counting("");
    let socket = Socket::new();
    let _server = Server::configured(&format!("{}[[site]]\norigins = [\"{}\"]\n", socket.table(), origin.url()));
    // The server uses its own volume; `--cache` is ignored.
    let volume = Volume::absent();
    let mut command = volume.command(["purge", "--json", "--url", "http://test/a", "--tag", "b", "--server"]);
    let ended = run(command.arg(socket.path()), b"");
    let expected = r#"{"kind":"hard","purged":[{"entries":0,"name":"http://test/a","result":"absent","what":"url"},{"entries":0,"name":"b","result":"accepted","what":"tag"}],"purge_overflows":0}"#;
    assert_eq!((ended.code, ended.text().trim_end()), (0, expected));
    assert!(!volume.path().exists());
}

#[test]
fn a_refusal_is_shown_with_the_servers_message() {
    let origin = Origin::counting("");
    let socket = Socket::new();
    let site = format!("[[site]]\nhosts = [\"one.example\"]\norigins = [\"{}\"]\n", origin.url());
    let server = Server::configured(&format!("{}{site}", socket.table()));
    for (words, told) in [
        (&["--url", "/a"][..], "`/a` is not an address"),
        (&["--url", "http://two.example/"], "has the host two.example"),
        (&["--prefix", "http://one"], "has no whole host"),
        (&["--tag", ""], "a tag can't be empty"),
    ] {
        let ended = purge(socket.path(), words);
        assert_eq!((ended.code, ended.text()), (2, ""), "{words:?}");
        assert!(ended.stderr.contains(told), "{words:?}: {}", ended.stderr);
    }
    // The address for clients has no administration.
    let ended = purge(format!("http://{}", server.address), &["--all"]);
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    assert!(ended.stderr.contains("not one of the administration"), "{}", ended.stderr);
}

#[test]
fn the_token_is_read_from_its_file() {
    let origin = Origin::counting("");
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        token_file(&folder.path().join(name), text);
        folder.path().join(name).display().to_string()
    };
    let token = file("token", "secret\n");
    let server = Server::configured(&format!(
        "[server.admin]\nlisten = \"127.0.0.1:0\"\ntoken_file = \"{token}\"\n[[site]]\norigins = [\"{}\"]\n",
        origin.url()
    ));
    let place = server.announced.lines().find_map(|line| line.strip_prefix("admin        ")).unwrap();
    assert_eq!(purge(place, &["--all", "--token-file", &token]).code, 0);
    for words in [&["--all"][..], &["--all", "--token-file", &file("wrong", "other")]] {
        let ended = purge(place, words);
        assert_eq!(ended.code, 3);
        assert!(ended.stderr.contains("give the file of the token by --token-file"), "{}", ended.stderr);
    }
    let ended = purge(place, &["--all", "--token-file", &file("odd", "a\nb")]);
    assert_eq!(ended.code, 3);
    assert!(ended.stderr.contains("can't use the token in"), "{}", ended.stderr);
}
