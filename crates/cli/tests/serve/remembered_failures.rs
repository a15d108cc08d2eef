//! An origin fails, and the site's configuration says for how long Eyewall remembers it.

use crate::common::origin::{Origin, nobody, respond};
use crate::common::server::Server;

const NEGATIVE: &str = "[site.cache]\nnegative_ttl = { 404 = \"60s\", 5xx = \"60s\" }\n";

#[test]
fn an_unreachable_origin_is_not_asked_for_every_request() {
    let server = Server::over_site(&format!("http://{}", nobody()), NEGATIVE);
    let first = server.get("/");
    assert_eq!((first.status, first.is_hit()), (502, false));
    let second = server.get("/");
    assert_eq!((second.status, second.is_hit()), (502, true));
    assert!(second.cache().contains("detail=negative"), "{}", second.cache());
    assert!(!server.ask("GET", "/", &["Cache-Control: no-cache"]).is_hit(), "the client wants another try");
    assert!(!server.get("/other").is_hit());
}

#[test]
fn a_failure_that_a_rule_forbids_to_store_is_not_remembered() {
    let rule = "[[site.rule]]\nprefix = [\"/api/\"]\nno_store = true\n";
    let server = Server::over_site(&format!("http://{}", nobody()), &format!("{NEGATIVE}{rule}"));
    for (target, is_remembered) in [("/api/", false), ("/", true)] {
        server.get(target);
        assert_eq!(server.get(target).is_hit(), is_remembered, "{target}");
    }
}

#[test]
fn errors_are_remembered_with_their_body_or_in_a_few_bytes() {
    let origin = Origin::answering(|asked| match asked.target.as_str() {
        "/bare" => (404, "X-Own: yes".to_owned(), Vec::new()),
        "/own-time" => (404, "Cache-Control: max-age=9\r\nX-Own: yes".to_owned(), b"gone".to_vec()),
        _ => (503, String::new(), b"sorry".to_vec()),
    });
    let server = Server::over_site(&origin.url(), NEGATIVE);
    for (target, status, text, own) in
        [("/bare", 404, "remembered", ""), ("/own-time", 404, "gone", "yes"), ("/body", 503, "sorry", "")]
    {
        server.get(target);
        let reply = server.get(target);
        assert_eq!((reply.status, reply.field("x-own"), reply.is_hit()), (status, own, true), "{target}");
        assert!(reply.text().contains(text), "{target}: {}", reply.text());
    }
    assert_eq!(origin.asked().len(), 3);
}

#[test]
fn a_remembered_failure_does_not_replace_a_stale_response() {
    let origin = Origin::raw(|asked, stream| {
        let is_first = asked.field("if-none-match").is_empty();
        if is_first {
            respond(stream, 200, "Cache-Control: max-age=0\r\nETag: \"a\"", 4, b"page");
        }
    });
    let server = Server::over_site(&origin.url(), &format!("{NEGATIVE}stale_when_unreachable = \"0s\"\n"));
    assert_eq!(server.get("/").text(), "page");
    for _ in 0..2 {
        let reply = server.get("/");
        assert_eq!((reply.status, reply.is_hit()), (502, false), "{}", reply.cache());
    }
}

#[test]
fn an_error_that_varies_is_remembered_for_its_variant() {
    let origin = Origin::answering(|asked| match asked.field("cookie") {
        "sid=1" => (200, "Vary: Cookie".to_owned(), b"page".to_vec()),
        _ => (404, "Vary: Cookie".to_owned(), Vec::new()),
    });
    let server = Server::over_site(&origin.url(), "[site.cache]\ndefault_ttl = \"60s\"\n");
    for _ in 0..2 {
        assert_eq!(server.get("/").status, 404);
        assert_eq!(server.ask("GET", "/", &["Cookie: sid=1"]).text(), "page");
    }
}

#[test]
fn a_failure_remembered_in_a_few_bytes_is_purged_by_its_tags() {
    let origin = Origin::answering(|_| (404, "Surrogate-Key: gone".to_owned(), Vec::new()));
    let server = Server::over_site(&origin.url(), NEGATIVE);
    server.get("/");
    assert!(server.get("/").is_hit());
    assert_eq!(server.ask("PURGE", "/", &["Surrogate-Key: gone"]).status, 200);
    assert!(!server.get("/").is_hit());
}
