//! Only its owner may open the socket of the administration, and it never blocks the next server.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};

use crate::common::admin::Socket;
use crate::common::command::{Ended, eyewall, run};
use crate::common::server::{Server, Site};

fn server(site: &Site, socket: &Path) -> Server {
    Server::start(["--root".as_ref(), site.path().as_os_str(), "--admin".as_ref(), socket.as_os_str()])
}

/// The end of a server that doesn't start.
fn refused(site: &Site, socket: &Path) -> Ended {
    run(eyewall().args(["serve", "--listen", "127.0.0.1:0", "--root"]).arg(site.path()).arg("--admin").arg(socket), b"")
}

#[test]
fn only_its_owner_may_open_it_and_it_is_removed_with_its_server() {
    let (site, socket) = (Site::new(), Socket::new());
    let mut server = server(&site, &socket.path());
    assert_eq!(std::fs::metadata(socket.path()).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(server.announced.contains(&format!("admin        {}\n", socket.path().display())));
    assert_eq!(socket.ask("GET", "/status", &[], "").status, 200);
    kill_process(Pid::from_child(&server.child), Signal::TERM).unwrap();
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
    assert!(!socket.path().exists());
}

#[test]
fn the_socket_of_a_dead_server_is_replaced() {
    let (site, socket) = (Site::new(), Socket::new());
    let mut dead = server(&site, &socket.path());
    dead.child.kill().unwrap();
    dead.child.wait().unwrap();
    assert!(socket.path().exists(), "it had no time to remove it");
    let _living = server(&site, &socket.path());
    assert_eq!(socket.ask("GET", "/status", &[], "").status, 200);
}

#[test]
fn the_socket_of_a_running_server_is_not() {
    let (site, socket) = (Site::new(), Socket::new());
    let first = server(&site, &socket.path());
    let ended = refused(&site, &socket.path());
    assert_eq!((ended.code, ended.text()), (3, ""));
    assert!(ended.stderr.contains("another server uses this socket"), "{}", ended.stderr);
    assert_eq!(socket.ask("GET", "/status", &[], "").status, 200);

    // A server doesn't remove a file that has taken the place of its own.
    std::fs::remove_file(socket.path()).unwrap();
    let _other = UnixListener::bind(socket.path()).unwrap();
    kill_process(Pid::from_child(&first.child), Signal::TERM).unwrap();
    let mut first = first;
    first.child.wait().unwrap();
    assert!(socket.path().exists());
}

#[test]
fn another_file_is_not_changed() {
    let (site, socket) = (Site::new(), Socket::new());
    std::fs::write(socket.path(), "dear").unwrap();
    let ended = refused(&site, &socket.path());
    assert_eq!(ended.code, 3);
    assert!(ended.stderr.contains("not a socket"), "{}", ended.stderr);
    assert_eq!(std::fs::read_to_string(socket.path()).unwrap(), "dear");
    let nowhere = refused(&site, &socket.path().join("below/a.sock"));
    assert_eq!(nowhere.code, 2);
    assert!(nowhere.stderr.contains("the folder of the socket"), "{}", nowhere.stderr);
}
