//! The service manager has bound the sockets, and passes them (`LISTEN_FDS`): the server uses them instead of its own.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::common::client::{get, parse};
use crate::common::command::{eyewall, run};
use crate::common::origin::Origin;
use crate::common::server::Server;

/// `eyewall` with a passed socket. A shell gives it the number 3, and the variables its own process number.
fn passed(socket: impl Into<OwnedFd>, process: &str, words: &[&str]) -> Command {
    let mut command = Command::new("sh");
    let script = format!("exec 3<&0 </dev/null; LISTEN_FDS=1 LISTEN_PID={process} exec \"$@\"");
    command.args(["-c", &script, "sh"]).arg(eyewall().get_program()).args(["serve", "--size", "8M"]).args(words);
    command.stdin(Stdio::from(socket.into()));
    command
}

#[test]
fn a_passed_socket_takes_the_place_of_one_that_would_be_bound() {
    let origin = Origin::counting("Cache-Control: max-age=60");
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    // Clients may connect before the server starts.
    let mut early = std::net::TcpStream::connect(address).unwrap();
    early.write_all(b"GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n").unwrap();
    let words = ["--listen", &address.to_string(), "--origin", &origin.url()];
    let mut server = Server::spawn(&mut passed(socket.try_clone().unwrap(), "$$", &words));
    assert_eq!(server.address, address);
    let mut bytes = Vec::new();
    early.read_to_end(&mut bytes).unwrap();
    assert_eq!(parse(&bytes, false).text(), "1");
    assert_eq!(get(address, "/").status, 200);
    kill_process(Pid::from_child(&server.child), Signal::TERM).unwrap();
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
    // The service manager still has it, for the next server.
    assert!(std::net::TcpStream::connect(address).is_ok());
}

#[test]
fn a_passed_unix_socket_keeps_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("http.sock");
    let origin = Origin::counting("");
    let socket = UnixListener::bind(&path).unwrap();
    let address = format!("unix:{}", path.display());
    let words = ["--listen", "127.0.0.1:0", "--listen", &address, "--origin", &origin.url()];
    let mut server = Server::spawn(&mut passed(socket, "$$", &words));
    let mut stream = UnixStream::connect(&path).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n").unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    assert_eq!(parse(&bytes, false).text(), "1");
    kill_process(Pid::from_child(&server.child), Signal::TERM).unwrap();
    server.child.wait().unwrap();
    assert!(path.exists(), "it is not the server's own");
}

#[test]
fn a_passed_socket_that_is_not_configured_is_a_mistake() {
    let origin = Origin::counting("");
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap().to_string();
    let mut command = passed(socket, "$$", &["--listen", "127.0.0.1:0", "--origin", &origin.url()]);
    let output = command.output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{stderr}");
    assert!(stderr.contains(&address) && stderr.contains("not in `listen`"), "{stderr}");
}

#[test]
fn sockets_for_another_process_are_not_touched() {
    let origin = Origin::counting("");
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap().to_string();
    let words = ["--listen", "127.0.0.1:0", "--origin", &origin.url()];
    let server = Server::spawn(&mut passed(socket.try_clone().unwrap(), "1", &words));
    assert_ne!(server.address, socket.local_addr().unwrap());
    assert_eq!(server.get("/").status, 200);
    // The address is taken, and was not passed to this process.
    let taken = run(eyewall().args(["serve", "--size", "8M", "--listen", &address, "--origin", &origin.url()]), b"");
    assert!(taken.stderr.contains("another program listens there"), "{}", taken.stderr);
}
