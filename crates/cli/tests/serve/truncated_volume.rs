//! Somebody truncates the volume of a running server. The server goes on without it, from the origin or the folder, and logs that once.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::common::admin::Socket;
use crate::common::client::Reply;
use crate::common::command::Volume;
use crate::common::origin::Origin;
use crate::common::server::{Server, Site};

/// The server, and the file that takes its log.
fn serve(volume: &Volume, source: &[&str]) -> (Server, PathBuf) {
    let log = volume.folder().join("log");
    let mut command: Command = volume.command(["serve", "--listen", "127.0.0.1:0"]);
    command.args(source).stderr(Stdio::from(File::create(&log).unwrap()));
    (Server::spawn(&mut command), log)
}

fn truncate(volume: &Volume, bytes: u64) {
    File::options().write(true).open(volume.path()).unwrap().set_len(bytes).unwrap();
}

fn assert_logged_once(log: &PathBuf) {
    let log = fs::read_to_string(log).unwrap();
    let told: Vec<&str> = log.lines().filter(|line| line.contains("logged once")).collect();
    assert!(matches!(told[..], [line] if line.contains("truncated") && line.contains("site.eye")), "{log}");
}

fn page() -> Vec<u8> {
    (0..=250).cycle().take(200_000).collect()
}

#[test]
fn responses_go_on_from_the_origin() {
    let origin = Origin::answering(|_| (200, "Cache-Control: max-age=60".to_owned(), page()));
    // Truncates all of it, or the values without the index.
    for bytes in [0, 256 << 10] {
        let volume = Volume::new();
        let (mut server, log) = serve(&volume, &["--origin", &origin.url()]);
        for number in 0..10 {
            let reply = server.get_until(&format!("/{number}"), Reply::is_hit);
            assert!(reply.body == page());
        }
        truncate(&volume, bytes);
        for round in 0..3 {
            for number in 0..10 {
                let reply = server.get(&format!("/{number}"));
                assert!(reply.status == 200 && reply.is_whole && reply.body == page(), "round {round}: {number}");
                assert!(!reply.is_hit() || round == 0);
            }
        }
        let reply = server.get("/0");
        assert_eq!(reply.cache(), "Eyewall; fwd=uri-miss; fwd-status=200; detail=volume-failed");
        assert_eq!(server.ask("HEAD", "/0", &[]).status, 200);
        assert!(server.child.try_wait().unwrap().is_none());
        assert_logged_once(&log);
    }
}

#[test]
fn responses_go_on_from_the_folder() {
    let site = Site::new();
    site.write("page", page());
    let volume = Volume::new();
    let (server, log) = serve(&volume, &["--root", site.path().to_str().unwrap()]);
    assert!(server.get_until("/page", Reply::is_hit).body == page());
    truncate(&volume, 0);
    for _ in 0..3 {
        let reply = server.get("/page");
        assert!(reply.status == 200 && reply.is_whole && reply.body == page());
        assert_eq!(reply.cache(), "Eyewall; fwd=uri-miss; detail=volume-failed");
    }
    assert_logged_once(&log);
}

#[test]
fn a_purge_fails() {
    let origin = Origin::answering(|_| (200, "Cache-Control: max-age=60".to_owned(), page()));
    let volume = Volume::new();
    let socket = Socket::new();
    let (server, _) = serve(
        &volume,
        &["--origin", &origin.url(), "--admin", socket.path().to_str().unwrap(), "--purge-from", "127.0.0.1"],
    );
    server.get_until("/", Reply::is_hit);
    truncate(&volume, 0);
    server.get_until("/", |reply| reply.cache().ends_with("detail=volume-failed"));
    for fields in [&[][..], &["X-Soft-Purge: 1"], &["Xkey: a"], &["X-Purge-Method: regex"]] {
        let reply = server.ask("PURGE", "/", fields);
        assert_eq!((reply.status, reply.text().contains("could not be purged")), (503, true), "{fields:?}: {reply:?}");
    }
    for (method, target, body) in [("POST", "/purge", r#"{"everything": true}"#), ("GET", "/status", "")] {
        let reply = socket.ask(method, target, &[], body);
        assert_eq!((reply.status, reply.text().contains("truncated")), (503, true), "{target}: {reply:?}");
    }
}
