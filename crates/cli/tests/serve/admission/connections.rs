//! The number of connections is bounded, in all and for each client.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::common::client::connect;
use crate::common::command::eyewall;
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

#[test]
fn one_connection_makes_room_for_one() {
    let origin = Origin::counting("Cache-Control: max-age=600");
    let server = server(&origin, "connections = 16");
    let open = |count: usize| -> Vec<TcpStream> {
        let open = (0..count).map(|_| {
            let mut client = connect(server.address);
            assert!(is_answered(&mut client));
            client
        });
        open.collect()
    };
    let mut first = open(16);
    let mut second = open(4);
    assert!(second.iter_mut().all(is_answered));
    let left = first.iter_mut().filter_map(|client| is_answered(client).then_some(())).count();
    // A client that closes late on a busy machine makes one more close.
    assert!((8..=12).contains(&left), "{left} of 16 are open");
}

#[test]
fn each_address_has_its_number() {
    let origin = Origin::counting("Cache-Control: max-age=600");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("eyewall.toml");
    let text = format!(
        "[server]\nlisten = [\"127.0.0.1:0\", \"127.0.0.1:0\"]\nworkers = 2\n[server.limits]\nidle_timeout = \"1h\"\n\
         connections_per_listener = 2\n[cache]\nsize = \"8M\"\n[[site]]\norigins = [\"{}\"]\n",
        origin.url()
    );
    std::fs::write(&file, text).unwrap();
    let server = Server::spawn(eyewall().args(["serve", "--config"]).arg(&file));
    let addresses: Vec<SocketAddr> = server
        .announced
        .lines()
        .filter_map(|line| line.strip_prefix("listening on http://")?.strip_suffix('/')?.parse().ok())
        .collect();
    let mut kept = Vec::new();
    for address in [0, 0, 1, 1, 0] {
        let mut client = connect(addresses[address]);
        assert!(is_answered(&mut client));
        kept.push((address, client));
    }
    let open = |kept: &mut [(usize, TcpStream)], wanted: usize| {
        let at = kept.iter_mut().filter(|(address, _)| *address == wanted);
        at.filter_map(|(_, client)| is_answered(client).then_some(())).count()
    };
    let first = open(&mut kept, 0);
    assert!((1..=2).contains(&first), "{first} of 3 are open");
    assert_eq!(open(&mut kept, 1), 2, "the other address is as before");
}
