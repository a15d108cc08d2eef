//! A site gets its certificate from Pebble, an ACME server, by the four lines that a site needs, and a newer one when time has gone on.
//!
//! The tests look for Pebble as those of `crates/tls` do, and say that they are skipped without it.

#![cfg(test)]

#[expect(dead_code, reason = "these tests need a part of it")]
#[path = "../../tls/tests/acme/answering.rs"]
mod answering;
#[expect(dead_code, reason = "these tests need a part of it")]
#[path = "common/client.rs"]
mod client;
#[expect(dead_code, reason = "these tests need a part of it")]
#[path = "../../tls/tests/acme/pebble.rs"]
mod pebble;

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use answering::Answering;
use client::{Reply, ask};
use eyewall_server::Server;
use eyewall_server::clock::SteppedClock;
use pebble::{PATIENCE, Pebble};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, SignatureScheme, StreamOwned};
use serde_json::{Value, json};
use tempfile::TempDir;

const HOST: &str = "example.org";
const DAY: Duration = Duration::from_hours(24);

/// Takes any certificate: Pebble makes its root when it starts.
#[derive(Debug)]
struct AnyCertificate;

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        aws_lc_rs::default_provider().signature_verification_algorithms.supported_schemes()
    }
}

/// The port of an authority, whose connections go on to a server that starts later.
fn port_of(server: &Arc<OnceLock<SocketAddr>>) -> Answering {
    let server = Arc::clone(server);
    Answering::tcp(move |client| {
        let Some(address) = server.get().copied() else { return };
        std::thread::spawn(move || forward(&client, &TcpStream::connect(address).unwrap()));
    })
}

fn forward(client: &TcpStream, server: &TcpStream) {
    let copy = |mut from: &TcpStream, mut to: &TcpStream| {
        let _ = io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Write);
    };
    std::thread::scope(|scope| {
        scope.spawn(|| copy(client, server));
        copy(server, client);
    });
}

/// A server of a folder, with the authority at this address.
struct Site {
    folder: TempDir,
    clock: Arc<SteppedClock>,
}

impl Site {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("root")).unwrap();
        std::fs::write(folder.path().join("root/page"), "hello").unwrap();
        std::fs::write(folder.path().join("token"), "secret").unwrap();
        Self { folder, clock: Arc::new(SteppedClock::new(SystemTime::now())) }
    }

    fn start(&self, directory: &str, roots: &Path, challenge: &str, rest: &str) -> Server {
        let path = |name: &str| self.folder.path().join(name).display().to_string();
        // Above the four lines is what differs here from an authority that everybody trusts, and from ports 80 and 443.
        let text = format!(
            "[server]\nlisten = [\"127.0.0.1:0\"]\nlisten_tls = [\"127.0.0.1:0\"]\nworkers = 2\n\
             admin = {{ listen = \"127.0.0.1:0\", token_file = '{}' }}\n\
             tls = {{ state = '{}' }}\n\
             acme = {{ directory = \"{directory}\", ca_file = '{}', challenges = [\"{challenge}\"] }}\n\
             [cache]\nsize = \"8M\"\n\
             [[site]]\nhosts = [\"{HOST}\"]\nroot = '{}'\ntls = \"auto\"\n{rest}\n",
            path("token"),
            path("state"),
            roots.display(),
            path("root"),
        );
        Server::builder().toml(&text).unwrap().clock(self.clock.clone()).start().unwrap()
    }
}

/// The first certificate of the server's site.
fn status(server: &Server) -> Value {
    let admin = server.admin().unwrap().trim_start_matches("http://").trim_end_matches('/').parse().unwrap();
    let reply = ask(admin, "GET", "/status", &["Authorization: Bearer secret"]);
    let status: Value = serde_json::from_slice(&reply.body).unwrap();
    status["sites"][0]["certificates"][0].clone()
}

/// Shakes hands; `None` without a certificate for the host.
fn connect(server: &Server) -> Option<StreamOwned<ClientConnection, TcpStream>> {
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate))
        .with_no_client_auth();
    let connection = ClientConnection::new(Arc::new(config), ServerName::try_from(HOST).unwrap()).unwrap();
    let mut client = StreamOwned::new(connection, TcpStream::connect(server.tls_addresses()[0]).unwrap());
    while client.conn.is_handshaking() {
        client.conn.complete_io(&mut client.sock).ok()?;
    }
    Some(client)
}

fn page(server: &Server) -> Reply {
    let mut client = connect(server).unwrap();
    write!(client, "GET /page HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n").unwrap();
    let mut bytes = Vec::new();
    client.read_to_end(&mut bytes).unwrap();
    client::parse(&bytes, false)
}

fn certificate(server: &Server) -> Option<Vec<u8>> {
    Some(connect(server)?.conn.peer_certificates().unwrap()[0].to_vec())
}

fn wait_until(what: &str, server: &Server, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "not {what}: {}", status(server));
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A certificate comes, is served, and is renewed after two thirds of its life.
fn is_got_and_renewed(challenge: &str, rest: &str) {
    let Some(program) = pebble::program() else { return };
    let (site, [http, https]) = (Site::new(), [0, 1].map(|_| Arc::new(OnceLock::new())));
    let (http_port, https_port) = (port_of(&http), port_of(&https));
    let dns = Answering::dns(site.folder.path().to_owned());
    let pebble = Pebble::start(&program, http_port.port(), https_port.port(), dns.address(), &json!({}));
    let server = site.start(&pebble.directory(), &pebble.roots(), challenge, rest);
    http.set(server.addresses()[0]).unwrap();
    https.set(server.tls_addresses()[0]).unwrap();
    // The server may have begun its first order before its ports were known here.
    site.clock.step(Duration::from_mins(2));
    wait_until("served", &server, || certificate(&server).is_some());
    assert_eq!(page(&server).text(), "hello");
    wait_until("shown", &server, || status(&server)["state"] == "valid");
    let shown = status(&server);
    assert_eq!((&shown["names"], &shown["source"], &shown["error"]), (&json!([HOST]), &json!("acme"), &Value::Null));
    assert!(shown["not_after"].as_str().is_some() && shown["next"].as_str() < shown["not_after"].as_str(), "{shown}");

    let first = certificate(&server);
    site.clock.step(61 * DAY);
    wait_until("renewed", &server, || certificate(&server) != first);
    assert_eq!(page(&server).text(), "hello");
    assert_eq!(pebble.issued(), 2);
}

#[test]
fn by_a_handshake() {
    is_got_and_renewed("tls-alpn-01", "");
}

#[test]
fn by_http_although_requests_are_redirected() {
    is_got_and_renewed("http-01", "redirect_to_https = true");
}

#[test]
fn servers_share_what_one_of_them_gets() {
    let Some(program) = pebble::program() else { return };
    let (site, http) = (Site::new(), Arc::new(OnceLock::new()));
    let (http_port, dns) = (port_of(&http), Answering::dns(site.folder.path().to_owned()));
    let pebble = Pebble::start(&program, http_port.port(), http_port.port(), dns.address(), &json!({}));
    let start = || site.start(&pebble.directory(), &pebble.roots(), "http-01", "");
    let servers = [start(), start()];
    // The authority asks the second one, whichever of them has ordered.
    http.set(servers[1].addresses()[0]).unwrap();
    for server in &servers {
        wait_until("served", server, || {
            // A server that finds another at it looks again later.
            site.clock.step(Duration::from_secs(1));
            certificate(server).is_some()
        });
    }
    assert_eq!(certificate(&servers[0]), certificate(&servers[1]));
    assert_eq!(pebble.issued(), 1);
}

#[test]
fn an_authority_that_is_away_is_shown_and_http_goes_on() {
    let site = Site::new();
    // Any certificate will do: nobody answers there.
    let key = rcgen::KeyPair::generate().unwrap();
    let roots = site.folder.path().join("roots");
    let names = vec![HOST.to_owned()];
    std::fs::write(&roots, rcgen::CertificateParams::new(names).unwrap().self_signed(&key).unwrap().pem()).unwrap();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let server = site.start(&format!("https://{free}/dir"), &roots, "http-01", "");
    wait_until("failing", &server, || status(&server)["state"] == "failing");
    let shown = status(&server);
    assert!(shown["error"].as_str().unwrap().contains("can't reach 127.0.0.1"), "{shown}");
    assert!(shown["failures"].as_u64() >= Some(1) && shown["not_after"].is_null() && shown["next"].is_string());
    assert!(connect(&server).is_none());
    assert_eq!(ask(server.addresses()[0], "GET", &format!("http://{HOST}/page"), &[]).text(), "hello");
    // No order waits for this token, so the site answers.
    let challenge = format!("http://{HOST}/.well-known/acme-challenge/abc");
    assert_eq!(ask(server.addresses()[0], "GET", &challenge, &[]).status, 404);
}
