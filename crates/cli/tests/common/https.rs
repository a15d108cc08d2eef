//! Servers that speak HTTPS, with certificates of the tests' own authority, and clients that trust it.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{CertificateParams, CertifiedIssuer, KeyPair};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tempfile::TempDir;

use super::client::{Reply, connect, parse};
use super::server::Server;

/// An authority, and a folder with the files of a server.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: TempDir,
}

/// A connection of a client.
pub(crate) type Client = StreamOwned<ClientConnection, TcpStream>;

impl Authority {
    pub(crate) fn new() -> Self {
        let mut authority = CertificateParams::new(Vec::new()).unwrap();
        authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
        Self { issuer, folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a certificate for these names, and its key, into one file, in the place of an older one.
    pub(crate) fn issue(&self, file: &str, names: &[&str]) -> PathBuf {
        self.issue_with(file, names, |_| ())
    }

    /// The same with changes to the certificate.
    pub(crate) fn issue_with(
        &self,
        file: &str,
        names: &[&str],
        change: impl FnOnce(&mut CertificateParams),
    ) -> PathBuf {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let key = KeyPair::generate().unwrap();
        let mut certificate = CertificateParams::new(names).unwrap();
        change(&mut certificate);
        let certificate = certificate.signed_by(&key, &self.issuer).unwrap();
        let (path, new) = (self.path(file), self.path("new"));
        std::fs::write(&new, certificate.pem() + &key.serialize_pem()).unwrap();
        std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::fs::rename(&new, &path).unwrap();
        path
    }

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
        roots.add(self.issuer.der().clone()).unwrap();
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

/// Replaces a file by another in one step.
pub(crate) fn replace(path: &Path, content: &[u8]) {
    let new = path.with_extension("new");
    std::fs::write(&new, content).unwrap();
    std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::rename(&new, path).unwrap();
}
