//! An https origin: Eyewall accepts it if a trusted authority has certified its name; otherwise clients get 502.

use std::net::TcpStream;
use std::sync::Arc;

use rustls::{ServerConfig, ServerConnection, Stream};

use crate::common::authority::Authority;
use crate::common::client::Reply;
use crate::common::command::{eyewall, run};
use crate::common::origin::{Origin, read, respond};
use crate::common::server::Server;

/// An origin whose responses have the target and the requested host, and can be stored.
fn answer(tls: &Arc<ServerConfig>, stream: &mut TcpStream) {
    let mut connection = ServerConnection::new(Arc::clone(tls)).unwrap();
    let mut secure = Stream::new(&mut connection, stream);
    if let Some(asked) = read(&mut secure) {
        let body = format!("{} of {}", asked.target, asked.field("host"));
        respond(&mut secure, 200, "Cache-Control: max-age=60", body.len(), body.as_bytes());
        connection.send_close_notify();
        let _ = connection.write_tls(stream);
    }
}

fn secure_origin(tls: Arc<ServerConfig>) -> Origin {
    Origin::silent(move |stream| answer(&tls, stream))
}

fn over(origin: &Origin, host: &str, authority: &Authority) -> Server {
    let url = format!("https://{host}:{}", origin.address.port());
    Server::start(["--origin", &url, "--origin-ca", authority.file().to_str().unwrap()])
}

#[test]
fn its_name_and_its_authority_are_right() {
    let authority = Authority::new();
    let origin = secure_origin(authority.vouch("127.0.0.1"));
    let server = over(&origin, "127.0.0.1", &authority);
    assert_eq!(server.get("/page").text(), "/page of test");
    server.get_until("/page", Reply::is_hit);
}

#[test]
fn its_name_or_its_authority_is_wrong() {
    let (authority, other) = (Authority::new(), Authority::new());
    for tls in [authority.vouch("example.org"), other.vouch("127.0.0.1")] {
        let origin = secure_origin(tls);
        let reply = over(&origin, "127.0.0.1", &authority).get("/");
        assert_eq!(reply.status, 502);
        assert_eq!(reply.text(), "502 Bad Gateway: a secure connection to the origin failed\n");
        assert_eq!(reply.cache(), "Eyewall; fwd=uri-miss; detail=origin-insecure");
    }
}

#[test]
fn it_does_not_speak_tls() {
    let authority = Authority::new();
    let origin = Origin::silent(|stream| respond(stream, 400, "", 0, b""));
    assert_eq!(over(&origin, "127.0.0.1", &authority).get("/").status, 502);
}

#[test]
fn a_wrong_file_of_authorities_is_reported_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let (empty, absent) = (folder.path().join("empty.pem"), folder.path().join("absent.pem"));
    std::fs::write(&empty, "").unwrap();
    for (file, code, words) in [(empty, 3, "has no usable certificate"), (absent, 2, "can't be read")] {
        let mut command = eyewall();
        command.args(["serve", "--listen", "127.0.0.1:0", "--size", "8M", "--origin", "https://127.0.0.1:1"]);
        let ended = run(command.arg("--origin-ca").arg(file), b"");
        assert_eq!((ended.code, ended.text()), (code, ""));
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
    }
}
