//! TLS to origins and to other nodes of a fleet, and the trusted certificates.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::{ClientConfig, RootCertStore};

/// The reason for which TLS to origins is impossible.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The file with the authorities' certificates can't be read, or isn't PEM.
    #[error("can't read certificates from {}: {source}; give a PEM file", path.display())]
    Unreadable {
        /// The path of the configuration.
        path: PathBuf,
        /// The error.
        source: pem::Error,
    },
    /// The file holds no certificate of an authority.
    #[error("{} has no usable certificate of an authority", path.display())]
    Empty {
        /// The path of the configuration.
        path: PathBuf,
    },
    /// The system has none.
    #[error("this system has no certificates of authorities; install ca-certificates")]
    NoSystemRoots,
    /// The TLS library refuses our settings.
    #[error("can't set up TLS: {0}")]
    Library(#[from] rustls::Error),
}

/// Trusts only the authorities of `ca_file`, or those of the system without one. Without `is_needed`, for origins with http
/// only, it reads no file and trusts none.
pub(crate) fn client_config(is_needed: bool, ca_file: Option<&Path>) -> Result<Arc<ClientConfig>, TlsError> {
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

fn add_file(roots: &mut RootCertStore, path: &Path) -> Result<(), TlsError> {
    let unreadable = |source| TlsError::Unreadable { path: path.to_owned(), source };
    let certificates: Vec<_> = CertificateDer::pem_file_iter(path).and_then(Iterator::collect).map_err(unreadable)?;
    match roots.add_parsable_certificates(certificates) {
        (0, _) => Err(TlsError::Empty { path: path.to_owned() }),
        _ => Ok(()),
    }
}

fn add_system(roots: &mut RootCertStore) -> Result<(), TlsError> {
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::warn!(%error, "can't read some of the system's certificates");
    }
    match roots.add_parsable_certificates(found.certs) {
        (0, _) => Err(TlsError::NoSystemRoots),
        _ => Ok(()),
    }
}
