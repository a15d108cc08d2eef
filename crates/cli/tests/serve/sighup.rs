//! SIGHUP doesn't end the server: it reloads the configuration, and reopens the access log.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};

use crate::common::client::connect;
use crate::common::command::eyewall;
use crate::common::origin::Origin;
use crate::common::server::Server;

#[test]
fn the_server_goes_on_and_reopens_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let (log, aside) = (folder.path().join("access.log"), folder.path().join("access.log.1"));
    let origin = Origin::counting("Cache-Control: max-age=60");
    let mut command = eyewall();
    command.args(["serve", "--listen", "127.0.0.1:0", "--origin", &origin.url(), "--access-log"]).arg(&log);
    let mut server = Server::spawn(command.stderr(Stdio::piped()));
    let kept = connect(server.address);
    std::fs::rename(&log, &aside).unwrap();
    kill_process(Pid::from_child(&server.child), Signal::HUP).unwrap();
    let mut told = String::new();
    BufReader::new(server.child.stderr.take().unwrap()).read_line(&mut told).unwrap();
    assert!(told.contains("reloaded the configuration"), "{told}");
    while !log.exists() {
        std::thread::yield_now();
    }
    assert_eq!(server.get("/").text(), "1");
    drop(kept);
}
