//! What fails is tried again, later each time, and says why.

use std::io::{BufRead as _, BufReader, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use eyewall_tls::acme::{Acme, AcmeSettings, ChallengeKind};
use eyewall_tls::clock::{Clock as _, SteppedClock};
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::answering::Answering;
use crate::site::{HOUR, Site, set, wait, wait_failing, wait_valid};

#[test]
fn a_challenge_that_fails_is_explained_and_another_kind_is_tried() {
    let Some(mut site) = Site::new(ChallengeKind::Http01) else { return };
    site.settings.challenges = vec![ChallengeKind::TlsAlpn01, ChallengeKind::Http01];
    let names = &["example.org"];
    let acme = site.silent_acme(&[names]);
    let error = wait_failing(&acme, 1).error.unwrap();
    assert!(error.contains("could not validate example.org by tls-alpn-01: "), "{error}");
    site.step(HOUR / 12);
    let error = wait_failing(&acme, 2).error.unwrap();
    assert!(error.contains("could not validate example.org by http-01: ") && error.contains("404"), "{error}");
    // What the orders left is gone.
    for kind in ["http", "tls"] {
        let folder = acme.files(&set(names)).certificate.parent().unwrap().join("../challenges").join(kind);
        assert_eq!(std::fs::read_dir(folder).unwrap().count(), 0);
    }
    drop(acme);
    // The operator mends it.
    let acme = site.acme(&[names]);
    site.step(HOUR / 12);
    wait_valid(&acme);
}

#[test]
fn an_order_that_is_given_up_leaves_nothing_and_is_not_repeated_at_once() {
    let Some(site) = Site::new(ChallengeKind::Http01) else { return };
    let names = &["example.org"];
    // The server takes the authority's question, and gives no answer.
    let acme = site.slow_acme(&[names]);
    let answers = acme.files(&set(names)).certificate.parent().unwrap().join("../challenges/http");
    let count = || std::fs::read_dir(&answers).unwrap().count();
    wait(&acme, "asked", |_| count() == 1 && site.pebble.count("Attempting to validate w/ HTTP") > 0);
    drop(acme);
    assert_eq!(count(), 0);
    // A server that is restarted again and again doesn't spend the limits of its authority.
    let status = wait_failing(&site.acme(&[names]), 1);
    assert_eq!(status.error.as_deref(), Some("a process ended during the order"));
    assert!(status.next.unwrap() > site.now());
    site.step(HOUR);
    wait_valid(&site.acme(&[names]));
}

#[test]
fn a_record_is_cleared_though_its_command_was_ended() {
    let Some(mut site) = Site::new(ChallengeKind::Dns01) else { return };
    site.settings.dns_command = Some(site.dns_command("sleep 1000"));
    let acme = site.acme(&[&["example.org"]]);
    wait(&acme, "set", |_| !site.dns_records().is_empty());
    drop(acme);
    assert_eq!(site.dns_calls(), ["set _acme-challenge.example.org", "clear _acme-challenge.example.org"]);
    assert_eq!(site.dns_records(), "");
}

#[test]
fn an_authority_that_fails_is_asked_less_and_less() {
    let authority = Broken::new("500 Internal Server Error", "");
    let clock = Arc::new(SteppedClock::new(std::time::SystemTime::now()));
    let acme = authority.acme(&clock);
    for failures in 1..=12 {
        let status = wait_failing(&acme, failures);
        assert!(status.error.as_ref().unwrap().contains("127.0.0.1 answered 500"), "{status:?}");
        assert_eq!(authority.asked.load(Ordering::Relaxed), failures as usize);
        let next = status.next.unwrap().duration_since(clock.now()).unwrap().as_secs();
        let expected = (60 << (failures - 1)).min(6 * 3600);
        assert!((expected * 3 / 4 - 1..=expected * 5 / 4 + 1).contains(&next), "{failures}: {next} seconds");
        clock.step(std::time::Duration::from_secs(next + 1));
    }
}

#[test]
fn an_authority_that_says_when_to_come_again_is_obeyed_over_a_restart() {
    let authority = Broken::new("429 Too Many Requests", "Retry-After: 36000\r\n");
    let clock = Arc::new(SteppedClock::new(std::time::SystemTime::now()));
    let status = wait_failing(&authority.acme(&clock), 1);
    let next = status.next.unwrap().duration_since(clock.now()).unwrap();
    assert!(next > 9 * HOUR && next <= 10 * HOUR, "{next:?}");
    clock.step(9 * HOUR);
    let acme = authority.acme(&clock);
    let again = wait_failing(&acme, 1);
    assert_eq!((again.failures, again.next), (1, status.next));
    assert_eq!(authority.asked.load(Ordering::Relaxed), 1);
    clock.step(HOUR + HOUR / 60);
    wait_failing(&acme, 2);
}

/// An authority that answers every request the same.
struct Broken {
    asked: Arc<AtomicUsize>,
    settings: AcmeSettings,
    _server: Answering,
    _folder: tempfile::TempDir,
}

impl Broken {
    fn new(status: &'static str, fields: &'static str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap().self_signed(&key).unwrap();
        let roots = folder.path().join("roots.pem");
        std::fs::write(&roots, certificate.pem()).unwrap();
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key.into())
            .unwrap();
        let (config, asked) = (Arc::new(config), Arc::new(AtomicUsize::new(0)));
        let counter = asked.clone();
        let server = Answering::tcp(move |stream| {
            let mut secure = StreamOwned::new(ServerConnection::new(config.clone()).unwrap(), stream);
            let mut line = String::new();
            let mut reader = BufReader::new(&mut secure);
            while reader.read_line(&mut line).is_ok_and(|bytes| bytes > 2) {}
            if line.is_empty() {
                return;
            }
            counter.fetch_add(1, Ordering::Relaxed);
            let _ = write!(secure, "HTTP/1.1 {status}\r\n{fields}Content-Length: 2\r\nConnection: close\r\n\r\nno");
            secure.conn.send_close_notify();
            let _ = secure.flush();
        });
        let mut settings = AcmeSettings::new(folder.path().join("state"));
        settings.directory = format!("https://{}/directory", server.address());
        settings.roots = Some(roots);
        Self { asked, settings, _server: server, _folder: folder }
    }

    fn acme(&self, clock: &Arc<SteppedClock>) -> Acme {
        Acme::start(self.settings.clone(), &[set(&["example.org"])], clock.clone()).unwrap()
    }
}
