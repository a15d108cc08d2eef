//! Requests by which one client would change what others get: they get what they would have got.

use crate::common::client::Reply;
use crate::common::origin::{Asked, Origin};
use crate::common::server::Server;

const STORED: &str = "Cache-Control: max-age=60\r\nETag: \"a\"";

fn page(_: &Asked) -> (u16, String, Vec<u8>) {
    (200, STORED.to_owned(), b"page".to_vec())
}

#[test]
fn what_the_connection_names_does_not_choose_a_variant() {
    let origin = Origin::answering(|asked| {
        (200, format!("{STORED}\r\nVary: Accept-Language"), asked.field("accept-language").as_bytes().to_vec())
    });
    let server = Server::over_origin(&origin.url());
    server.ask("GET", "/", &["Accept-Language: de", "Connection: accept-language"]);
    assert_eq!(server.ask("GET", "/", &["Accept-Language: de"]).text(), "de");
}

#[test]
fn names_with_underscores_do_not_reach_the_origin() {
    let origin = Origin::answering(page);
    let server = Server::over_origin(&origin.url());
    server.ask("GET", "/", &["X_Forwarded_Host: evil.example", "X-Own: kept"]);
    let asked = origin.asked().remove(0);
    assert_eq!((asked.field("x_forwarded_host"), asked.field("x-own")), ("", "kept"));
}

#[test]
fn a_condition_of_one_is_not_the_answer_to_all() {
    let origin = Origin::answering(|asked| match asked.field("if-match") {
        "" => page(asked),
        _ => (412, STORED.to_owned(), Vec::new()),
    });
    let server = Server::over_origin(&origin.url());
    server.ask("GET", "/", &["If-Match: \"x\""]);
    assert_eq!(server.get("/").text(), "page");
}

#[test]
fn refusals_of_one_request_are_neither_stored_nor_in_the_place_of_what_is() {
    let origin = Origin::answering(|asked| match asked.field("x-status").parse() {
        Ok(status) => (status, STORED.to_owned(), b"refused".to_vec()),
        Err(_) => page(asked),
    });
    let server = Server::over_origin(&origin.url());
    for status in ["401", "403", "412", "413", "416", "429", "431"] {
        let odd = format!("X-Status: {status}");
        assert_eq!(server.ask("GET", "/", &[&odd, "Cache-Control: no-cache"]).text(), "refused");
        assert_eq!(server.get("/").text(), "page", "{status}");
        assert_eq!(server.ask("GET", "/", &[&odd, "Cache-Control: no-cache"]).status.to_string(), status);
        assert!(server.get("/").is_hit(), "{status}");
    }
}

#[test]
fn who_wants_nothing_stored_takes_nothing_away() {
    let origin = Origin::answering(|asked| match asked.field("if-none-match") {
        "" => page(asked),
        _ => (304, STORED.to_owned(), Vec::new()),
    });
    let server = Server::over_origin(&origin.url());
    server.get("/");
    for fields in
        [["Cache-Control: no-cache, no-store", "X: y"], ["Cache-Control: no-cache", "Authorization: Basic eA=="]]
    {
        assert_eq!(server.ask("GET", "/", &fields).text(), "page");
        assert!(server.get("/").is_hit(), "{fields:?}");
    }
}

#[test]
fn what_varies_by_the_address_of_the_client_is_not_for_others() {
    let origin = Origin::answering(|_| (200, format!("{STORED}\r\nVary: X-Forwarded-For"), b"yours".to_vec()));
    let server = Server::over_origin(&origin.url());
    let asked = |server: &Server| -> Reply { server.get("/") };
    assert!(asked(&server).cache().contains("detail=vary"));
    assert!(!asked(&server).is_hit());
}
