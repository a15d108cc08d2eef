//! A connection that ends before a response costs a second attempt, never a third; a response that was begun costs none.

use std::io::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;

use crate::common::origin::{Origin, read, respond};
use crate::common::server::Server;

#[test]
fn one_end_of_a_connection_is_not_noticed() {
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
fn two_are() {
    let origin = Origin::raw(|_, _| {});
    let server = Server::over_origin(&origin.url());
    assert_eq!(server.get("/").cache(), "Eyewall; fwd=uri-miss; detail=origin-broken");
    assert_eq!(origin.asked().len(), 2);
}

#[test]
fn what_is_no_response_is_not_asked_for_again() {
    let origin = Origin::raw(|_, stream| {
        let _ = stream.write_all(b"SSH-2.0-OpenSSH_9.2\r\n");
    });
    let server = Server::over_origin(&origin.url());
    assert_eq!(server.get("/").status, 502);
    assert_eq!(origin.asked().len(), 1);
}

#[test]
fn an_idle_connection_that_is_closed_while_it_is_used_again_is_not_noticed() {
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
