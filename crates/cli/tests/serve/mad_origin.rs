//! The origin's responses are contradictory or endless: clients get 502, and nothing of them is stored.

use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::origin::{Origin, respond};
use crate::common::server::Server;

/// Writes these bytes first, and later responses that can be stored.
fn mad_once(words: String) -> Origin {
    let was_mad = AtomicBool::new(false);
    Origin::raw(move |_, stream| {
        if was_mad.swap(true, Ordering::SeqCst) {
            respond(stream, 200, "Cache-Control: max-age=60", 4, b"well");
        } else {
            let _ = stream.write_all(words.as_bytes());
        }
    })
}

#[test]
fn the_end_of_its_body_is_ambiguous_or_in_an_unknown_coding() {
    for framing in [
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
        "Content-Length: 5\r\nContent-Length: 4\r\n\r\nhello",
        "Content-Length: 5, 4\r\n\r\nhello",
        "Content-Length: +5\r\n\r\nhello",
        "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding: gzip\r\n\r\nhello",
    ] {
        let origin = mad_once(format!("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n{framing}"));
        let server = Server::over_origin(&origin.url());
        let mad = server.get("/");
        assert_eq!((mad.status, mad.cache()), (502, "Eyewall; fwd=uri-miss; detail=origin-broken"), "{framing:?}");
        let well = server.get("/");
        assert_eq!((well.text(), well.is_hit()), ("well", false), "{framing:?}");
        assert_eq!(origin.asked().len(), 2, "what was answered is not asked for again: {framing:?}");
    }
}

#[test]
fn it_changes_the_protocol_without_a_request() {
    let origin = mad_once("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n".to_owned());
    let server = Server::over_origin(&origin.url());
    assert_eq!(server.get("/").status, 502);
    assert_eq!(server.get("/").text(), "well");
}

#[test]
fn its_heads_are_too_large() {
    let many = "X-Field: a\r\n".repeat(200);
    for fields in [many, format!("X-Long: {}\r\n", "a".repeat(200_000))] {
        let origin = mad_once(format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n{fields}\r\n"));
        let server = Server::over_origin(&origin.url());
        let reply = server.get("/");
        assert_eq!((reply.status, reply.cache()), (502, "Eyewall; fwd=uri-miss; detail=origin-head-too-large"));
        assert_eq!(server.get("/").text(), "well");
    }
}

#[test]
fn its_head_never_ends() {
    let origin = Origin::raw(|_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n");
        // Until the server closes.
        while stream.write_all(b"X-Field: and so on\r\n").is_ok() {}
    });
    let server = Server::over_origin(&origin.url());
    assert_eq!(server.get("/").cache(), "Eyewall; fwd=uri-miss; detail=origin-head-too-large");
}
