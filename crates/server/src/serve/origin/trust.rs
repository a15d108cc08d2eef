//! Whose word is taken for the identity of an https origin.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::{ClientConfig, RootCertStore};

/// Why nobody can be trusted.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The file with the authorities' certificates can't be read, or isn't PEM.
    #[error("can't read certificates from {}: {source}; it takes PEM", path.display())]
    Unreadable {
        /// What `--origin-ca` named.
        path: PathBuf,
        /// What is wrong with it.
        source: pem::Error,
    },
    /// The file holds no certificate of an authority.
    #[error("{} has no certificate of an authority that can be used", path.display())]
    Empty {
        /// What `--origin-ca` named.
        path: PathBuf,
    },
    /// The system has none.
    #[error("this system has no certificates of authorities; install ca-certificates, or name a file by --origin-ca")]
    NoSystemRoots,
    /// Ours: the library refuses what we ask of it.
    #[error("TLS can't be set up: {0}")]
    Library(#[from] rustls::Error),
}

/// Trusts the authorities of `ca_file`, and no others; those of the system if there is no such file. Without
/// `is_needed`, for origins of http alone, nobody, and no file is read.
pub(super) fn client_config(is_needed: bool, ca_file: Option<&Path>) -> Result<Arc<ClientConfig>, TrustError> {
    let mut roots = RootCertStore::empty();
    match ca_file {
        Some(path) => add_file(&mut roots, path)?,
        None if is_needed => add_system(&mut roots)?,
        None => {}
    }
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

fn add_file(roots: &mut RootCertStore, path: &Path) -> Result<(), TrustError> {
    let unreadable = |source| TrustError::Unreadable { path: path.to_owned(), source };
    let certificates: Vec<_> = CertificateDer::pem_file_iter(path).and_then(Iterator::collect).map_err(unreadable)?;
    match roots.add_parsable_certificates(certificates) {
        (0, _) => Err(TrustError::Empty { path: path.to_owned() }),
        _ => Ok(()),
    }
}

fn add_system(roots: &mut RootCertStore) -> Result<(), TrustError> {
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::warn!(%error, "some of the system's certificates can't be read");
    }
    match roots.add_parsable_certificates(found.certs) {
        (0, _) => Err(TrustError::NoSystemRoots),
        _ => Ok(()),
    }
}
