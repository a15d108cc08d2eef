//! Many clients want the same page at the same time, and the cache has none: the origin makes it once.

use std::io::{Read as _, Write as _};
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
    // Those that come later find it stored, so that it doesn't matter how many have come by now.
    release.send(()).unwrap();
    let replies: Vec<_> = clients.into_iter().map(|client| client.join().unwrap()).collect();
    assert!(replies.iter().all(|reply| reply.text() == "once"));
    let is_of_another = |reply: &&Reply| reply.is_hit() || reply.cache().contains("; collapsed");
    assert_eq!(replies.iter().filter(is_of_another).count(), 7);
    assert_eq!(origin.asked().len(), 1);
}

#[test]
fn when_the_first_gets_nothing_to_store_the_others_ask_for_themselves() {
    let origin = Origin::counting("Cache-Control: no-store");
    let server = Server::over_origin(&origin.url());
    let address = server.address;
    let clients: Vec<_> = (0..8).map(|_| thread::spawn(move || get(address, "/"))).collect();
    let mut texts: Vec<String> = clients.into_iter().map(|client| client.join().unwrap().text().to_owned()).collect();
    texts.sort();
    assert_eq!(texts, ["1", "2", "3", "4", "5", "6", "7", "8"], "each has an answer of its own");
}

#[test]
fn a_client_that_goes_away_does_not_stop_the_fill() {
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
    // Its head has come, so that the fill has begun.
    let mut head = [0; 4];
    first.read_exact(&mut head).unwrap();
    drop(first);
    release.send(()).unwrap();
    let second = server.get("/");
    assert_eq!(second.text(), "one page");
    assert!(second.is_hit() || second.cache().contains("; collapsed"), "{}", second.cache());
    assert_eq!(origin.asked().len(), 1);
}
