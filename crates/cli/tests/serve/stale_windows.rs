//! `stale_while_revalidate` and `stale_if_error` of a site apply to responses that say nothing about it (RFC 5861).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::origin::{Origin, respond};
use crate::common::server::Server;

/// An origin whose responses are stale from the start. It fails when it is told to.
fn origin(fields: &'static str) -> (Origin, Arc<AtomicBool>) {
    let is_failing = Arc::new(AtomicBool::new(false));
    let fails = Arc::clone(&is_failing);
    let origin = Origin::raw(move |_, stream| {
        let (status, body) = if fails.load(Ordering::SeqCst) { (503, &b"fail"[..]) } else { (200, &b"page"[..]) };
        respond(stream, status, fields, 4, body);
    });
    (origin, is_failing)
}

/// Status, and whether it was a stale response of the volume, for the second request; the origin fails by then if `fails`.
fn second(fields: &'static str, settings: &str, fails: bool) -> (u16, bool) {
    let (origin, is_failing) = origin(fields);
    let server = Server::over_site(&origin.url(), settings);
    assert_eq!(server.get("/").text(), "page");
    is_failing.store(fails, Ordering::SeqCst);
    let reply = server.get("/");
    (reply.status, reply.cache().contains("hit; ttl=-"))
}

const STALE: &str = "Cache-Control: max-age=60\r\nAge: 90";
const NEVER: &str = "Cache-Control: max-age=60, stale-while-revalidate=1, stale-if-error=1\r\nAge: 90";
const FORBIDDEN: &str = "Cache-Control: max-age=60, must-revalidate\r\nAge: 90";

#[test]
fn a_stale_response_is_sent_while_the_origin_is_asked_again() {
    let site = "[site.cache]\nstale_while_revalidate = \"1h\"\n";
    let rule = "[[site.rule]]\npath = [\"/\"]\nstale_while_revalidate = \"1h\"\n";
    for (fields, settings, expected) in
        [(STALE, site, true), (STALE, rule, true), (STALE, "", false), (NEVER, site, false), (FORBIDDEN, site, false)]
    {
        assert_eq!(second(fields, settings, false), (200, expected), "{fields} {settings}");
    }
}

#[test]
fn a_stale_response_is_sent_if_the_origin_fails() {
    let site = "[site.cache]\nstale_if_error = \"1h\"\n";
    let rule = "[[site.rule]]\npath = [\"/\"]\nstale_if_error = \"1h\"\n";
    for (fields, settings, expected) in [
        (STALE, site, (200, true)),
        (STALE, rule, (200, true)),
        (STALE, "", (503, false)),
        (NEVER, site, (503, false)),
        (FORBIDDEN, site, (503, false)),
    ] {
        assert_eq!(second(fields, settings, true), expected, "{fields} {settings}");
    }
}
