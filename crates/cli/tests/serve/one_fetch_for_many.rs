//! Request collapsing: many clients ask for the same page at the same time, and the origin gets one request.

use std::io::{Read, Write as _};
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::thread;

use crate::common::client::{Reply, connect, get, send};
use crate::common::origin::{Origin, respond};
use crate::common::server::Server;

#[test]
fn the_others_wait_for_the_first() {
    let (arrived, wait_for_arrival) = channel();
    let (release, wait_for_release) = channel::<()>();
    let wait_for_release = Mutex::new(wait_for_release);
    let origin = Origin::raw(move |_, stream| {
        let _ = arrived.send(());
        let _ = wait_for_release.lock().unwrap().recv();
        respond(stream, 200, "Cache-Control: max-age=60", 4, b"once");
    });
    let server = Server::over_origin(&origin.url());
    let address = server.address;
    let clients: Vec<_> = (0..8).map(|_| thread::spawn(move || get(address, "/"))).collect();
    wait_for_arrival.recv().unwrap();
    // Later requests find it stored, so it doesn't matter how many have come by now.
    release.send(()).unwrap();
    let replies: Vec<_> = clients.into_iter().map(|client| client.join().unwrap()).collect();
    assert!(replies.iter().all(|reply| reply.text() == "once"));
    let is_of_another = |reply: &&Reply| reply.is_hit() || reply.cache().contains("; collapsed");
    assert_eq!(replies.iter().filter(is_of_another).count(), 7);
    assert_eq!(origin.asked().len(), 1);
}

#[test]
fn if_the_first_response_is_not_stored_the_others_ask_for_themselves() {
    let origin = Origin::counting("Cache-Control: no-store");
    let server = Server::over_origin(&origin.url());
    let address = server.address;
    let clients: Vec<_> = (0..8).map(|_| thread::spawn(move || get(address, "/"))).collect();
    let mut texts: Vec<String> = clients.into_iter().map(|client| client.join().unwrap().text().to_owned()).collect();
    texts.sort();
    assert_eq!(texts, ["1", "2", "3", "4", "5", "6", "7", "8"], "each has an answer of its own");
}

#[test]
fn a_client_that_disconnects_does_not_stop_the_fill() {
    let (arrived, wait_for_arrival) = channel();
    let (release, wait_for_release) = channel::<()>();
    let wait_for_release = Mutex::new(wait_for_release);
    let origin = Origin::raw(move |_, stream| {
        respond(stream, 200, "Cache-Control: max-age=60", 8, b"one ");
        let _ = arrived.send(());
        let _ = wait_for_release.lock().unwrap().recv();
        let _ = stream.write_all(b"page");
    });
    let server = Server::over_origin(&origin.url());
    let mut first = connect(server.address);
    send(&mut first, "GET", "/", &[]);
    wait_for_arrival.recv().unwrap();
    // Its head has come, so the fill has begun.
    let mut head = [0; 4];
    first.read_exact(&mut head).unwrap();
    drop(first);
    release.send(()).unwrap();
    let second = server.get("/");
    assert_eq!(second.text(), "one page");
    assert!(second.is_hit() || second.cache().contains("; collapsed"), "{}", second.cache());
    assert_eq!(origin.asked().len(), 1);
}

#[test]
fn a_waiter_reads_the_response_to_the_first_request() {
    let (release, wait_for_release) = channel::<()>();
    let wait_for_release = Mutex::new(wait_for_release);
    let origin = Origin::raw(move |_, stream| {
        respond(stream, 200, "Cache-Control: max-age=60", 8, b"one ");
        let _ = wait_for_release.lock().unwrap().recv();
        let _ = stream.write_all(b"page");
    });
    let server = Server::over_origin(&origin.url());
    let mut heads = Vec::new();
    let mut clients = Vec::new();
    for _ in 0..2 {
        let mut client = connect(server.address);
        send(&mut client, "GET", "/", &[]);
        heads.push(read_head(&mut client));
        clients.push(client);
    }
    release.send(()).unwrap();
    assert!(heads[1].contains("; collapsed"), "{}", heads[1]);
    for head in heads {
        assert!(head.contains("\r\ncontent-length: 8\r\n") && head.contains("\r\nvia: 1.1 "), "{head}");
        assert!(head.contains("; stored") && head.contains("; ttl="), "{head}");
    }
    for client in &mut clients {
        let mut body = Vec::new();
        client.read_to_end(&mut body).unwrap();
        assert_eq!(body, b"one page");
    }
    assert_eq!(origin.asked().len(), 1);
}

/// The head of a response, before an unfinished body.
fn read_head(client: &mut impl Read) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        client.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    String::from_utf8(head).unwrap()
}
