//! A site shows its own pages in place of errors, also when its origin is gone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::admin::Socket;
use crate::common::client::Reply;
use crate::common::origin::{Origin, nobody, respond};
use crate::common::server::{Server, Site};

const PAGE: &str = "<h1>Sorry</h1>";
const PAGES: &str = "error_page = { 404 = \"/errors/404.html\", 5xx = \"/errors/5xx.html\" }\n";

/// Status, type, body, and the directives for caches.
fn told(reply: &Reply) -> (u16, &str, &str, &str) {
    (reply.status, reply.field("content-type"), reply.text(), reply.field("cache-control"))
}

fn is_page(reply: &Reply) -> bool {
    reply.text() == PAGE
}

/// An origin that has the pages, and errors at `/fail` and `/absent`, until it is told to close all connections.
fn origin(fields: &'static str) -> (Origin, Arc<AtomicBool>) {
    let is_gone = Arc::new(AtomicBool::new(false));
    let hangs_up = Arc::clone(&is_gone);
    let origin = Origin::raw(move |asked, stream| {
        if hangs_up.load(Ordering::SeqCst) {
            return;
        }
        let (status, fields, body) = match asked.target.as_str() {
            "/errors/404.html" | "/errors/5xx.html" => (200, fields, PAGE),
            "/fail" => (500, "Content-Type: application/json\r\nRetry-After: 7\r\nETag: \"e\"", "{}"),
            "/absent" => (404, "Cache-Control: max-age=60", "none"),
            _ => (200, "Cache-Control: max-age=60", "fine"),
        };
        respond(stream, status, fields, body.len(), if asked.method == "HEAD" { b"" } else { body.as_bytes() });
    });
    (origin, is_gone)
}

const HTML: &str = "Content-Type: text/html";

#[test]
fn a_file_of_the_site_is_shown() {
    let folder = Site::new();
    folder.write("errors/404.html", PAGE);
    let server = Server::configured(&format!("[[site]]\nroot = \"{}\"\n{PAGES}", folder.path().display()));
    let expected = (404, "text/html; charset=utf-8", PAGE, "no-store");
    assert_eq!(told(&server.get("/none")), expected);
    assert_eq!(told(&server.ask("GET", "/none", &["Accept: text/html,application/xhtml+xml"])), expected);
    let head = server.ask("HEAD", "/none", &[]);
    assert_eq!((head.status, head.field("content-length"), head.text()), (404, "14", ""));
    let program = server.ask("GET", "/none", &["Accept: application/json"]);
    assert!(program.text().starts_with("404 Not Found"), "{program:?}");
    let itself = server.get("/errors/404.html");
    assert_eq!((itself.status, is_page(&itself)), (200, true));
    assert_eq!(server.get("/none").field("etag"), "", "it is the tag of another response");
    std::fs::remove_file(folder.path().join("errors/404.html")).unwrap();
    server.get_until("/none", |reply| reply.text().starts_with("404 Not Found"));
}

#[test]
fn errors_of_the_origin_are_replaced_on_demand() {
    for (intercepts, expected) in [("intercept_errors = true\n", true), ("", false)] {
        let (origin, _) = origin(HTML);
        let server = Server::over_site(&origin.url(), &format!("{PAGES}{intercepts}"));
        if !expected {
            assert_eq!((server.get("/fail").text(), server.get("/absent").text()), ("{}", "none"));
            continue;
        }
        let fail = server.get_until("/fail", is_page);
        assert_eq!(told(&fail), (500, "text/html", PAGE, "no-store"));
        assert_eq!((fail.field("retry-after"), fail.field("etag")), ("7", ""));
        // The second is a hit, which the fast path must not answer.
        server.get_until("/absent", is_page);
        let absent = server.get("/absent");
        assert_eq!((absent.status, is_page(&absent), absent.is_hit()), (404, true, true));
        assert_eq!(server.get("/page").text(), "fine");
    }
}

#[test]
fn a_page_of_the_origin_is_shown_when_the_origin_is_gone() {
    for fields in ["Content-Type: text/html", "Content-Type: text/html\r\nCache-Control: max-age=0"] {
        let volume = Site::new();
        let path = volume.path().join("volume.eye");
        let (origin, is_gone) = origin(fields);
        let text = |origin: &str| {
            let pages = "rule = [{ prefix = [\"/errors/\"], bypass = true }]\nintercept_errors = true\n";
            let site = format!("[[site]]\nhosts = [\"test\"]\norigins = [\"{origin}\"]\n{PAGES}{pages}");
            format!("[cache]\npath = \"{}\"\nsize = \"8M\"\n{site}", path.display())
        };
        let server = Server::configured(&text(&origin.url()));
        server.get_until("/fail", is_page);
        is_gone.store(true, Ordering::SeqCst);
        let reply = server.get("/other");
        assert_eq!(told(&reply), (502, "text/html", PAGE, "no-store"));
        assert!(reply.cache().contains("detail=origin-broken"), "{}", reply.cache());
        drop(server);
        // Another server finds the page in the volume.
        let server = Server::configured(&text(&format!("http://{}", nobody())));
        let reply = server.get("/other");
        assert_eq!(told(&reply), (502, "text/html", PAGE, "no-store"));
        assert!(reply.cache().contains("detail=origin-unreachable"), "{}", reply.cache());
    }
}

#[test]
fn without_a_page_the_error_is_told_in_words() {
    let server = Server::over_site(&format!("http://{}", nobody()), PAGES);
    let reply = server.get("/");
    assert_eq!((reply.status, reply.text()), (502, "502 Bad Gateway: the origin can't be reached\n"));
}

#[test]
fn a_rule_with_no_store_keeps_a_page_out_of_the_volume() {
    let (origin, _) = origin(HTML);
    let rule = "rule = [{ path = [\"/errors/404.html\"], no_store = true }]\nintercept_errors = true\n";
    let server = Server::over_site(&origin.url(), &format!("{PAGES}{rule}"));
    // The pages are fetched in the order of their paths, so the other one has been fetched before.
    server.get_until("/fail", is_page);
    assert_eq!(server.get("/absent").text(), "none");
}

#[test]
fn clients_and_error_pages_have_entries_of_their_own() {
    let (origin, _) = origin("Content-Type: text/html\r\nCache-Control: max-age=0");
    let socket = Socket::new();
    let site = format!(
        "[server]\ntrusted_proxies = [\"127.0.0.1\"]\n{}[[site]]\norigins = [\"{}\"]\n{PAGES}intercept_errors = true\n",
        socket.table(),
        origin.url()
    );
    let server = Server::configured(&site);
    server.get_until("/fail", is_page);
    let https = ["X-Forwarded-Proto: https", "X-Forwarded-For: 192.0.2.7"];
    let client = server.ask("GET", "/errors/5xx.html", &https);
    assert!(
        client.cache().contains("fwd=uri-miss"),
        "the time of the error page is not the client's: {}",
        client.cache()
    );
    assert_eq!((client.field("cache-control"), client.text()), ("max-age=0", PAGE));
    assert!(is_page(&server.get("/fail")));
}

#[test]
fn a_purge_of_the_address_covers_the_error_page() {
    // The key has the normal form of a path.
    for path in ["/errors/5xx", "/./errors/%35xx"] {
        let (origin, is_gone) = origin(HTML);
        let socket = Socket::new();
        let pages = PAGES.replace("/errors/5xx", path);
        let site =
            format!("[[site]]\nhosts = [\"test\"]\norigins = [\"{}\"]\n{pages}intercept_errors = true\n", origin.url());
        let server = Server::configured(&format!("{}{site}", socket.table()));
        server.get_until("/fail", is_page);
        is_gone.store(true, Ordering::SeqCst);
        assert!(is_page(&server.get("/other")), "{path}");
        let purged = socket.purge(r#"{"url": "http://test/errors/5xx.html"}"#);
        assert_eq!(purged.status, 200, "{purged:?}");
        assert!(server.get("/other").text().starts_with("502 Bad Gateway"), "{path}");
    }
}
