//! Where descriptors run out, idle kept connections make room for new clients, and that is told once.

use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::common::client::connect;
use crate::common::origin::Origin;
use crate::common::server::Server;

#[test]
fn each_client_is_answered_although_all_keep_their_connections() {
    let origin = Origin::counting("Cache-Control: max-age=600");
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 64; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_eyewall"), "serve"]);
    command.args(["--listen", "127.0.0.1:0", "--size", "8M", "--origin", &origin.url()]);
    let mut server = Server::spawn(command.stderr(Stdio::piped()));
    let mut kept = Vec::new();
    for _ in 0..200 {
        let mut client = connect(server.address);
        client.write_all(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n1") {
            let mut byte = [0];
            client.read_exact(&mut byte).expect("the client is answered");
            answer.extend(byte);
        }
        assert!(answer.starts_with(b"HTTP/1.1 200 "));
        kept.push(client);
    }
    drop(kept);
    kill_process(Pid::from_child(&server.child), Signal::TERM).unwrap();
    server.child.wait().unwrap();
    let mut told = String::new();
    server.child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    assert_eq!(told.matches("could not accept a connection").count(), 1, "{told}");
}
