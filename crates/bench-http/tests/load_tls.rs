//! The client asks servers that speak TLS: which certificates it trusts, and what it resumes.

#![cfg(test)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::Value;
use tempfile::TempDir;

/// More than a record of TLS has, so that a body comes in several.
const BODY_BYTES: usize = 100_000;

fn bench_http(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bench-http")).args(arguments).output().expect("bench-http")
}

/// A folder with certificates of the program's own making.
fn certificates() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let made = bench_http(&["certificate", folder.path().to_str().expect("text")]);
    assert!(made.status.success(), "{made:?}");
    folder
}

/// A server that answers every request by the same body.
fn serve(folder: &Path) -> SocketAddr {
    let chain = CertificateDer::pem_file_iter(folder.join("server.pem")).expect("a file");
    let chain = chain.collect::<Result<_, _>>().expect("certificates");
    let key = PrivateKeyDer::from_pem_file(folder.join("server.key")).expect("a key");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().expect("versions");
    let config = Arc::new(config.with_no_client_auth().with_single_cert(chain, key).expect("a certificate"));
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let config = Arc::clone(&config);
            std::thread::spawn(move || answer(stream.expect("a connection"), config));
        }
    });
    address
}

fn answer(stream: TcpStream, config: Arc<ServerConfig>) {
    let mut stream = StreamOwned::new(ServerConnection::new(config).expect("a connection"), stream);
    loop {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            // The client is done, or doesn't trust the certificate.
            let Ok(1) = stream.read(&mut byte) else { return };
            head.push(byte[0]);
        }
        let is_last = head.windows(8).any(|version| version == b"HTTP/1.0");
        let connection = if is_last { "close" } else { "keep-alive" };
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {BODY_BYTES}\r\nConnection: {connection}\r\n\r\n");
        let written = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&vec![b'x'; BODY_BYTES]));
        if written.and_then(|()| stream.flush()).is_err() || is_last {
            stream.conn.send_close_notify();
            let _ = stream.flush();
            return;
        }
    }
}

fn load(server: SocketAddr, ca: &Path, options: &[&str]) -> Output {
    let mut reference = tempfile::NamedTempFile::new().expect("a file");
    reference.write_all(&vec![b'x'; BODY_BYTES]).expect("a reference");
    let (reference, ca) = (reference.path().to_str().expect("text"), ca.to_str().expect("text"));
    let address = format!("https://localhost:{}/page", server.port());
    let fixed = ["load", "--reference", reference, "--ca", ca, "--seconds", "60", &address];
    bench_http(&[&fixed[..], options].concat())
}

fn line(output: &Output) -> Value {
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("a line of JSON")
}

#[test]
fn kept_connections_get_whole_answers() {
    let folder = certificates();
    let server = serve(folder.path());
    let got = line(&load(server, &folder.path().join("ca.pem"), &["--connections", "3", "--at-most", "30"]));
    assert_eq!((&got["requests"], &got["resumed"], &got["errors"]), (&30.into(), &0.into(), &serde_json::json!({})));
    assert!(got["bytes"].as_u64().expect("a number") > 30 * BODY_BYTES as u64, "{got}");
}

#[test]
fn new_connections_resume_sessions_only_where_that_is_wanted() {
    let folder = certificates();
    let server = serve(folder.path());
    let ca = folder.path().join("ca.pem");
    let (alone, many) = (["--anew", "--connections", "1"], ["--at-most", "20"]);
    let got = line(&load(server, &ca, &[&alone[..], &many].concat()));
    assert_eq!((&got["requests"], &got["resumed"]), (&20.into(), &0.into()), "{got}");
    let got = line(&load(server, &ca, &[&alone[..], &many, &["--resume"]].concat()));
    // All except the first.
    assert_eq!((&got["requests"], &got["resumed"]), (&20.into(), &19.into()), "{got}");
}

#[test]
fn a_certificate_of_another_root_is_refused() {
    let (folder, other) = (certificates(), certificates());
    let server = serve(folder.path());
    let output = load(server, &other.path().join("ca.pem"), &["--connections", "1", "--at-most", "1"]);
    assert!(!output.status.success() && output.stdout.is_empty(), "{output:?}");
    let got = line(&load(server, &other.path().join("ca.pem"), &["--anew", "--connections", "1", "--at-most", "2"]));
    assert_eq!((&got["requests"], &got["errors"]), (&0.into(), &serde_json::json!({"tls": 2})));
}

#[test]
fn https_and_a_root_belong_together() {
    let folder = certificates();
    let ca = folder.path().join("ca.pem");
    let (reference, ca) = (ca.to_str().expect("text"), ca.to_str().expect("text"));
    for arguments in [
        ["load", "--reference", reference, "https://localhost:1/"].as_slice(),
        &["load", "--reference", reference, "--ca", ca, "http://localhost:1/"],
    ] {
        let output = bench_http(arguments);
        assert!(String::from_utf8_lossy(&output.stderr).contains("--ca"), "{output:?}");
    }
}
