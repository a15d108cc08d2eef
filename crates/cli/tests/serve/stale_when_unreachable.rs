//! The origin is unreachable, or closes the connection without a response: Eyewall sends stale responses for a bounded time, unless
//! something forbids it (RFC 9111, section 4.2.4).

use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::origin::{Origin, respond};
use crate::common::server::Server;

/// An origin that answers until it is told to close all connections. Its responses are stale from the start.
fn origin(fields: &'static str) -> (Origin, Arc<AtomicBool>) {
    let is_gone = Arc::new(AtomicBool::new(false));
    let hangs_up = Arc::clone(&is_gone);
    let answer = move |stream: &mut TcpStream| respond(stream, 200, fields, 4, b"page");
    let origin = Origin::raw(move |_, stream| {
        if !hangs_up.load(Ordering::SeqCst) {
            answer(stream);
        }
    });
    (origin, is_gone)
}

/// The status and the `Cache-Status` of a request after the origin is gone.
fn after_it_is_gone(fields: &'static str, settings: &str, request: &[&str]) -> (u16, String) {
    let (origin, is_gone) = origin(fields);
    let server = Server::over_site(&origin.url(), settings);
    assert_eq!(server.get("/").text(), "page", "{fields}");
    is_gone.store(true, Ordering::SeqCst);
    let reply = server.ask("GET", "/", request);
    (reply.status, reply.cache().to_owned())
}

const STALE: &str = "Cache-Control: max-age=60\r\nAge: 90\r\nETag: \"1\"";

#[test]
fn it_is_sent_by_default() {
    let (status, cache) = after_it_is_gone(STALE, "", &[]);
    assert_eq!((status, &cache[..]), (200, "Eyewall; hit; ttl=-30; detail=origin-broken"));
}

#[test]
fn its_head_is_sent_too() {
    let (origin, is_gone) = origin(STALE);
    let server = Server::over_origin(&origin.url());
    assert_eq!(server.get("/").text(), "page");
    is_gone.store(true, Ordering::SeqCst);
    let reply = server.ask("HEAD", "/", &[]);
    assert_eq!((reply.status, reply.field("content-length")), (200, "4"));
}

#[test]
fn the_response_may_forbid_it() {
    for directive in ["must-revalidate", "proxy-revalidate", "s-maxage=60", "no-cache"] {
        let fields = format!("Cache-Control: max-age=60, {directive}\r\nAge: 90\r\nETag: \"1\"").leak();
        let (status, cache) = after_it_is_gone(fields, "", &[]);
        assert_eq!(status, 502, "{directive}: {cache}");
        assert!(cache.contains("detail=origin-broken"), "{directive}: {cache}");
    }
}

#[test]
fn a_client_that_reloads_gets_the_error() {
    assert_eq!(after_it_is_gone(STALE, "", &["Cache-Control: no-cache"]).0, 502);
}

#[test]
fn the_time_is_bounded_and_nothing_turns_it_off() {
    let setting = |value: &str| format!("[site.cache]\nstale_when_unreachable = \"{value}\"\n");
    assert_eq!(after_it_is_gone(STALE, &setting("20s"), &[]).0, 502, "it is stale for half a minute");
    assert_eq!(after_it_is_gone(STALE, &setting("0s"), &[]).0, 502);
    assert_eq!(after_it_is_gone(STALE, &setting("1m"), &[]).0, 200);
}

#[test]
fn it_needs_no_validator() {
    let (origin, is_gone) = origin("Cache-Control: max-age=1");
    let server = Server::over_origin(&origin.url());
    assert_eq!(server.get("/").text(), "page");
    is_gone.store(true, Ordering::SeqCst);
    let reply = server.get_until("/", |reply| reply.cache().contains("detail=origin-broken"));
    assert_eq!((reply.status, reply.text()), (200, "page"));
}
