//! Clients shake hands with servers of the configuration, in memory: who gets which certificate, how they speak, and what resumes.

#![cfg(test)]

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use eyewall_tls::clock::SystemClock;
use eyewall_tls::{
    Certificates, HostFiles, HostIdentities, Identity, IdentityFiles, MinimumVersion, Tickets, Watched, server_config,
};
use rcgen::{CertificateParams, CertifiedIssuer, KeyPair};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::ServerName;
use rustls::version::{TLS12, TLS13};
use rustls::{
    ClientConfig, ClientConnection, HandshakeKind, NamedGroup, ProtocolVersion, RootCertStore, ServerConfig,
    ServerConnection, SupportedProtocolVersion,
};
use tempfile::TempDir;

/// An authority of our own making, and a folder with the files of a server.
struct Site {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: TempDir,
    certificates: Arc<Certificates>,
}

impl Site {
    fn new() -> Self {
        let mut authority = CertificateParams::new(Vec::new()).unwrap();
        authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
        let (folder, certificates) = (tempfile::tempdir().unwrap(), Arc::new(Certificates::new(None)));
        Self { issuer, folder, certificates }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes chain and key for names, in one file.
    fn issue(&self, file: &str, names: &[&str]) -> IdentityFiles {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &self.issuer).unwrap();
        let (path, new) = (self.path(file), self.path("new"));
        std::fs::write(&new, certificate.pem() + &key.serialize_pem()).unwrap();
        std::fs::rename(&new, &path).unwrap();
        IdentityFiles { certificate: path.clone(), key: path, ocsp: None }
    }

    fn replace(&self, sites: &[&[&str]]) {
        let hosts = sites.iter().enumerate().map(|(number, names)| {
            let identity = Identity::load(&self.issue(&format!("{number}.pem"), names)).unwrap();
            HostIdentities { hosts: Vec::new(), identities: vec![Arc::new(identity)] }
        });
        self.certificates.replace(&hosts.collect::<Vec<_>>());
    }

    /// A server, as a process of its own would have it.
    fn server(&self, minimum: MinimumVersion) -> Arc<ServerConfig> {
        let tickets = Tickets::open(&self.path("tickets"), Arc::new(SystemClock)).unwrap();
        server_config(self.certificates.clone(), Arc::new(tickets), minimum).unwrap()
    }

    /// A client that trusts the authority.
    fn client(&self, versions: &[&'static SupportedProtocolVersion]) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).unwrap();
        ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_protocol_versions(versions)
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth()
    }
}

/// A handshake, and a byte in each direction, after which a client has its tickets.
fn connect(
    client: &Arc<ClientConfig>,
    server: &Arc<ServerConfig>,
    host: &str,
) -> Result<(ClientConnection, ServerConnection), rustls::Error> {
    let mut client = ClientConnection::new(client.clone(), ServerName::try_from(host.to_owned()).unwrap()).unwrap();
    let mut server = ServerConnection::new(server.clone()).unwrap();
    client.writer().write_all(b"?").unwrap();
    server.writer().write_all(b"!").unwrap();
    let mut wire = Vec::new();
    loop {
        wire.clear();
        while client.wants_write() {
            client.write_tls(&mut wire).unwrap();
        }
        let mut is_quiet = wire.is_empty();
        let mut received = &wire[..];
        while !received.is_empty() {
            server.read_tls(&mut received).unwrap();
            if let Err(error) = server.process_new_packets() {
                wire.clear();
                server.write_tls(&mut wire).unwrap();
                client.read_tls(&mut &wire[..]).unwrap();
                client.process_new_packets().unwrap_err();
                return Err(error);
            }
        }
        wire.clear();
        while server.wants_write() {
            server.write_tls(&mut wire).unwrap();
        }
        is_quiet &= wire.is_empty();
        let mut received = &wire[..];
        while !received.is_empty() {
            client.read_tls(&mut received).unwrap();
            client.process_new_packets()?;
        }
        if is_quiet {
            break;
        }
    }
    let mut byte = [0];
    client.reader().read_exact(&mut byte).unwrap();
    server.reader().read_exact(&mut byte).unwrap();
    Ok((client, server))
}

#[test]
fn a_client_gets_the_certificate_of_the_host_that_it_names() {
    let site = Site::new();
    site.replace(&[&["one.example"], &["*.two.example"]]);
    let (server, client) = (site.server(MinimumVersion::Tls12), Arc::new(site.client(&[&TLS13, &TLS12])));
    // The client itself checks the name.
    for host in ["one.example", "www.two.example"] {
        connect(&client, &server, host).unwrap();
    }
    for host in ["unknown.example", "two.example"] {
        connect(&client, &server, host).unwrap_err();
    }
    // By address there is no SNI, and so comes the certificate of the first site: not that of 192.0.2.7.
    let error = connect(&client, &server, "192.0.2.7").unwrap_err();
    assert!(error.to_string().contains("one.example"), "{error}");
    site.replace(&[&["192.0.2.7"], &["one.example"]]);
    connect(&client, &server, "192.0.2.7").unwrap();
}

#[test]
fn the_newest_version_is_spoken_and_the_oldest_can_be_ruled_out() {
    let site = Site::new();
    site.replace(&[&["one.example"]]);
    let (old, both) = (Arc::new(site.client(&[&TLS12])), Arc::new(site.client(&[&TLS12, &TLS13])));
    let version = |client, minimum| {
        connect(client, &site.server(minimum), "one.example").map(|(client, _)| client.protocol_version().unwrap())
    };
    assert_eq!(version(&old, MinimumVersion::Tls12), Ok(ProtocolVersion::TLSv1_2));
    assert_eq!(version(&both, MinimumVersion::Tls12), Ok(ProtocolVersion::TLSv1_3));
    assert_eq!(version(&both, MinimumVersion::Tls13), Ok(ProtocolVersion::TLSv1_3));
    version(&old, MinimumVersion::Tls13).unwrap_err();
    let (client, _) = connect(&both, &site.server(MinimumVersion::Tls12), "one.example").unwrap();
    assert_eq!(client.negotiated_key_exchange_group().unwrap().name(), NamedGroup::X25519MLKEM768);
}

#[test]
fn http2_goes_before_http1_and_neither_is_forced() {
    let site = Site::new();
    site.replace(&[&["one.example"]]);
    let server = site.server(MinimumVersion::Tls12);
    for (offered, chosen) in
        [(&["http/1.1", "h2"][..], Some(&b"h2"[..])), (&["http/1.1"], Some(b"http/1.1")), (&[], None)]
    {
        let mut client = site.client(&[&TLS13]);
        client.alpn_protocols = offered.iter().map(|name| name.as_bytes().to_vec()).collect();
        let (client, _) = connect(&Arc::new(client), &server, "one.example").unwrap();
        assert_eq!(client.alpn_protocol(), chosen);
    }
    // Without challenges nobody validates anything.
    let mut authority = site.client(&[&TLS13]);
    authority.alpn_protocols = vec![eyewall_tls::ACME_TLS.to_vec()];
    connect(&Arc::new(authority), &server, "one.example").unwrap_err();
}

#[test]
fn another_process_resumes_a_session_and_takes_no_early_data() {
    for version in [&TLS12, &TLS13] {
        let site = Site::new();
        site.replace(&[&["one.example"], &["two.example"]]);
        let (one, other) = (site.server(MinimumVersion::Tls12), site.server(MinimumVersion::Tls12));
        let mut client = site.client(&[version]);
        client.enable_early_data = true;
        let client = Arc::new(client);
        let kind = |server, host| {
            let (client, server) = connect(&client, server, host).unwrap();
            assert!(!client.is_early_data_accepted());
            assert_eq!(client.handshake_kind(), server.handshake_kind());
            server.handshake_kind().unwrap()
        };
        assert_ne!(kind(&one, "one.example"), HandshakeKind::Resumed);
        assert_eq!(kind(&other, "one.example"), HandshakeKind::Resumed);
        assert_ne!(kind(&one, "two.example"), HandshakeKind::Resumed);
        // A restart.
        let restarted = site.server(MinimumVersion::Tls12);
        assert_eq!(kind(&restarted, "one.example"), HandshakeKind::Resumed);
        // Another file of keys: a full handshake, and no failure.
        std::fs::remove_file(site.path("tickets")).unwrap();
        assert_ne!(kind(&site.server(MinimumVersion::Tls12), "one.example"), HandshakeKind::Resumed);
    }
}

#[test]
fn a_client_may_ask_for_more_tickets_and_gets_two_unasked() {
    let site = Site::new();
    site.replace(&[&["one.example"]]);
    let server = site.server(MinimumVersion::Tls13);
    let client = Arc::new(site.client(&[&TLS13]));
    let (connection, _) = connect(&client, &server, "one.example").unwrap();
    assert_eq!(connection.tls13_tickets_received(), 2);
}

#[test]
fn certificates_change_under_load_without_a_failed_handshake() {
    let site = Site::new();
    let files = site.issue("site.pem", &["one.example"]);
    let mut watched =
        Watched::open(vec![HostFiles { hosts: Vec::new(), files: vec![files], may_be_missing: false }]).unwrap();
    watched.publish(&site.certificates);
    let server = site.server(MinimumVersion::Tls12);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        connect(&Arc::new(site.client(&[&TLS13])), &server, "one.example").unwrap();
                    }
                })
            })
            .collect();
        for _ in 0..20 {
            site.issue("site.pem", &["one.example"]);
            assert_eq!(watched.look(&site.certificates).len(), 1);
            connect(&Arc::new(site.client(&[&TLS13])), &server, "one.example").unwrap();
            spoil(&site.path("site.pem"));
            assert_eq!(watched.look(&site.certificates).len(), 1);
            connect(&Arc::new(site.client(&[&TLS13])), &server, "one.example").unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
        for client in clients {
            client.join().unwrap();
        }
    });
}

/// Cuts a file off, as a writer does that is at it.
fn spoil(path: &Path) {
    let content = std::fs::read(path).unwrap();
    std::fs::write(path, &content[..content.len() / 3]).unwrap();
}
