//! A certificate authority for the tests. `https.rs` has the servers and clients that use its certificates.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{CertificateParams, CertifiedIssuer, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use tempfile::TempDir;

/// An authority, and a folder with its certificate and with the files of servers.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: TempDir,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut authority = CertificateParams::new(Vec::new()).unwrap();
        authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ca.pem"), issuer.pem()).unwrap();
        Self { issuer, folder }
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.path("ca.pem")
    }

    pub(crate) fn certificate(&self) -> CertificateDer<'static> {
        self.issuer.der().clone()
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
        let path = self.path(file);
        replace(&path, (certificate.pem() + &key.serialize_pem()).as_bytes());
        path
    }

    /// The certificate and the key of a server with this name.
    pub(crate) fn vouch(&self, name: &str) -> Arc<ServerConfig> {
        self.vouch_for(name, &[])
    }

    /// The same for a server that speaks these protocols.
    pub(crate) fn vouch_for(&self, name: &str, protocols: &[&str]) -> Arc<ServerConfig> {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new([name.to_owned()]).unwrap().signed_by(&key, &self.issuer).unwrap();
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key.into())
            .unwrap();
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        Arc::new(config)
    }
}

/// Replaces a file by another in one step.
pub(crate) fn replace(path: &Path, content: &[u8]) {
    let new = path.with_extension("new");
    std::fs::write(&new, content).unwrap();
    std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::rename(&new, path).unwrap();
}
