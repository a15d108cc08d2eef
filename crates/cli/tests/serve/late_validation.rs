//! A late 304 comes after another response was stored in the place of the revalidated one: the other keeps its own head.

use std::io::Write as _;
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;

use crate::common::client::ask;
use crate::common::origin::Origin;
use crate::common::server::Server;

const FIRST: &str = "ETag: \"v1\"\r\nContent-Type: text/plain";
const SECOND: &str = "ETag: \"v2\"\r\nContent-Type: text/html\r\nCache-Control: max-age=600";

#[test]
fn a_late_304_does_not_change_a_newer_response() {
    late_word("GET", "304 Not Modified", "", "first");
}

#[test]
fn nor_a_newer_response_that_is_one_of_several_variants() {
    late_word("GET", "304 Not Modified", "\r\nVary: Accept-Language", "first");
}

#[test]
fn nor_does_a_late_answer_to_head() {
    late_word("HEAD", "200 OK\r\nContent-Length: 5", "", "");
}

/// The first response is stored, and stale at once. A request with `method` revalidates it. The origin confirms it only after the
/// second response, which has these `fields` besides, is stored.
fn late_word(method: &'static str, word: &'static str, fields: &'static str, body: &str) {
    let (arrived, wait_for_arrival) = channel();
    let (release, wait_for_release) = channel::<()>();
    let wait_for_release = Mutex::new(wait_for_release);
    let count = AtomicUsize::new(0);
    let origin = Origin::raw(move |_, stream| match count.fetch_add(1, Ordering::Relaxed) {
        0 => respond_in_chunks(stream, &format!("{FIRST}\r\nCache-Control: max-age=0"), "first"),
        1 => {
            let _ = arrived.send(());
            let _ = wait_for_release.lock().unwrap().recv();
            let _ =
                write!(stream, "HTTP/1.1 {word}\r\n{FIRST}\r\nCache-Control: max-age=600\r\nConnection: close\r\n\r\n");
        }
        _ => respond_in_chunks(stream, &format!("{SECOND}{fields}"), "the second"),
    });
    let server = Server::over_origin(&origin.url());
    let address = server.address;
    assert_eq!(server.get("/").text(), "first");
    let held = thread::spawn(move || ask(address, method, "/", &[]));
    wait_for_arrival.recv().unwrap();
    assert_eq!(server.ask("GET", "/", &["Cache-Control: no-cache"]).text(), "the second");
    release.send(()).unwrap();
    let held = held.join().unwrap();
    assert_eq!((held.status, held.field("etag"), held.text()), (200, "\"v1\"", body));

    let reply = server.get("/");
    assert!(reply.is_hit(), "{}", reply.cache());
    assert_eq!((reply.text(), reply.field("etag"), reply.field("content-type")), ("the second", "\"v2\"", "text/html"),);
    assert_eq!(origin.asked().len(), 3);
}

/// A body without a length ends for the client when it is stored.
fn respond_in_chunks(stream: &mut TcpStream, fields: &str, body: &str) {
    let head = format!("HTTP/1.1 200 OK\r\n{fields}\r\nTransfer-Encoding: chunked\r\nConnection: close");
    // The server may have closed, which the test checks.
    let _ = write!(stream, "{head}\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
}
