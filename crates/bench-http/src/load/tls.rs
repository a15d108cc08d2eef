//! How the client speaks TLS: version 1.3, one cipher suite, one key exchange.

use std::path::Path;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use crate::error::{Error, Result};

/// The sessions to remember. Each can be resumed once.
const SESSIONS_MAX: usize = 1024;

/// The means to open TLS connections to one server.
pub(crate) struct Tls {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl Tls {
    /// `ca` has the only trusted root, and `name` is the server's.
    pub(crate) fn new(ca: &Path, name: &str, resumes: bool) -> Result<Self> {
        let wrong = |why: String| Error::Tls { what: format!("TLS with {name} and {}", ca.display()), why };
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_file_iter(ca).map_err(|error| wrong(error.to_string()))? {
            roots
                .add(certificate.map_err(|error| wrong(error.to_string()))?)
                .map_err(|error| wrong(error.to_string()))?;
        }
        let provider = CryptoProvider {
            cipher_suites: vec![aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256],
            kx_groups: vec![aws_lc_rs::kx_group::X25519],
            ..aws_lc_rs::default_provider()
        };
        let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|error| wrong(error.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.resumption = if resumes { Resumption::in_memory_sessions(SESSIONS_MAX) } else { Resumption::disabled() };
        let name = ServerName::try_from(name.to_owned()).map_err(|error| wrong(error.to_string()))?;
        Ok(Self { config: Arc::new(config), name })
    }

    /// The client's end of a connection.
    pub(super) fn connection(&self) -> std::result::Result<ClientConnection, rustls::Error> {
        ClientConnection::new(Arc::clone(&self.config), self.name.clone())
    }
}
