//! A soft purge makes responses stale: Eyewall revalidates them, and sends them if the origin fails, as before.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::admin::Socket;
use crate::common::client::Reply;
use crate::common::origin::{Asked, Origin};
use crate::common::server::Server;

const SOFT: [&str; 1] = ["Fastly-Soft-Purge: 1"];

fn validated(asked: &Asked) -> (u16, String, Vec<u8>) {
    let fields = "Cache-Control: max-age=600\r\nETag: \"1\"\r\nVary: Accept-Language\r\nXkey: page";
    if asked.field("if-none-match").is_empty() {
        (200, fields.to_owned(), asked.field("accept-language").as_bytes().to_vec())
    } else {
        (304, fields.to_owned(), Vec::new())
    }
}

const LANGUAGES: [&str; 2] = ["Accept-Language: de", "Accept-Language: en"];

fn store(server: &Server) {
    for language in LANGUAGES {
        while !server.ask("GET", "/page", &[language]).is_hit() {}
    }
}

/// Each variant is revalidated once, and is unchanged.
fn assert_validated(server: &Server, what: &str) {
    for language in LANGUAGES {
        let reply = server.ask("GET", "/page", &[language]);
        assert!(reply.cache().contains("fwd=stale; fwd-status=304"), "{what}: {reply:?}");
        assert_eq!(reply.text(), language.split_once(": ").unwrap().1, "{what}");
        assert!(server.ask("GET", "/page", &[language]).is_hit(), "{what}: {language}");
    }
}

#[test]
fn each_stale_variant_is_revalidated_once() {
    let origin = Origin::answering(validated);
    let socket = Socket::new();
    let server = Server::configured(&format!("{}[[site]]\norigins = [\"{}\"]\n", socket.table(), origin.url()));
    store(&server);
    assert!(server.ask("PURGE", "/page", &SOFT).text().contains(r#""result":"found""#));
    assert_validated(&server, "by PURGE");
    assert_eq!(server.ask("PURGE", "/page", &["X-Soft-Purge: 1", "Xkey: page"]).status, 200);
    assert_validated(&server, "by PURGE of a tag");
    for body in [
        r#"{"url": "http://test/page", "soft": true}"#,
        r#"{"tag": "page", "soft": true}"#,
        r#"{"prefix": "http://test/pa", "soft": true}"#,
        r#"{"host": "test", "soft": true}"#,
        r#"{"everything": true, "soft": true}"#,
    ] {
        assert_eq!(socket.purge(body).status, 200, "{body}");
        assert_validated(&server, body);
    }
}

#[test]
fn a_variant_that_changed_leaves_the_others_their_validators() {
    let has_changed = Arc::new(AtomicBool::new(false));
    let changed = Arc::clone(&has_changed);
    let origin = Origin::answering(move |asked| {
        if changed.load(Ordering::Relaxed) && asked.field("accept-language") == "de" {
            let fields = "Cache-Control: max-age=600\r\nETag: \"2\"\r\nVary: Accept-Language".to_owned();
            return (200, fields, b"neu".to_vec());
        }
        validated(asked)
    });
    let server = Server::over_origin(&origin.url());
    store(&server);
    server.ask("PURGE", "/.*", &SOFT);
    has_changed.store(true, Ordering::Relaxed);
    assert_eq!(server.ask("GET", "/page", &["Accept-Language: de"]).text(), "neu");
    while !server.ask("GET", "/page", &["Accept-Language: de"]).is_hit() {}
    let other = server.ask("GET", "/page", &["Accept-Language: en"]);
    assert!(other.cache().contains("fwd=stale; fwd-status=304"), "{other:?}");
}

#[test]
fn a_stale_response_is_sent_during_revalidation_if_allowed() {
    let origin = Origin::counting("Cache-Control: max-age=600, stale-while-revalidate=600\r\nETag: \"1\"");
    let server = Server::over_origin(&origin.url());
    server.get_until("/", Reply::is_hit);
    let text = server.get("/").text().to_owned();
    assert_eq!(server.ask("PURGE", "/", &SOFT).status, 200);
    let stale = server.get("/");
    assert!(stale.is_hit());
    assert_eq!(stale.text(), text);
    let new = server.get_until("/", |reply| reply.text() != text);
    assert!(new.is_hit(), "it came behind the client's back: {new:?}");
}

#[test]
fn a_stale_response_is_sent_if_the_origin_fails() {
    let is_well = Arc::new(AtomicBool::new(true));
    let well = Arc::clone(&is_well);
    let origin = Origin::answering(move |_| {
        let status = if well.load(Ordering::Relaxed) { 200 } else { 503 };
        (status, "Cache-Control: max-age=600, stale-if-error=600".to_owned(), b"page".to_vec())
    });
    let server = Server::over_origin(&origin.url());
    server.get_until("/", Reply::is_hit);
    is_well.store(false, Ordering::Relaxed);
    assert_eq!(server.ask("PURGE", "/", &SOFT).status, 200);
    let reply = server.get("/");
    assert_eq!((reply.status, reply.text()), (200, "page"), "{reply:?}");
    assert_eq!(server.ask("PURGE", "/", &[]).status, 200);
    assert_eq!(server.get("/").status, 503, "a hard one takes it");
}
