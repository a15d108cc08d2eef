//! When descriptors run out, Eyewall closes the connections that have been idle for longest, and logs that once.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::common::client::connect;
use crate::common::command::program;
use crate::common::origin::Origin;
use crate::common::server::Server;

/// A server with this many descriptors and these arguments. Its idle timeout is too long to close a connection.
fn server(descriptors: u32, workers: u32) -> (Server, Origin, tempfile::TempDir) {
    let origin = Origin::counting("Cache-Control: max-age=600");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("eyewall.toml");
    let limits = "[server.limits]\nidle_timeout = \"1h\"\nhead_timeout = \"1h\"";
    let text = format!(
        "[cache]\nsize = \"8M\"\n[server]\nlisten = [\"127.0.0.1:0\"]\nworkers = {workers}\n{limits}\n[[site]]\norigins = [\"{}\"]\n",
        origin.url()
    );
    std::fs::write(&file, text).unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -n {descriptors}; exec \"$@\"")]);
    command.arg("sh").arg(program()).args(["serve", "--config"]).arg(file);
    (Server::spawn(command.stderr(Stdio::piped())), origin, folder)
}

/// Sends a request, and keeps the connection.
fn ask(client: &mut TcpStream) {
    try_ask(client).expect("the client is answered");
}

fn try_ask(client: &mut TcpStream) -> io::Result<()> {
    client.write_all(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n")?;
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n1") {
        let mut byte = [0];
        client.read_exact(&mut byte)?;
        answer.extend(byte);
    }
    assert!(answer.starts_with(b"HTTP/1.1 200 "));
    Ok(())
}

fn is_open(client: &mut TcpStream) -> bool {
    client.set_nonblocking(true).unwrap();
    let read = client.read(&mut [0]);
    client.set_nonblocking(false).unwrap();
    matches!(read, Err(error) if error.kind() == ErrorKind::WouldBlock)
}

#[test]
fn each_client_is_answered_although_all_keep_their_connections() {
    let (mut server, _origin, _folder) = server(64, 2);
    let mut kept: Vec<TcpStream> = Vec::new();
    for _ in 0..200 {
        let mut client = connect(server.address);
        ask(&mut client);
        // The most recently used ones stay.
        for client in kept.iter_mut().rev().take(4) {
            assert!(is_open(client));
        }
        kept.push(client);
    }
    drop(kept);
    kill_process(Pid::from_child(&server.child), Signal::TERM).unwrap();
    server.child.wait().unwrap();
    let mut told = String::new();
    server.child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    assert_eq!(told.matches("could not accept a connection").count(), 1, "{told}");
}

#[test]
fn connections_without_a_request_make_room_too() {
    let (server, _origin, _folder) = server(64, 2);
    let silent: Vec<_> = (0..100).map(|_| connect(server.address)).collect();
    // If the machine hangs for a second, a new client counts as one without a request. It then tries again.
    assert!((0..5).any(|_| try_ask(&mut connect(server.address)).is_ok()), "the client is answered");
    drop(silent);
}

#[test]
fn idle_connections_of_all_workers_make_room() {
    // Enough workers that some have no idle connection, while others have them all.
    let (server, _origin, _folder) = server(160, 16);
    let mut kept = Vec::new();
    for _ in 0..300 {
        let mut client = connect(server.address);
        ask(&mut client);
        kept.push(client);
    }
}
