//! Eyewall retries once if a connection ends before a response, and never after a response has begun.

use std::io::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use crate::common::origin::{Origin, read, respond};
use crate::common::server::Server;

#[test]
fn clients_do_not_notice_one_closed_connection() {
    let count = AtomicUsize::new(0);
    let origin = Origin::raw(move |_, stream| {
        if count.fetch_add(1, Ordering::SeqCst) > 0 {
            respond(stream, 200, "", 4, b"well");
        }
    });
    let server = Server::over_origin(&origin.url());
    assert_eq!(server.get("/").text(), "well");
    assert_eq!(origin.asked().len(), 2);
}

#[test]
fn clients_notice_two_closed_connections() {
    let origin = Origin::raw(|_, _| {});
    let server = Server::over_origin(&origin.url());
    assert_eq!(server.get("/").cache(), "Eyewall; fwd=uri-miss; detail=origin-broken");
    assert_eq!(origin.asked().len(), 2);
}

#[test]
fn a_malformed_response_is_not_retried() {
    let origin = Origin::raw(|_, stream| {
        let _ = stream.write_all(b"SSH-2.0-OpenSSH_9.2\r\n");
    });
    let server = Server::over_origin(&origin.url());
    assert_eq!(server.get("/").status, 502);
    assert_eq!(origin.asked().len(), 1);
}

#[test]
fn clients_do_not_notice_an_idle_connection_that_closes_at_reuse() {
    let (seen, was_seen) = channel();
    let seen = Mutex::new(seen);
    let origin = Origin::raw(move |_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        // The connection is closed as soon as a second request is on it.
        if read(stream).is_some() {
            let _ = seen.lock().unwrap().send(());
        }
    });
    let server = Server::over_origin(&origin.url());
    server.get_until("/", |reply| {
        assert_eq!(reply.text(), "ok");
        was_seen.try_recv().is_ok()
    });
}

#[test]
fn an_error_that_nobody_gets_leaves_its_connection_open() {
    let connections = Arc::new(AtomicUsize::new(0));
    let opened = Arc::clone(&connections);
    let origin = Origin::raw(move |_, stream| {
        opened.fetch_add(1, Ordering::SeqCst);
        let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=0, stale-if-error=600\r\nContent-Length: 4\r\n\r\npage";
        let _ = stream.write_all(head.as_bytes());
        while read(stream).is_some() {
            let _ = stream.write_all(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 5\r\n\r\nerror");
        }
    });
    let server = Server::configured(&format!("[server]\nworkers = 1\n[[site]]\norigins = [\"{}\"]\n", origin.url()));
    for _ in 0..4 {
        assert_eq!(server.get("/").text(), "page");
    }
    assert_eq!(connections.load(Ordering::SeqCst), 1);
}
