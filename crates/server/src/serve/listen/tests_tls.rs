//! Connections over TLS at their limits. Time is paused, and advances when no task can run.

use arc_swap::ArcSwap;
use std::fs::File;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::Arc;

use eyewall::Options;
use rcgen::{CertificateParams, KeyPair};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::common::Common;
use super::handshake;
use super::tests::{SECOND, Site, place};
use crate::serve::stop::Stop;

const HOST: &str = "a";

/// A server with a certificate for [`HOST`] whose `/ready` is stored.
struct Https {
    folder: TempDir,
    certificate: CertificateDer<'static>,
}

struct Connected {
    client: DuplexStream,
    server: JoinHandle<()>,
    stop: watch::Sender<Stop>,
    common: Arc<ArcSwap<Common>>,
}

impl Https {
    fn new() -> Self {
        let (folder, key) = (tempfile::tempdir().unwrap(), KeyPair::generate().unwrap());
        let certificate = CertificateParams::new([HOST.to_owned()]).unwrap().self_signed(&key).unwrap();
        std::fs::write(folder.path().join("pem"), certificate.pem() + &key.serialize_pem()).unwrap();
        Self { folder, certificate: certificate.der().clone() }
    }

    /// Connections share it.
    fn volume(&self) -> PathBuf {
        self.folder.path().join("volume")
    }

    /// A connection whose socket holds this many bytes; `/ready` has `bytes`.
    fn connect(&self, between: usize, bytes: usize) -> Connected {
        let (pem, state) = (self.folder.path().join("pem"), self.folder.path().join("state"));
        let tls = format!("tls = {{ certificate = '{}' }}\n[server.tls]\nstate = '{}'", pem.display(), state.display());
        let source = format!("hosts = [\"{HOST}\"]\norigins = [\"http://127.0.0.1:1\"]\n{tls}");
        let cache = Options::new().size(4 << 20).survive_sigbus(true).open(self.volume()).unwrap();
        let common = Site::new().common_of(&cache, &source, "https", bytes, |shared| {
            shared.begin_tls(None, None).unwrap();
        });
        let common = Arc::new(ArcSwap::from_pointee(common));
        let (client, near) = duplex(between);
        let (stop, stopping) = watch::channel(Stop::NotYet);
        let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let server =
            tokio::spawn(handshake::serve(near, address, (place(), common.load_full()), Arc::clone(&common), stopping));
        Connected { client, server, stop, common }
    }

    async fn shake(&self, client: DuplexStream) -> TlsStream<DuplexStream> {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        TlsConnector::from(Arc::new(config)).connect(ServerName::try_from(HOST).unwrap(), client).await.unwrap()
    }
}

const READY: &str = "GET /ready HTTP/1.1\r\nHost: a\r\n\r\n";

async fn head(client: &mut TlsStream<DuplexStream>) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(client.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_handshake_has_the_time_of_a_head() {
    let https = Https::new();
    // Nothing, and half of a record.
    for begun in [&[][..], &[22, 3, 1, 2, 0, 1]] {
        let mut connected = https.connect(4 << 10, 0);
        let started = Instant::now();
        connected.client.write_all(begun).await.unwrap();
        connected.server.await.unwrap();
        assert_eq!(started.elapsed().as_secs(), 10);
        drop(connected.stop);
    }
}

#[tokio::test(start_paused = true)]
async fn a_handshake_makes_room_after_a_second_without_a_byte() {
    let connected = Https::new().connect(4 << 10, 0);
    sleep(SECOND / 2).await;
    connected.common.load().connections.make_room(None);
    sleep(SECOND / 4).await;
    assert!(!connected.server.is_finished());
    sleep(SECOND / 4).await;
    connected.common.load().connections.make_room(None);
    connected.server.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_stopping_server_waits_a_second_for_a_silent_client_and_finishes_a_handshake() {
    let https = Https::new();
    let silent = https.connect(4 << 10, 0);
    let started = Instant::now();
    silent.stop.send_replace(Stop::InOrder);
    silent.server.await.unwrap();
    assert_eq!(started.elapsed().as_secs(), 1);

    let connected = https.connect(4 << 10, 10);
    connected.stop.send_replace(Stop::InOrder);
    let mut client = https.shake(connected.client).await;
    client.write_all(READY.as_bytes()).await.unwrap();
    assert!(head(&mut client).await.starts_with("HTTP/1.1 200 "));
    let mut body = Vec::new();
    client.read_to_end(&mut body).await.unwrap();
    assert_eq!(body, b"xxxxxxxxxx");
    connected.server.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_nothing_is_disconnected_and_a_slow_one_is_not() {
    let https = Https::new();
    // The encryption keeps all of the smaller response back.
    for bytes in [40_000, 200_000] {
        let connected = https.connect(4 << 10, bytes);
        let mut client = https.shake(connected.client).await;
        client.write_all(READY.as_bytes()).await.unwrap();
        assert!(head(&mut client).await.contains(&format!("content-length: {bytes}\r\n")));
        sleep(59 * SECOND).await;
        assert!(!connected.server.is_finished(), "{bytes}");
        sleep(2 * SECOND).await;
        assert!(connected.server.is_finished(), "{bytes}");

        let connected = https.connect(4 << 10, bytes);
        let mut client = https.shake(connected.client).await;
        // The second response waits for the first one.
        client.write_all([READY, READY].concat().as_bytes()).await.unwrap();
        for _ in 0..2 {
            head(&mut client).await;
            let mut left = bytes;
            while left > 0 {
                let mut piece = vec![0; left.min(9_000)];
                client.read_exact(&mut piece).await.unwrap();
                assert!(piece.iter().all(|byte| *byte == b'x'));
                left -= piece.len();
                sleep(25 * SECOND).await;
            }
        }
        // Then it is idle, and ends with `close_notify`.
        assert_eq!(client.read_to_end(&mut Vec::new()).await.unwrap(), 0);
        connected.server.await.unwrap();
        drop(connected.stop);
    }
}

#[tokio::test(start_paused = true)]
async fn bytes_that_the_volume_loses_while_they_are_sent_are_not_made_up() {
    const BYTES: usize = 200_000;
    // The fast path sends the first of these, and hyper the others.
    for fields in ["", "Range: bytes=0-\r\n"] {
        let https = Https::new();
        let connected = https.connect(4 << 10, BYTES);
        let mut client = https.shake(connected.client).await;
        client.write_all(format!("GET /ready HTTP/1.1\r\nHost: {HOST}\r\n{fields}\r\n").as_bytes()).await.unwrap();
        head(&mut client).await;
        File::options().write(true).open(https.volume()).unwrap().set_len(0).unwrap();
        let mut body = Vec::new();
        let ended = client.read_to_end(&mut body).await;
        // Without `close_notify`, and with too few bytes.
        assert!(ended.is_err() && (1..BYTES).contains(&body.len()), "{fields}: {} bytes, {ended:?}", body.len());
        assert!(body.iter().all(|byte| *byte == b'x'), "{fields}");
        connected.server.await.unwrap();
    }
}
