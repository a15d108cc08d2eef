//! Every server answers as the benchmark expects. It sends the bytes and the length of a file, and refuses everything
//! else, on the port that its first line names, until a signal ends it.

#![cfg(test)]

#[path = "../../bench-http/tests/common/started.rs"]
mod started;

use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use started::Started;
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_bench-frameworks");
const SERVERS: [&str; 5] =
    ["rocket-namedfile", "rocket-eyewall", "tower-http-servedir", "tower-eyewall", "actix-files"];
const OURS: [&str; 2] = ["rocket-eyewall", "tower-eyewall"];
/// A test gives up waiting after this time.
const PATIENCE: Duration = Duration::from_mins(1);
const SMALL: &[u8] = b"a small file";

struct Server {
    started: Started,
    name: &'static str,
}

impl Server {
    fn start(name: &'static str, root: &Path) -> Self {
        Self::with(name, root, &[])
    }

    fn with(name: &'static str, root: &Path, options: &[&str]) -> Self {
        let mut command = Command::new(PROGRAM);
        command.args(["--server", name, "--workers", "2"]).args(options).arg("--root").arg(root);
        let started = Started::of(command.stdin(Stdio::null()));
        assert!(started.line.starts_with(&format!("{name} on http://127.0.0.1:")), "{}", started.line);
        Self { started, name }
    }

    fn get(&self, path: &str) -> (String, Vec<u8>) {
        self.started.get(path)
    }

    fn end(mut self, signal: Signal) {
        let process = Pid::from_child(&self.started.process);
        kill_process(process, signal).expect("it lives");
        let ended = self.started.process.wait().expect("a status");
        assert!(ended.success(), "{}: {ended}", self.name);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // If it has already ended, there is nothing to kill.
        let _ = self.started.process.kill();
        let _ = self.started.process.wait();
    }
}

/// A folder with a small file, and a file that is larger than any buffer.
fn folder() -> (TempDir, Vec<u8>) {
    let folder = tempfile::tempdir().expect("a folder");
    let large: Vec<u8> = (0..3_000_001_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    std::fs::write(folder.path().join("small.bin"), SMALL).expect("a file");
    std::fs::write(folder.path().join("large.bin"), &large).expect("a file");
    (folder, large)
}

#[test]
fn every_server_answers_by_the_bytes_of_a_file_and_their_length() {
    let (folder, large) = folder();
    for name in SERVERS {
        let server = Server::start(name, folder.path());
        // A file is cached after the first or the second request.
        for _ in 0..3 {
            for (path, bytes) in [("/files/small.bin", SMALL), ("/files/large.bin", &large)] {
                let (head, body) = server.get(path);
                assert!(head.starts_with("http/1.1 200 ok\r\n"), "{name}: {head}");
                assert!(head.contains(&format!("\r\ncontent-length: {}\r\n", bytes.len())), "{name}: {head}");
                assert!(body == bytes, "{name} {path}: {} bytes", body.len());
            }
        }
        server.end(Signal::TERM);
    }
}

#[test]
fn a_volume_has_what_was_asked_for() {
    let (folder, _) = folder();
    for name in OURS {
        let volume = folder.path().join(name);
        let server =
            Server::with(name, folder.path(), &["--volume", volume.to_str().expect("UTF-8"), "--size", "16777216"]);
        let has = || {
            let cache = eyewall::Options::new().create(false).open(&volume).expect("a volume");
            eyewall_files::FileCache::new(cache).contains(folder.path().join("small.bin")).expect("a file")
        };
        assert!(!has(), "{name}");
        // A file that was just written isn't stored.
        let deadline = Instant::now() + PATIENCE;
        while server.get("/files/small.bin").1 == SMALL && !has() {
            assert!(Instant::now() < deadline, "{name} keeps nothing");
        }
        assert!(has(), "{name}");
        server.end(Signal::TERM);
    }
}

#[test]
fn what_is_no_file_is_not_found() {
    let (folder, _) = folder();
    for name in SERVERS {
        let server = Server::start(name, folder.path());
        for path in ["/", "/small.bin", "/files/none.bin", "/files/../Cargo.toml"] {
            let (head, _) = server.get(path);
            assert!(head.starts_with("http/1.1 4"), "{name} {path}: {head}");
        }
        server.end(Signal::INT);
    }
}

#[test]
fn what_cannot_be_served_is_refused_with_a_reason() {
    let (folder, _) = folder();
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    for name in SERVERS {
        let refusal = |root: &Path, listen: &str| {
            let mut command = Command::new(PROGRAM);
            let output = command.args(["--server", name, "--listen", listen, "--root"]).arg(root).output();
            let output = output.expect("bench-frameworks");
            assert!(output.status.code() == Some(1) && output.stdout.is_empty(), "{output:?}");
            String::from_utf8(output.stderr).expect("text")
        };
        let said = refusal(folder.path(), &address);
        assert!(said.starts_with(&format!("bench-frameworks: listening on {address}: ")), "{name}: {said}");
        let said = refusal(&folder.path().join("small.bin"), "127.0.0.1:0");
        assert!(said.contains("small.bin is no folder"), "{name}: {said}");
    }
    for name in OURS {
        let mut command = Command::new(PROGRAM);
        command.args(["--server", name, "--volume", "no/such/folder/volume", "--root"]).arg(folder.path());
        let output = command.output().expect("bench-frameworks");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.code() == Some(1) && said.starts_with("bench-frameworks: the volume: "),
            "{name}: {said}"
        );
    }
}
