//! Somebody overwrites the header of a running server's volume. The server notices that within about a second, logs it once, and goes
//! on without the volume. The next start renames it.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::process::Stdio;

use crate::common::admin::Socket;
use crate::common::client::Reply;
use crate::common::command::Volume;
use crate::common::origin::Origin;
use crate::common::server::Server;

const FAILED: &str = "Eyewall; fwd=uri-miss; fwd-status=200; detail=volume-failed";

fn assert_noticed(volume: &Volume, bytes: &[u8]) {
    let origin = Origin::counting("Cache-Control: max-age=60");
    let (log, socket) = (volume.folder().join("log"), Socket::new());
    let mut command = volume.command(["serve", "--listen", "127.0.0.1:0", "--origin", &origin.url(), "--admin"]);
    command.arg(socket.path()).stderr(Stdio::from(File::create(&log).unwrap()));
    let mut server = Server::spawn(&mut command);
    assert!(server.get_until("/", Reply::is_hit).is_hit());
    File::options().write(true).open(volume.path()).unwrap().write_all_at(bytes, 0).unwrap();
    server.get_until("/", |reply| reply.cache() == FAILED);
    for target in ["/", "/other"] {
        let reply = server.get(target);
        assert_eq!((reply.status, reply.cache()), (200, FAILED), "nothing is said to be stored");
    }
    let reply = socket.ask("GET", "/status", &[], "");
    assert_eq!((reply.status, reply.text().contains("its header was overwritten")), (503, true), "{reply:?}");
    assert!(server.child.try_wait().unwrap().is_none());
    let log = fs::read_to_string(log).unwrap();
    let told: Vec<&str> = log.lines().filter(|line| line.contains("logged once")).collect();
    let is_clear = |line: &str| line.contains("its header was overwritten") && line.contains("site.eye");
    assert!(matches!(told[..], [line] if is_clear(line)), "{log}");
}

#[test]
fn the_server_goes_on_without_the_volume() {
    for bytes in [vec![0; 4096], vec![0xa5; 16]] {
        assert_noticed(&Volume::new(), &bytes);
    }
}

#[test]
fn an_idle_server_notices_it() {
    let origin = Origin::counting("Cache-Control: max-age=60");
    let volume = Volume::new();
    let mut command = volume.command(["serve", "--listen", "127.0.0.1:0", "--origin", &origin.url()]);
    let mut server = Server::spawn(command.stderr(Stdio::piped()));
    File::options().write(true).open(volume.path()).unwrap().write_all_at(&[0; 4096], 0).unwrap();
    let mut line = String::new();
    let log = server.child.stderr.take().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(log), &mut line).unwrap();
    assert!(line.contains("its header was overwritten") && line.contains("logged once"), "{line}");
}
