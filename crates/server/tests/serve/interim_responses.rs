//! An origin says something before its response (103 Early Hints): the client whose request it is hears of it at once.

use std::io::{Read as _, Write as _};
use std::sync::Mutex;
use std::sync::mpsc::channel;

use crate::common::client::{connect, get, parse, send};
use crate::common::origin::{Origin, respond};
use crate::common::server::Server;

const HINT: &[u8] = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nConnection: x-hop\r\nX-Hop: 1\r\n\r\n";
const TOLD: &[u8] = b"HTTP/1.1 103 Early Hints\r\nlink: </a.css>; rel=preload\r\n\r\n";

#[test]
fn a_hint_comes_before_the_response_is_made() {
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
fn who_would_not_understand_it_gets_none() {
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
