//! The origin takes too long: clients get 504 if it never begins, and an incomplete body if it stops in the middle.

use std::io::Write as _;
use std::sync::Mutex;
use std::sync::mpsc::channel;

use crate::common::origin::Origin;
use crate::common::server::Server;

#[test]
fn it_never_begins_to_answer() {
    // Held until the end of the test: the origin waits for it.
    let (_release, wait) = channel::<()>();
    let wait = Mutex::new(wait);
    let origin = Origin::raw(move |_, _| {
        let _ = wait.lock().unwrap().recv();
    });
    let server = Server::start(["--origin", &origin.url(), "--origin-timeout", "100ms"]);
    let reply = server.get("/");
    assert_eq!(reply.status, 504);
    assert_eq!(reply.text(), "504 Gateway Timeout: the origin did not answer within 100 ms\n");
    assert_eq!(reply.cache(), "Eyewall; fwd=uri-miss; detail=origin-late");
}

#[test]
fn it_stops_in_the_middle() {
    let (_release, wait) = channel::<()>();
    let wait = Mutex::new(wait);
    let origin = Origin::raw(move |_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 10\r\n\r\nhalf");
        let _ = wait.lock().unwrap().recv();
    });
    let server = Server::start(["--origin", &origin.url(), "--origin-timeout", "100ms"]);
    let reply = server.get("/");
    assert!("half".starts_with(reply.text()) && !reply.is_whole, "the client can tell: {reply:?}");
}
