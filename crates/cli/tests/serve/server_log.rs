//! The server's own log: its form, its levels while it runs, and no secret in any line.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};

use crate::common::admin::Socket;
use crate::common::client::connect;
use crate::common::command::eyewall;
use crate::common::origin::{Origin, nobody};
use crate::common::server::Server;

/// A server whose log is in a file.
struct Logged {
    server: Server,
    log: PathBuf,
    _folder: tempfile::TempDir,
}

impl Logged {
    fn start(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (file, log) = (folder.path().join("eyewall.toml"), folder.path().join("log"));
        fs::write(&file, format!("[cache]\nsize = \"8M\"\n[server]\nlisten = [\"127.0.0.1:0\"]\n{text}")).unwrap();
        let mut command = eyewall();
        command.args(["serve", "--config"]).arg(&file);
        let server = Server::spawn(command.stderr(Stdio::from(fs::File::create(&log).unwrap())));
        Self { server, log, _folder: folder }
    }

    /// Ends the server, and returns what it has logged.
    fn end(mut self) -> String {
        kill_process(Pid::from_child(&self.server.child), Signal::TERM).unwrap();
        self.server.child.wait().unwrap();
        fs::read_to_string(&self.log).unwrap()
    }
}

/// Sends these bytes, and waits for the end.
fn send(address: SocketAddr, request: &str) {
    let mut stream = connect(address);
    // The server may close before it has read everything.
    let _ = stream.write_all(request.as_bytes()).and_then(|()| stream.read_to_end(&mut Vec::new()));
}

const SECRET: &str = "s3cr3t";

/// Sends requests with secrets to all sites, sound ones and others.
fn send_secrets(address: SocketAddr) {
    let secrets =
        "Cookie: a=s3cr3t\r\nAuthorization: Bearer s3cr3t\r\nProxy-Authorization: s3cr3t\r\nReferer: /?s3cr3t";
    for host in ["good", "broken", "short", "dead", "files", "nobody"] {
        for line in [
            "GET /?q=s3cr3t",
            "GET /token/x?q=s3cr3t",
            "HEAD /?s3cr3t",
            "POST /?s3cr3t",
            "PURGE /?s3cr3t",
            "TRACE /?s3cr3t",
            "QUERY /?s3cr3t",
            "BAD@ /?s3cr3t",
        ] {
            for version in ["HTTP/1.1", "HTTP/1.0", "HTTP/7.7"] {
                send(
                    address,
                    &format!(
                        "{line} {version}\r\nHost: {host}\r\n{secrets}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                    ),
                );
            }
        }
    }
    send(
        address,
        &format!(
            "GET /?s3cr3t HTTP/1.1\r\nHost: good\r\nConnection: close\r\nCookie: {}\r\n\r\n",
            SECRET.repeat(20_000)
        ),
    );
    send(
        address,
        &format!(
            "GET /?s3cr3t HTTP/1.1\r\nHost: good\r\nConnection: close\r\n{}\r\n",
            "Cookie: s3cr3t\r\n".repeat(300)
        ),
    );
    send(
        address,
        "GET /?s3cr3t HTTP/1.1\r\nHost: good\r\nConnection: upgrade, close\r\nUpgrade: s3cr3t\r\nCookie: s3cr3t\r\n\r\n",
    );
}

#[test]
fn no_line_has_a_query_a_cookie_or_an_authorization() {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    fs::write(&token, format!("{SECRET}\n")).unwrap();
    let socket = Socket::new();
    let good = Origin::counting("Cache-Control: max-age=60\r\nSet-Cookie: a=s3cr3t\r\nLocation: /?s3cr3t");
    let broken = Origin::raw(|_, stream| {
        let _ = stream
            .write_all(b"HTTP/1.1 200 OK\r\nSet-Cookie: a=s3cr3t\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n");
    });
    let short = Origin::raw(|_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\nSet-Cookie: a=s3cr3t\r\n\r\nshort");
    });
    let site = |host: &str, origin: &str| format!("[[site]]\nhosts = [\"{host}\"]\norigins = [\"{origin}\"]\n");
    let logged = Logged::start(&format!(
        "purge_token_file = \"{}\"\n{}[server.log]\nlevel = \"trace\"\n{}{}{}{}\
         [site.origin]\ntimeout = \"1s\"\n[[site]]\nhosts = [\"files\"]\nroot = \"{}\"\n",
        token.display(),
        socket.table(),
        site("good", &good.url()),
        site("broken", &broken.url()),
        site("short", &short.url()),
        site("dead", &format!("http://{}", nobody())),
        folder.path().display(),
    ));
    send_secrets(logged.server.address);
    for (method, target, body) in [
        ("GET", "/status?s3cr3t", ""),
        ("POST", "/purge?wait=s3cr3t", "{}"),
        ("POST", "/purge", "{\"urls\": [\"http://good/?s3cr3t\"]}"),
        ("POST", "/explain", "{\"url\": \"http://good/?s3cr3t\", \"headers\": [[\"Cookie\", \"s3cr3t\"]]}"),
        ("POST", "/reload?s3cr3t", ""),
    ] {
        socket.ask(method, target, &["Cookie: s3cr3t", "Authorization: Bearer s3cr3t"], body);
    }
    let log = logged.end();
    let lines: Vec<&str> = log.lines().filter(|line| line.contains(SECRET)).collect();
    assert!(lines.is_empty(), "{lines:#?}");
    assert!(log.lines().count() > 50 && log.contains("administration"), "{log}");
}

#[test]
fn json_lines_and_levels_that_change_while_it_runs() {
    let socket = Socket::new();
    let dead = format!("http://{}", nobody());
    let logged = Logged::start(&format!(
        "{}[server.log]\nlevel = \"error\"\nformat = \"json\"\n[[site]]\norigins = [\"{dead}\"]\n",
        socket.table()
    ));
    logged.server.get("/one");
    let log = |path: &Path| fs::read_to_string(path).unwrap();
    assert_eq!(log(&logged.log), "", "the origin fails, which is a warning");
    let reply = socket.ask("POST", "/log", &[], "error,origin=debug");
    assert_eq!((reply.status, reply.text()), (200, "{\"level\":\"error,origin=debug\"}\n"), "{reply:?}");
    logged.server.get("/two");
    for wrong in ["loud", "origin=loud", "orign=debug"] {
        assert_eq!(socket.ask("POST", "/log", &[], wrong).status, 400);
    }
    assert_eq!(socket.ask("GET", "/log", &[], "").status, 405);
    socket.reload();
    let log = logged.end();
    let objects: Vec<serde_json::Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of_origin = |object: &&serde_json::Value| object["module"] == "eyewall_server::serve::origin::origins";
    let first = objects.iter().find(of_origin).unwrap();
    assert!(first["origin"] == dead.as_str() && first["message"].is_string() && first["time"].is_string(), "{first}");
    assert!(["debug", "warn"].contains(&first["level"].as_str().unwrap()), "{first}");
    assert!(objects.iter().all(|object| object["module"].as_str().unwrap().contains("origin")), "{log}");
}
