//! A reload takes TLS or the PROXY protocol away from an address, or the whole address. Connections that wait there are still served as
//! their clients expect.
//!
//! Tunnels have all places, so that the others wait in the kernel during the reload.

use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use tempfile::TempDir;

use crate::common::admin::Socket;
use crate::common::authority::Authority;
use crate::common::client::{Reply, connect, get, parse};
use crate::common::command::eyewall;
use crate::common::https::exchange;
use crate::common::origin::Origin;
use crate::common::server::Server;

const HOST: &str = "test";
const PLACES: usize = 16;
/// More than there are workers.
const CLIENTS: usize = 6;

struct Crowded {
    server: Server,
    admin: Socket,
    folder: TempDir,
    tunnels: Vec<UnixStream>,
}

fn origin() -> Origin {
    Origin::raw(|asked, stream| {
        if asked.target != "/chat" {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\n1");
            return;
        }
        let _ = stream.write_all(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n");
        let _ = stream.read_to_end(&mut Vec::new());
    })
}

impl Crowded {
    /// `sites` is whatever follows the settings of `[server]`.
    fn start(listen: &str, sites: &str) -> Self {
        let (folder, admin) = (tempfile::tempdir().unwrap(), Socket::new());
        let file = folder.path().join("eyewall.toml");
        let mut crowded = Self {
            server: {
                std::fs::write(&file, text(&folder, &admin, listen, sites)).unwrap();
                Server::spawn(eyewall().args(["serve", "--config"]).arg(&file))
            },
            admin,
            folder,
            tunnels: Vec::new(),
        };
        for _ in 0..PLACES {
            let mut tunnel = UnixStream::connect(unix(&crowded.folder)).unwrap();
            let head = format!("GET /chat HTTP/1.1\r\nHost: {HOST}\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n");
            tunnel.write_all(head.as_bytes()).unwrap();
            let mut start = [0; 12];
            tunnel.read_exact(&mut start).unwrap();
            assert_eq!(&start, b"HTTP/1.1 101");
            crowded.tunnels.push(tunnel);
        }
        crowded
    }

    fn reload(&self, listen: &str, sites: &str) {
        let file = self.folder.path().join("eyewall.toml");
        std::fs::write(file, text(&self.folder, &self.admin, listen, sites)).unwrap();
        let reply = self.admin.ask("POST", "/reload", &[], "");
        assert_eq!(reply.status, 200, "{}", reply.text());
    }

    fn tls_address(&self) -> SocketAddr {
        let line = self.server.announced.lines().find_map(|line| line.strip_prefix("listening on https://"));
        line.and_then(|line| line.strip_suffix('/')?.parse().ok()).unwrap()
    }
}

fn unix(folder: &TempDir) -> PathBuf {
    folder.path().join("http.sock")
}

fn text(folder: &TempDir, admin: &Socket, listen: &str, sites: &str) -> String {
    let unix = format!("\"unix:{}\"", unix(folder).display());
    let listen = listen.replace("UNIX", &unix);
    let limits = format!("[server.limits]\nconnections = {PLACES}\n[cache]\nsize = \"8M\"\n");
    format!("[server]\nworkers = 2\n{listen}\n{limits}{}{sites}", admin.table())
}

/// Clients that have connected, and wait for the answers to their requests.
fn tls_clients(authority: &Authority, address: SocketAddr) -> Vec<JoinHandle<Reply>> {
    let config = Arc::new(authority.config(&["http/1.1"]));
    let client = |_| {
        let connection = ClientConnection::new(Arc::clone(&config), ServerName::try_from(HOST).unwrap()).unwrap();
        let mut client = StreamOwned::new(connection, connect(address));
        std::thread::spawn(move || exchange(&mut client, HOST, "GET", "/", &[]))
    };
    (0..CLIENTS).map(client).collect()
}

fn proxied_clients(address: SocketAddr) -> Vec<JoinHandle<Reply>> {
    let client = |_| {
        let mut client = connect(address);
        std::thread::spawn(move || {
            let words =
                b"PROXY TCP4 192.0.2.7 10.0.0.1 4660 80\r\nGET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n";
            client.write_all(words).unwrap();
            let mut bytes = Vec::new();
            client.read_to_end(&mut bytes).unwrap();
            parse(&bytes, false)
        })
    };
    (0..CLIENTS).map(client).collect()
}

fn assert_answered(clients: Vec<JoinHandle<Reply>>) {
    for client in clients {
        assert_eq!(client.join().unwrap().text(), "1");
    }
}

#[test]
fn connections_that_wait_for_tls_are_still_encrypted() {
    for becomes_clear in [false, true] {
        let (origin, authority) = (origin(), Authority::new());
        let secure = authority.site(HOST, &origin.url(), "");
        let state = format!("[server.tls]\nstate = '{}'\n", authority.path("state").display());
        let listen = "listen = [\"127.0.0.1:0\", UNIX]";
        let mut crowded =
            Crowded::start(&format!("{listen}\nlisten_tls = [\"127.0.0.1:0\"]"), &format!("{state}{secure}"));
        let address = crowded.tls_address();
        let clients = tls_clients(&authority, address);
        let clear = format!("[[site]]\nhosts = [\"{HOST}\"]\norigins = [\"{}\"]\n", origin.url());
        let listen =
            if becomes_clear { format!("listen = [\"127.0.0.1:0\", UNIX, \"{address}\"]") } else { listen.to_owned() };
        crowded.reload(&listen, &clear);
        crowded.tunnels.clear();
        assert_answered(clients);
        if becomes_clear {
            assert_eq!(get(address, "/").status, 200, "new ones aren't");
        }
    }
}

#[test]
fn connections_that_wait_with_a_proxy_header_are_still_their_clients() {
    for becomes_plain in [false, true] {
        let origin = origin();
        let site = format!("[[site]]\norigins = [\"{}\"]\n", origin.url());
        let proxy = "proxy_protocol = [\"127.0.0.1:0\"]\nproxy_protocol_from = [\"127.0.0.1\"]";
        let mut crowded = Crowded::start(&format!("listen = [\"127.0.0.1:0\", UNIX]\n{proxy}"), &site);
        let address = crowded.server.address;
        let clients = proxied_clients(address);
        let listen = if becomes_plain { "listen = [\"127.0.0.1:0\", UNIX]" } else { "listen = [UNIX]" };
        crowded.reload(listen, &site);
        crowded.tunnels.clear();
        assert_answered(clients);
        assert!(origin.asked().iter().any(|asked| asked.field("x-forwarded-for") == "192.0.2.7"));
        if becomes_plain {
            assert_eq!(get(address, "/").status, 200);
        }
    }
}
