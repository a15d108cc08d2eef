//! Pebble in a process of its own.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rcgen::{CertificateParams, CertifiedIssuer, KeyPair};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::{Value, json};
use tempfile::TempDir;

/// How long a test waits for what has to come.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// A running authority. It ends with this value.
pub(crate) struct Pebble {
    child: Child,
    folder: TempDir,
    directory: SocketAddr,
    management: SocketAddr,
    roots: Arc<RootCertStore>,
}

/// Where Pebble's program is; `None`, and a word about it, where there is none.
pub(crate) fn program() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("EYEWALL_PEBBLE") {
        return Some(path.into());
    }
    let tool = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/tool");
    let known = Command::new(tool).arg("pebble").stderr(Stdio::null()).output();
    if let Ok(known) = known
        && known.status.success()
    {
        return Some(String::from_utf8(known.stdout).unwrap().trim().into());
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&folders).map(|folder| folder.join("pebble")).find(|path| path.is_file());
    if found.is_none() {
        assert!(std::env::var_os("CI").is_none(), "Pebble is missing; make tools ARGS=pebble");
        eprintln!("skipped: there is no Pebble; make tools ARGS=pebble builds it");
    }
    found
}

impl Pebble {
    /// Starts it. It asks by HTTP and TLS at these ports, and for names at this DNS server. `more` goes over the settings.
    pub(crate) fn start(program: &Path, http: u16, tls: u16, dns: SocketAddr, more: &Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let roots = Arc::new(own_certificate(folder.path()));
        // Pebble takes no socket, so the ports that are free now may be another's when it starts.
        for _ in 0..10 {
            let [directory, management] = free();
            let mut settings = json!({
                "listenAddress": directory, "managementListenAddress": management,
                "certificate": folder.path().join("pebble.pem"), "privateKey": folder.path().join("pebble.key"),
                "httpPort": http, "tlsPort": tls, "ocspResponderURL": "", "keyAlgorithm": "ecdsa",
                "domainBlocklist": ["blocked.example"], "retryAfter": {"authz": 0, "order": 0},
                "profiles": {
                    "default": {"description": "90 days", "validityPeriod": 7_776_000},
                    "shortlived": {"description": "six days", "validityPeriod": 518_400},
                },
            });
            settings.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let config = folder.path().join("pebble.json");
            std::fs::write(&config, json!({ "pebble": settings }).to_string()).unwrap();
            let log = File::create(folder.path().join("log")).unwrap();
            let mut child = Command::new(program)
                .args(["-strict", "-dnsserver", &dns.to_string(), "-config"])
                .arg(config)
                .envs([("PEBBLE_VA_NOSLEEP", "1"), ("PEBBLE_WFE_NONCEREJECT", "0"), ("PEBBLE_AUTHZREUSE", "0")])
                .stdout(log.try_clone().unwrap())
                .stderr(log)
                .spawn()
                .unwrap();
            if is_up(&mut child, &[directory, management], &roots) {
                return Self { child, folder, directory, management, roots };
            }
            child.kill().unwrap();
            child.wait().unwrap();
        }
        panic!("Pebble doesn't start: {}", std::fs::read_to_string(folder.path().join("log")).unwrap());
    }

    pub(crate) fn directory(&self) -> String {
        format!("https://{}/dir", self.directory)
    }

    /// The certificates to trust for the directory.
    pub(crate) fn roots(&self) -> PathBuf {
        self.folder.path().join("pebble.pem")
    }

    /// How often these words stand in its log.
    pub(crate) fn count(&self, words: &str) -> usize {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap().matches(words).count()
    }

    /// How many certificates it issued.
    pub(crate) fn issued(&self) -> usize {
        self.count("Issued certificate serial")
    }

    /// Sets Pebble's answer to the question when to renew a certificate, in PEM.
    pub(crate) fn suggest(&self, chain: &str, answer: &str) {
        let first = chain.split_inclusive("-----END CERTIFICATE-----").next().unwrap();
        let body = json!({ "Certificate": first, "ARIResponse": answer }).to_string();
        let mut stream = connect(self.management, &self.roots).unwrap();
        let bytes = body.len();
        write!(
            stream,
            "POST /set-renewal-info/ HTTP/1.0\r\nHost: a\r\nUser-Agent: a\r\nContent-Length: {bytes}\r\n\r\n{body}"
        )
        .unwrap();
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        assert!(answer.starts_with("HTTP/1.0 200"), "{answer}");
    }

    /// Ends it.
    pub(crate) fn stop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Pebble {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Makes the certificate of its own server: signed by itself, so that it is the root, too.
fn own_certificate(folder: &Path) -> RootCertStore {
    let mut params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap().signed_by(&key, &authority).unwrap();
    std::fs::write(folder.join("pebble.pem"), certificate.pem() + &authority.pem()).unwrap();
    std::fs::write(folder.join("pebble.key"), key.serialize_pem()).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(authority.der().clone()).unwrap();
    roots
}

/// Two ports that are free now.
fn free() -> [SocketAddr; 2] {
    let listeners = [0, 1].map(|_| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap())
}

/// A connection, if the server there has a certificate of this Pebble's.
fn connect(address: SocketAddr, roots: &Arc<RootCertStore>) -> Option<StreamOwned<ClientConnection, TcpStream>> {
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots.clone())
        .with_no_client_auth();
    let connection = ClientConnection::new(Arc::new(config), ServerName::from(address.ip())).unwrap();
    let tcp = TcpStream::connect(address).ok()?;
    // Another's server may be one that says nothing.
    tcp.set_read_timeout(Some(PATIENCE / 10)).unwrap();
    let mut stream = StreamOwned::new(connection, tcp);
    while stream.conn.is_handshaking() {
        stream.conn.complete_io(&mut stream.sock).ok()?;
    }
    stream.sock.set_read_timeout(None).unwrap();
    Some(stream)
}

/// Waits until it listens; `false` where it ended.
fn is_up(child: &mut Child, addresses: &[SocketAddr], roots: &Arc<RootCertStore>) -> bool {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        if addresses.iter().all(|address| connect(*address, roots).is_some()) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("Pebble doesn't listen");
}
