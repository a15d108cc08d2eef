//! Requests to a server's administration.

use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::client::{Reply, parse};

/// A path for a socket, in a folder that is removed at the end.
pub(crate) struct Socket {
    folder: TempDir,
}

impl Socket {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder can be made") }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("admin.sock")
    }

    /// The table of the configuration.
    pub(crate) fn table(&self) -> String {
        format!("[server.admin]\nsocket = \"{}\"\n", self.path().display())
    }

    pub(crate) fn ask(&self, method: &str, target: &str, fields: &[&str], body: &str) -> Reply {
        exchange(UnixStream::connect(self.path()).expect("the server listens"), method, target, fields, body)
    }

    /// Reloads the configuration of the server.
    pub(crate) fn reload(&self) {
        let reply = self.ask("POST", "/reload", &[], "");
        assert_eq!(reply.status, 200, "{}", reply.text());
    }

    pub(crate) fn purge(&self, body: &str) -> Reply {
        self.ask("POST", "/purge", &[], body)
    }
}

pub(crate) fn ask_at(address: SocketAddr, method: &str, target: &str, fields: &[&str], body: &str) -> Reply {
    exchange(TcpStream::connect(address).expect("the server listens"), method, target, fields, body)
}

fn exchange(mut stream: impl Read + Write, method: &str, target: &str, fields: &[&str], body: &str) -> Reply {
    let length = format!("Content-Length: {}", body.len());
    let lines = [&["Host: localhost", "Connection: close", &length], fields].concat().join("\r\n");
    let head = format!("{method} {target} HTTP/1.1\r\n{lines}\r\n\r\n");
    // A server that refuses a body doesn't have to read it.
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    parse(&bytes, method == "HEAD")
}

/// A file that only its owner may read.
pub(crate) fn token_file(path: &Path, text: &str) {
    fs::write(path, text).expect("a file can be written");
    fs::set_permissions(path, Permissions::from_mode(0o600)).expect("it is ours");
}

/// A body of JSON.
pub(crate) fn json(reply: &Reply) -> serde_json::Value {
    assert_eq!(reply.field("content-type"), "application/json", "{reply:?}");
    serde_json::from_slice(&reply.body).expect("it is JSON")
}
