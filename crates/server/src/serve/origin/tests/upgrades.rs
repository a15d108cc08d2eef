//! An upgrade joins both sides if the origin agrees; otherwise its response is an ordinary one.

use std::io::{Read as _, Write as _};
use std::net::Shutdown;

use super::client::{ask, connect};
use super::scripted::Origin;
use super::{front, settings};

const ASKED: &str = "GET /chat HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\n";

#[test]
fn both_sides_are_joined_until_one_closes() {
    let origin = Origin::raw(|_, stream| {
        let head = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\nhello";
        stream.write_all(head.as_bytes()).unwrap();
        let mut heard = Vec::new();
        stream.read_to_end(&mut heard).unwrap();
        heard.reverse();
        stream.write_all(&heard).unwrap();
    });
    let mut client = connect(front(settings([origin.url().as_str()])));
    client.write_all(ASKED.as_bytes()).unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\nhello") {
        let mut byte = [0];
        client.read_exact(&mut byte).unwrap();
        head.extend(byte);
    }
    let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
    assert!(head.starts_with("http/1.1 101 ") && head.contains("upgrade: websocket"), "{head}");
    client.write_all(b"\x81\x00\xff").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let mut heard = Vec::new();
    client.read_to_end(&mut heard).unwrap();
    assert_eq!(heard, b"\xff\x00\x81");
    let asked = origin.asked().remove(0);
    assert_eq!((asked.field("connection"), asked.field("upgrade")), ("upgrade", "websocket"));
}

#[test]
fn an_origin_that_refuses_the_upgrade_answers_as_usual() {
    let origin = Origin::counting("");
    let reply =
        ask(front(settings([origin.url().as_str()])), "GET", "/", &["Connection: upgrade", "Upgrade: websocket"]);
    assert_eq!((reply.status, reply.text()), (200, "1"));
}

#[test]
fn a_101_without_a_protocol_is_refused() {
    let origin = Origin::raw(|_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n\r\n");
    });
    let reply =
        ask(front(settings([origin.url().as_str()])), "GET", "/", &["Connection: upgrade", "Upgrade: websocket"]);
    assert_eq!((reply.status, reply.text()), (502, "origin-broken"));
}

#[test]
fn the_field_alone_is_no_upgrade() {
    let origin = Origin::counting("");
    ask(front(settings([origin.url().as_str()])), "GET", "/", &["Upgrade: websocket"]);
    assert_eq!(origin.asked()[0].field("upgrade"), "");
}
