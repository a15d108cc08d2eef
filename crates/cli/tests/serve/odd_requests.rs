//! One client's odd requests don't change the responses to others.

use crate::common::client::Reply;
use crate::common::origin::{Asked, Origin};
use crate::common::server::Server;

const STORED: &str = "Cache-Control: max-age=60\r\nETag: \"a\"";

fn page(_: &Asked) -> (u16, String, Vec<u8>) {
    (200, STORED.to_owned(), b"page".to_vec())
}

#[test]
fn fields_of_the_connection_do_not_choose_a_variant() {
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
fn the_condition_of_one_client_is_not_the_response_to_all() {
    let origin = Origin::answering(|asked| match asked.field("if-match") {
        "" => page(asked),
        _ => (412, STORED.to_owned(), Vec::new()),
    });
    let server = Server::over_origin(&origin.url());
    server.ask("GET", "/", &["If-Match: \"x\""]);
    assert_eq!(server.get("/").text(), "page");
}

#[test]
fn refusals_of_one_request_are_not_stored_and_replace_nothing() {
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
fn no_store_of_a_client_removes_nothing() {
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
fn a_response_that_varies_by_the_clients_address_is_not_shared() {
    let origin = Origin::answering(|_| (200, format!("{STORED}\r\nVary: X-Forwarded-For"), b"yours".to_vec()));
    let server = Server::over_origin(&origin.url());
    let asked = |server: &Server| -> Reply { server.get("/") };
    assert!(asked(&server).cache().contains("detail=vary"));
    assert!(!asked(&server).is_hit());
}
