//! Servers that speak HTTPS, with certificates of the tests' own authority, and clients that trust it.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::authority::Authority;
use super::client::{Reply, connect, parse};
use super::server::Server;

/// A connection of a client.
pub(crate) type Client = StreamOwned<ClientConnection, TcpStream>;

impl Authority {
    /// The lines of a site for this host, with a certificate for it in a file of its name.
    pub(crate) fn site(&self, host: &str, origin: &str, rest: &str) -> String {
        let file = self.issue(&format!("{host}.pem"), &[host]);
        format!(
            "[[site]]\nhosts = [\"{host}\"]\norigins = [\"{origin}\"]\ntls = {{ certificate = '{}' }}\n{rest}\n",
            file.display()
        )
    }

    /// A server of these sites, for HTTP and for HTTPS. `rest` goes into `[server]`, and may have tables.
    pub(crate) fn serve(&self, sites: &str, rest: &str) -> Https {
        let state = self.path("state");
        Https::of(Server::configured(&format!(
            "[server]\nlisten_tls = [\"127.0.0.1:0\"]\n{rest}\n[server.tls]\nstate = '{}'\n{sites}",
            state.display()
        )))
    }

    /// What a client trusts and offers.
    pub(crate) fn config(&self, protocols: &[&str]) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate()).unwrap();
        let mut config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        config
    }

    /// A connection to this host at this address. The client checks the certificate.
    pub(crate) fn connect(&self, address: SocketAddr, host: &str) -> io::Result<Client> {
        connect_by(Arc::new(self.config(&["http/1.1"])), address, host)
    }

    /// One request for this host on a connection of its own.
    pub(crate) fn ask(&self, address: SocketAddr, host: &str, method: &str, target: &str, fields: &[&str]) -> Reply {
        let mut client = self.connect(address, host).expect("the server shakes hands");
        exchange(&mut client, host, method, target, fields)
    }

    pub(crate) fn get(&self, address: SocketAddr, host: &str, target: &str) -> Reply {
        self.ask(address, host, "GET", target, &[])
    }
}

/// A server, and its address for HTTPS.
pub(crate) struct Https {
    pub(crate) server: Server,
    pub(crate) address: SocketAddr,
}

impl Https {
    pub(crate) fn of(server: Server) -> Self {
        let address = server.announced.lines().find_map(|line| line.strip_prefix("listening on https://"));
        let address = address.and_then(|line| line.strip_suffix('/')?.parse().ok()).expect("it speaks HTTPS");
        Self { server, address }
    }
}

/// Shakes hands with the server for this host.
pub(crate) fn connect_by(config: Arc<ClientConfig>, address: SocketAddr, host: &str) -> io::Result<Client> {
    let connection = ClientConnection::new(config, ServerName::try_from(host.to_owned()).unwrap()).unwrap();
    let mut client = StreamOwned::new(connection, connect(address));
    while client.conn.is_handshaking() {
        client.conn.complete_io(&mut client.sock)?;
    }
    Ok(client)
}

/// Sends a request, and reads until the server closes the connection.
pub(crate) fn exchange(client: &mut Client, host: &str, method: &str, target: &str, fields: &[&str]) -> Reply {
    write!(client, "{method} {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n").unwrap();
    for field in fields {
        write!(client, "{field}\r\n").unwrap();
    }
    client.write_all(b"\r\n").unwrap();
    let mut bytes = Vec::new();
    // An end without `close_notify` is an error: the reply is whole only with it.
    let end = client.read_to_end(&mut bytes);
    let mut reply = parse(&bytes, method == "HEAD");
    reply.is_whole &= end.is_ok();
    reply
}
