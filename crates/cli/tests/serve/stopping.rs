//! A signal stops the server gracefully: it answers the requests in flight, and then ends.

use std::io::Read as _;
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::mpsc::channel;

use rustix::process::{Pid, Signal, kill_process};

use crate::common::client::{connect, parse, send};
use crate::common::origin::{Origin, respond};
use crate::common::server::{Server, Site};

fn signal(server: &Server, signal: Signal) {
    kill_process(Pid::from_child(&server.child), signal).unwrap();
}

#[test]
fn both_signals_end_an_idle_server_gracefully() {
    for number in [Signal::TERM, Signal::INT] {
        let site = Site::new();
        let mut server = Server::over_folder(site.path());
        let idle = connect(server.address);
        signal(&server, number);
        assert_eq!(server.child.wait().unwrap().code(), Some(0));
        drop(idle);
    }
}

#[test]
fn connections_that_the_kernel_has_accepted_are_answered() {
    let site = Site::new();
    site.write("index.html", "hello");
    let mut server = Server::over_folder(site.path());
    signal(&server, Signal::STOP);
    let clients: Vec<TcpStream> = (0..50)
        .map(|_| {
            let mut client = connect(server.address);
            send(&mut client, "GET", "/", &[]);
            client
        })
        .collect();
    signal(&server, Signal::TERM);
    signal(&server, Signal::CONT);
    for mut client in clients {
        let mut bytes = Vec::new();
        client.read_to_end(&mut bytes).unwrap();
        assert_eq!(parse(&bytes, false).text(), "hello");
    }
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_running_request_is_answered_first() {
    let (arrived, wait_for_arrival) = channel();
    let (release, wait_for_release) = channel::<()>();
    let wait_for_release = Mutex::new(wait_for_release);
    let origin = Origin::raw(move |_, stream| {
        arrived.send(()).unwrap();
        let _ = wait_for_release.lock().unwrap().recv();
        respond(stream, 200, "", 4, b"done");
    });
    let mut server = Server::over_origin(&origin.url());
    let mut client = connect(server.address);
    send(&mut client, "GET", "/", &[]);
    wait_for_arrival.recv().unwrap();

    signal(&server, Signal::TERM);
    // The server refuses new connections as soon as it has seen the signal.
    while TcpStream::connect(server.address).is_ok() {}
    release.send(()).unwrap();

    let mut bytes = Vec::new();
    client.read_to_end(&mut bytes).unwrap();
    assert_eq!(parse(&bytes, false).text(), "done");
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
}
