//! The number of connections is bounded, in all and for each client.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::common::client::connect;
use crate::common::origin::Origin;
use crate::common::server::Server;

const PATIENCE: Duration = Duration::from_mins(1);

fn server(origin: &Origin, limits: &str) -> Server {
    let limits = format!("[server]\nworkers = 2\n[server.limits]\nidle_timeout = \"1h\"\n{limits}\n");
    Server::configured(&format!("{limits}[[site]]\norigins = [\"{}\"]\n", origin.url()))
}

/// Sends a request and keeps the connection. False if the server closes it.
fn is_answered(client: &mut TcpStream) -> bool {
    let mut answer = Vec::new();
    let sent = client.write_all(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    while sent.is_ok() && !answer.ends_with(b"\r\n\r\n1") {
        let mut byte = [0];
        if client.read_exact(&mut byte).is_err() {
            break;
        }
        answer.extend(byte);
    }
    answer.starts_with(b"HTTP/1.1 200 ")
}

#[test]
fn a_client_has_no_more_than_its_number() {
    let origin = Origin::counting("Cache-Control: max-age=600");
    let server = server(&origin, "connections_per_client = 4");
    let mut kept: Vec<TcpStream> = (0..4).map(|_| connect(server.address)).collect();
    assert!(kept.iter_mut().all(is_answered));
    assert!(!is_answered(&mut connect(server.address)), "it has four already");
    assert!(kept.iter_mut().all(is_answered), "the others are as before");
    kept.pop();
    let began = Instant::now();
    while !is_answered(&mut connect(server.address)) {
        assert!(began.elapsed() < PATIENCE, "the place of a closed connection isn't free");
    }
}

#[test]
fn idle_connections_make_room_for_new_ones() {
    let origin = Origin::counting("Cache-Control: max-age=600");
    let server = server(&origin, "connections = 16");
    let mut kept: Vec<TcpStream> = Vec::new();
    for _ in 0..60 {
        let mut client = connect(server.address);
        assert!(is_answered(&mut client));
        kept.push(client);
    }
    let open = kept.iter_mut().filter_map(|client| is_answered(client).then_some(())).count();
    assert!((1..=16).contains(&open), "{open} of 60 are open");
}
