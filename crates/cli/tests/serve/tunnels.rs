//! A tunnel (after a 101, such as of WebSocket) counts as a connection, and a drain waits for it until its deadline.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use rustix::process::{Pid, Signal, kill_process};

use crate::common::client::connect;
use crate::common::origin::Origin;
use crate::common::server::Server;
use crate::common::upgrading::Upgrading;

/// An origin that sends back what it gets.
fn echo() -> Origin {
    Origin::raw(|asked, stream| {
        if asked.target != "/chat" {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\n1");
            return;
        }
        let head = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n";
        let _ = stream.write_all(head.as_bytes());
        // It ends when the client does.
        let _ = std::io::copy(&mut &*stream, &mut &*stream);
    })
}

fn server(origin: &Origin, settings: &str) -> Server {
    Server::configured(&format!("[server]\nworkers = 2\n{settings}\n[[site]]\norigins = [\"{}\"]\n", origin.url()))
}

/// The connection if it became a tunnel.
fn tunnel(address: std::net::SocketAddr) -> Option<TcpStream> {
    let mut stream = connect(address);
    let request = "GET /chat HTTP/1.1\r\nHost: test\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n";
    stream.write_all(request.as_bytes()).ok()?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).ok()?;
        head.extend(byte);
    }
    assert!(head.starts_with(b"HTTP/1.1 101 "), "{}", String::from_utf8_lossy(&head));
    is_echoed(&mut stream).then_some(stream)
}

fn is_echoed(tunnel: &mut TcpStream) -> bool {
    let mut echoed = [0; 5];
    tunnel.write_all(b"hello").is_ok() && tunnel.read_exact(&mut echoed).is_ok() && echoed == *b"hello"
}

fn terminate(server: &Server) {
    kill_process(Pid::from_child(&server.child), Signal::TERM).unwrap();
    // The server refuses new connections as soon as it has seen the signal.
    while TcpStream::connect(server.address).is_ok() {}
}

#[test]
fn it_counts_to_the_connections_of_its_client() {
    let origin = echo();
    let server = server(&origin, "[server.limits]\nconnections_per_client = 2");
    let [mut first, second] = [(); 2].map(|()| tunnel(server.address).unwrap());
    assert!(tunnel(server.address).is_none(), "its client has two already");
    assert!(is_echoed(&mut first));
    drop(second);
    let mut third = loop {
        if let Some(third) = tunnel(server.address) {
            break third;
        }
    };
    assert!(is_echoed(&mut first) && is_echoed(&mut third));
}

#[test]
fn it_never_makes_room_for_other_connections() {
    let origin = echo();
    let server = server(&origin, "[server.limits]\nconnections = 16");
    let mut tunnels: Vec<TcpStream> = (0..15).map(|_| tunnel(server.address).unwrap()).collect();
    for _ in 0..20 {
        let mut kept = connect(server.address);
        kept.write_all(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n").unwrap();
        kept.read_exact(&mut [0]).unwrap();
        std::mem::forget(kept);
    }
    assert!(tunnels.iter_mut().all(is_echoed));
}

#[test]
fn a_server_that_ends_waits_for_it() {
    let origin = echo();
    let mut server = server(&origin, "drain_timeout = \"1h\"");
    let mut tunnel = tunnel(server.address).unwrap();
    terminate(&server);
    assert!(is_echoed(&mut tunnel));
    drop(tunnel);
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
}

#[test]
fn the_deadline_of_a_drain_closes_it() {
    let origin = echo();
    let mut server = server(&origin, "drain_timeout = \"50ms\"");
    let mut open = tunnel(server.address).unwrap();
    terminate(&server);
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
    assert_eq!(open.read(&mut [0]).unwrap_or(0), 0);

    let site = format!("[[site]]\norigins = [\"{}\"]\n", origin.url());
    let mut upgrading = Upgrading::start(&format!("drain_timeout = \"50ms\"\n{site}"));
    let mut old = tunnel(upgrading.address).unwrap();
    upgrading.upgrade();
    assert!(upgrading.first_ends().success());
    assert_eq!(old.read(&mut [0]).unwrap_or(0), 0);
    assert!(is_echoed(&mut tunnel(upgrading.address).unwrap()), "the new process has tunnels, too");
}

#[test]
fn an_upgrade_leaves_it_to_the_old_process() {
    let origin = echo();
    let site = format!("[[site]]\norigins = [\"{}\"]\n", origin.url());
    let mut upgrading = Upgrading::start(&format!("drain_timeout = \"1h\"\n{site}"));
    let mut old = tunnel(upgrading.address).unwrap();
    upgrading.upgrade();
    assert!(is_echoed(&mut old));
    assert!(upgrading.first().try_wait().unwrap().is_none());
    drop(old);
    assert!(upgrading.first_ends().success());
}
