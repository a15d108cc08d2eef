//! Eyewall neither passes on nor stores fields that concern one connection, in either direction; it does so with all others.

use crate::common::origin::Origin;
use crate::common::server::Server;

#[test]
fn on_the_way_to_the_origin() {
    let origin = Origin::counting("");
    let server = Server::over_origin(&origin.url());
    server.ask(
        "GET",
        "/",
        &[
            "Connection: X-Mine",
            "X-Mine: 1",
            "Keep-Alive: timeout=5",
            "TE: trailers",
            "Upgrade: websocket",
            "Proxy-Authorization: Basic eA==",
            "X-Forwarded-Host: evil.example",
            "X-Forwarded-For: 192.0.2.1",
            "Forwarded: for=192.0.2.1",
            "User-Agent: test",
            "Cookie: a=b",
        ],
    );
    let asked = origin.asked().remove(0);
    let not_passed_on = ["x-mine", "keep-alive", "te", "upgrade", "proxy-authorization"];
    for name in not_passed_on {
        assert_eq!(asked.field(name), "", "{name}");
    }
    assert_eq!((asked.field("x-forwarded-host"), asked.field("x-forwarded-for")), ("test", "127.0.0.1"));
    assert_eq!(asked.field("forwarded"), "for=127.0.0.1;proto=http;host=\"test\"");
    assert_eq!((asked.field("user-agent"), asked.field("cookie")), ("test", "a=b"));
}

#[test]
fn on_the_way_back_and_from_the_volume() {
    let origin = Origin::counting(
        "Cache-Control: max-age=60\r\nConnection: X-Mine\r\nX-Mine: 1\r\nKeep-Alive: timeout=5\r\nX-Own: yes",
    );
    let server = Server::over_origin(&origin.url());
    for _ in 0..2 {
        let reply = server.get("/");
        assert_eq!((reply.field("x-mine"), reply.field("keep-alive"), reply.field("x-own")), ("", "", "yes"));
    }
    assert_eq!(origin.asked().len(), 1);
}
