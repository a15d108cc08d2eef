//! The origin closes in the middle of a body: the client sees that the body is incomplete, and nothing of it is stored.

use std::io::Write as _;
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::client::Reply;
use crate::common::origin::{Origin, respond};
use crate::common::server::Server;

/// Closes early at the first request, and answers all others.
fn breaking_off(broken: impl Fn(&mut TcpStream) + Send + Sync + 'static) -> Origin {
    let count = AtomicUsize::new(0);
    Origin::raw(move |_, stream| match count.fetch_add(1, Ordering::SeqCst) {
        0 => broken(stream),
        _ => respond(stream, 200, "Cache-Control: max-age=60", 5, b"whole"),
    })
}

/// If Eyewall knows it before it sends the head, the status says so.
fn is_told(cut: &Reply) -> bool {
    cut.status == 502 && cut.cache() == "Eyewall; fwd=uri-miss; fwd-status=200; detail=origin-broken"
}

#[test]
fn before_the_announced_length() {
    let origin = breaking_off(|stream| respond(stream, 200, "Cache-Control: max-age=60", 1000, b"half"));
    let server = Server::over_origin(&origin.url());
    let cut = server.get("/");
    assert!(is_told(&cut) || cut.status == 200 && "half".starts_with(cut.text()) && !cut.is_whole, "{cut:?}");
    let whole = server.get("/");
    assert_eq!((whole.text(), whole.is_hit()), ("whole", false));
}

#[test]
fn before_the_last_chunk() {
    let origin = breaking_off(|stream| {
        let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n";
        let _ = stream.write_all(format!("{head}4\r\nhalf\r\n").as_bytes());
    });
    let server = Server::over_origin(&origin.url());
    let cut = server.get("/");
    assert!(is_told(&cut) || "half".starts_with(cut.text()) && !cut.is_whole, "{cut:?}");
    let whole = server.get("/");
    assert_eq!((whole.text(), whole.is_hit()), ("whole", false));
}
