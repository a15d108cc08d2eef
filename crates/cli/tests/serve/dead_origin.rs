//! The origin is unreachable, or is not an HTTP server: clients get 502 with a message, and stored responses are still served.

use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::origin::{Origin, nobody, respond};
use crate::common::server::Server;

#[test]
fn nobody_listens() {
    let server = Server::over_origin(&format!("http://{}", nobody()));
    let reply = server.get("/");
    assert_eq!(reply.status, 502);
    assert_eq!(reply.text(), "502 Bad Gateway: the origin can't be reached\n");
    assert_eq!(reply.cache(), "Eyewall; fwd=uri-miss; detail=origin-unreachable");
    assert_eq!(reply.field("cache-control"), "no-store");
}

#[test]
fn the_name_does_not_exist() {
    let server = Server::over_origin("http://nobody.invalid");
    assert_eq!(server.get("/").status, 502);
}

#[test]
fn it_closes_the_connection_or_is_not_an_http_server() {
    for words in [&b""[..], b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/1.1 2000 what\r\n\r\n"] {
        let origin = Origin::raw(move |_, stream| {
            let _ = stream.write_all(words);
        });
        let server = Server::over_origin(&origin.url());
        let reply = server.get("/");
        assert_eq!((reply.status, reply.cache()), (502, "Eyewall; fwd=uri-miss; detail=origin-broken"), "{words:?}");
    }
}

#[test]
fn the_error_is_not_stored_and_stored_responses_stay() {
    let is_dead = AtomicBool::new(false);
    let origin = Origin::raw(move |asked, stream| match asked.target.as_str() {
        "/die" => is_dead.store(true, Ordering::SeqCst),
        _ if is_dead.load(Ordering::SeqCst) => {}
        _ => respond(stream, 200, "Cache-Control: max-age=60", 5, b"alive"),
    });
    let server = Server::over_origin(&origin.url());
    assert_eq!(server.get("/stored").text(), "alive");
    assert_eq!(server.get("/die").status, 502);
    assert_eq!(server.get("/other").status, 502);
    assert_eq!(server.get("/stored").text(), "alive");
}
