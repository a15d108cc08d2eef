//! One client makes the origin fail, by an odd request that bypasses stored responses; all others still get the page.

use crate::common::admin::Socket;
use crate::common::client::Reply;
use crate::common::origin::{Asked, Origin};
use crate::common::server::Server;

const PAGE: &str = "Cache-Control: max-age=300";

/// The page, unless a client asks for a failure by the field `X-Fail`: then an error, which is as fresh as the page.
fn failing_on_demand(fields: &'static str) -> Origin {
    Origin::answering(move |asked: &Asked| match asked.field("x-fail").get(..3) {
        Some(status) => (status.parse().unwrap(), PAGE.to_owned(), b"error".to_vec()),
        None if !asked.field("if-none-match").is_empty() => (304, fields.to_owned(), Vec::new()),
        None => (200, fields.to_owned(), b"page".to_vec()),
    })
}

fn fail(status: u16) -> String {
    // As long as a 400 response of Apache.
    format!("X-Fail: {status} {}", "x".repeat(9000))
}

#[test]
fn a_forced_or_conditional_request_does_not_replace_a_fresh_page() {
    for page in ["Cache-Control: max-age=300", "Cache-Control: max-age=300\r\nETag: \"a\""] {
        let origin = failing_on_demand(page);
        let server = Server::over_origin(&origin.url());
        server.get_until("/", Reply::is_hit);
        for (status, why) in [
            (400, "status"),
            (413, "status"),
            (414, "status"),
            (431, "status"),
            (404, "keeps-stored"),
            (405, "keeps-stored"),
            (410, "keeps-stored"),
            (500, "keeps-stored"),
            (501, "keeps-stored"),
            (502, "keeps-stored"),
            (503, "keeps-stored"),
        ] {
            for forced in ["Cache-Control: no-cache", "Pragma: no-cache", "Cache-Control: min-fresh=400"] {
                let reply = server.ask("GET", "/", &[forced, &fail(status)]);
                assert_eq!((reply.status, reply.text()), (status, "error"), "{forced}");
                let told = format!("Eyewall; fwd=request; fwd-status={status}; detail={why}");
                assert_eq!(reply.cache(), told, "{forced}");
                let other = server.get("/");
                assert_eq!((other.status, other.text(), other.is_hit()), (200, "page", true), "{status} {forced}");
            }
        }
    }
}

#[test]
fn a_page_that_may_be_sent_stale_stays_as_well() {
    let origin = failing_on_demand("Cache-Control: max-age=0, stale-while-revalidate=300\r\nETag: \"a\"");
    let server = Server::over_origin(&origin.url());
    server.get("/");
    for status in [400, 404, 405, 500, 503] {
        let reply = server.ask("GET", "/", &["Cache-Control: no-cache", &fail(status)]);
        assert_eq!(reply.status, status);
        let other = server.get("/");
        assert_eq!((other.status, other.text(), other.is_hit()), (200, "page", true), "{status}");
    }
}

#[test]
fn an_error_without_vary_replaces_no_variant() {
    let origin = failing_on_demand("Cache-Control: max-age=300\r\nVary: Accept-Language");
    let server = Server::over_origin(&origin.url());
    server.get("/");
    server.ask("GET", "/", &["Accept-Language: de"]);
    for own in ["Accept-Language: de", "Accept-Language: tlh"] {
        let reply = server.ask("GET", "/", &["Cache-Control: no-cache", own, &fail(405)]);
        assert!(reply.cache().ends_with("detail=keeps-stored"), "{}", reply.cache());
    }
    for language in [&[][..], &["Accept-Language: de"]] {
        assert_eq!(server.ask("GET", "/", language).text(), "page");
    }
}

#[test]
fn an_error_replaces_an_unusable_response() {
    let origin = failing_on_demand("Cache-Control: max-age=0\r\nETag: \"a\"");
    let server = Server::over_origin(&origin.url());
    assert_eq!(server.get("/").text(), "page");
    let reply = server.ask("GET", "/", &[&fail(405)]);
    assert!(reply.cache().contains("fwd-status=405; stored"), "{}", reply.cache());
    let other = server.get("/");
    assert_eq!((other.status, other.is_hit()), (405, true));
}

#[test]
fn an_error_replaces_a_soft_purged_response() {
    let origin = failing_on_demand("Cache-Control: max-age=300, stale-while-revalidate=300");
    let socket = Socket::new();
    let server = Server::configured(&format!("{}[[site]]\norigins = [\"{}\"]\n", socket.table(), origin.url()));
    server.get_until("/", Reply::is_hit);
    assert_eq!(socket.purge(r#"{"url": "http://test/", "soft": true}"#).status, 200);
    assert_eq!(server.ask("GET", "/", &["Cache-Control: no-cache", &fail(404)]).status, 404);
    let other = server.get("/");
    assert_eq!((other.status, other.is_hit()), (404, true), "{}", other.cache());
}

#[test]
fn an_error_is_stored_in_an_empty_place_unless_it_refuses_one_request() {
    let origin = failing_on_demand(PAGE);
    let server = Server::over_origin(&origin.url());
    for (status, is_stored) in [(400, false), (414, false), (431, false), (404, true), (405, true), (503, true)] {
        let target = format!("/{status}");
        server.ask("GET", &target, &[&fail(status)]);
        let other = server.get(&target);
        assert_eq!((other.status == status, other.is_hit()), (is_stored, is_stored), "{status}");
    }
}
