//! An origin sends an interim response (103 Early Hints): the client of the request gets it at once.

use std::io::{Read as _, Write as _};
use std::sync::Mutex;
use std::sync::mpsc::channel;

use crate::common::client::{connect, get, parse, send};
use crate::common::origin::{Origin, respond};
use crate::common::server::Server;

const HINT: &[u8] = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nConnection: x-hop\r\nX-Hop: 1\r\n\r\n";
const TOLD: &[u8] = b"HTTP/1.1 103 Early Hints\r\nlink: </a.css>; rel=preload\r\n\r\n";

#[test]
fn a_hint_arrives_before_the_response_is_made() {
    let (heard, wait_for_client) = channel();
    let wait_for_client = Mutex::new(wait_for_client);
    let origin = Origin::raw(move |_, stream| {
        stream.write_all(HINT).unwrap();
        wait_for_client.lock().unwrap().recv().unwrap();
        stream.write_all(HINT).unwrap();
        respond(stream, 200, "Cache-Control: max-age=60", 4, b"page");
    });
    let server = Server::over_origin(&origin.url());
    for (method, target) in [("GET", "/"), ("POST", "/posted")] {
        let mut client = connect(server.address);
        send(&mut client, method, target, &[]);
        let mut hint = vec![0; TOLD.len()];
        client.read_exact(&mut hint).unwrap();
        assert_eq!(hint, TOLD, "{}", String::from_utf8_lossy(&hint));
        heard.send(()).unwrap();
        let mut rest = Vec::new();
        client.read_to_end(&mut rest).unwrap();
        let response = rest.strip_prefix(TOLD).expect("another hint");
        assert_eq!(parse(response, false).text(), "page");
    }
    let hit = get(server.address, "/");
    assert_eq!((hit.status, hit.is_hit(), hit.text()), (200, true, "page"));
}

#[test]
fn fields_stripped_from_responses_are_stripped_from_hints() {
    let origin = Origin::raw(|_, stream| {
        let hint = "HTTP/1.1 103 Early Hints\r\nX-Powered-By: PHP\r\nLink: </a.css>; rel=preload\r\nX-Page: 7\r\n\r\n";
        stream.write_all(hint.as_bytes()).unwrap();
        respond(stream, 200, "Cache-Control: no-store\r\nX-Powered-By: PHP\r\nX-Page: 7", 4, b"page");
    });
    // The type of the page is unknown before its head has come.
    let site = "[site.cache]\nstrip_response = [\"X-Powered-By\"]\n\
                [[site.rule]]\nprefix = [\"/p\"]\ncontent_type = [\"text/html\"]\nstrip_response = [\"X-Page\"]\n";
    let server = Server::over_site(&origin.url(), site);
    for method in ["GET", "POST"] {
        let mut client = connect(server.address);
        send(&mut client, method, "/page", &[]);
        let mut bytes = Vec::new();
        client.read_to_end(&mut bytes).unwrap();
        let response = bytes.strip_prefix(TOLD).expect("the hint, and nothing else in it");
        let reply = parse(response, false);
        assert_eq!((reply.field("x-powered-by"), reply.field("x-page"), reply.text()), ("", "7", "page"));
    }
}

#[test]
fn clients_that_would_not_understand_it_get_none() {
    let origin = Origin::raw(|_, stream| {
        stream.write_all(HINT).unwrap();
        respond(stream, 200, "Cache-Control: no-store", 4, b"page");
    });
    let server = Server::over_origin(&origin.url());
    let mut client = connect(server.address);
    client.write_all(b"GET / HTTP/1.0\r\nHost: test\r\n\r\n").unwrap();
    let mut bytes = Vec::new();
    client.read_to_end(&mut bytes).unwrap();
    assert_eq!((parse(&bytes, false).status, parse(&bytes, false).text()), (200, "page"));
}
