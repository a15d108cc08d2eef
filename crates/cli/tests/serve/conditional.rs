//! A client that has the response already gets 304, without a body.

use crate::common::client::Reply;
use crate::common::origin::Origin;
use crate::common::server::{Server, Site};

#[test]
fn a_file_by_its_tag_and_by_its_date() {
    let site = Site::new();
    site.write("page.html", "hello");
    let server = Server::over_folder(site.path());
    let first = server.get_until("/page.html", |reply| !reply.field("last-modified").is_empty());
    let tag = first.field("etag");
    assert!(tag.starts_with('"'), "a strong tag: {tag}");

    for field in [
        format!("If-None-Match: {tag}"),
        format!("If-None-Match: \"other\", W/{tag}"),
        "If-None-Match: *".to_owned(),
        format!("If-Modified-Since: {}", first.field("last-modified")),
    ] {
        let reply = server.ask("GET", "/page.html", &[&field]);
        assert_eq!((reply.status, reply.body.len()), (304, 0), "{field}");
        assert_eq!(reply.field("etag"), tag);
        assert_eq!(reply.field("content-type"), "");
        assert_eq!(server.ask("HEAD", "/page.html", &[&field]).status, 304, "{field}");
    }
    for field in [
        "If-None-Match: \"other\"".to_owned(),
        "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT".to_owned(),
        "If-Modified-Since: yesterday".to_owned(),
    ] {
        assert_eq!(server.ask("GET", "/page.html", &[&field]).text(), "hello", "{field}");
    }
    let both = ["If-None-Match: \"other\"", &format!("If-Modified-Since: {}", first.field("last-modified"))];
    assert_eq!(server.ask("GET", "/page.html", &both).status, 200, "the tag outranks the date");
}

#[test]
fn a_tag_from_before_a_change_gets_the_new_file() {
    let site = Site::new();
    site.write("page.html", "first");
    let server = Server::over_folder(site.path());
    let first = server.get_until("/page.html", Reply::is_hit);
    site.write("page.html", "again");
    let field = format!("If-None-Match: {}", first.field("etag"));
    assert_eq!(server.ask("GET", "/page.html", &[&field]).text(), "again");
}

#[test]
fn a_stored_response_of_an_origin() {
    let origin = Origin::counting("Cache-Control: max-age=60\r\nETag: \"v1\"\r\nContent-Type: text/plain");
    let server = Server::over_origin(&origin.url());
    assert_eq!(server.get("/").text(), "1");
    let reply = server.ask("GET", "/", &["If-None-Match: \"v1\""]);
    assert_eq!((reply.status, reply.body.len()), (304, 0));
    assert!(reply.is_hit(), "{}", reply.cache());
    assert_eq!((reply.field("etag"), reply.field("cache-control")), ("\"v1\"", "max-age=60"));
    assert!(!reply.field("age").is_empty() && !reply.field("date").is_empty());
    assert_eq!((reply.field("content-type"), reply.field("content-length")), ("", ""));
}

#[test]
fn a_stored_response_without_a_modification_by_its_date() {
    let date = "Sun, 06 Nov 1994 08:49:37 GMT";
    let origin = Origin::counting("Cache-Control: max-age=3000000000\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT");
    let server = Server::over_origin(&origin.url());
    server.get_until("/", Reply::is_hit);
    for (since, status) in [(date, 304), ("Sun, 06 Nov 1994 08:49:38 GMT", 304), ("Sun, 06 Nov 1994 08:49:36 GMT", 200)]
    {
        for method in ["GET", "HEAD"] {
            let reply = server.ask(method, "/", &[&format!("If-Modified-Since: {since}")]);
            assert_eq!((reply.status, reply.is_hit()), (status, true), "{method} {since}");
        }
    }
}

#[test]
fn a_miss_is_filled_even_if_its_client_needs_no_body() {
    let origin = Origin::counting("Cache-Control: max-age=60\r\nETag: \"v1\"");
    let server = Server::over_origin(&origin.url());
    let reply = server.ask("GET", "/", &["If-None-Match: \"v1\""]);
    assert_eq!((reply.status, reply.body.len()), (304, 0));
    assert_eq!(origin.asked()[0].field("if-none-match"), "", "the origin was asked for the whole response");
    assert_eq!(server.get("/").text(), "1");
    assert_eq!(origin.asked().len(), 1);
}

#[test]
fn a_response_that_is_not_stored() {
    let origin = Origin::counting("Cache-Control: no-store\r\nETag: \"v1\"");
    let server = Server::over_origin(&origin.url());
    let reply = server.ask("GET", "/", &["If-None-Match: \"v1\""]);
    assert_eq!((reply.status, reply.cache()), (304, "Eyewall; fwd=uri-miss; fwd-status=200; detail=no-store"));
}
