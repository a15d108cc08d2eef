//! How the server speaks TLS.

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::server::NoServerSessionStorage;
use rustls::version::{TLS12, TLS13};

use crate::certificates::{ACME_TLS, Certificates};
use crate::tickets::Tickets;

/// The oldest version of TLS that a client may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MinimumVersion {
    /// TLS 1.2 (RFC 5246), with forward secrecy and authenticated encryption only.
    #[default]
    Tls12,
    /// TLS 1.3 (RFC 8446).
    Tls13,
}

/// The tickets that a client of TLS 1.3 gets with a full handshake: each is for one connection (RFC 8446, appendix C.4), and browsers open
/// two when they come.
const TICKETS: usize = 2;

/// The tickets that a client gets at most if it asks for a number (RFC 9149).
const TICKETS_MAX: usize = 4;

/// The configuration of all listeners with these certificates.
///
/// - TLS 1.3, and 1.2 if `minimum` allows it, with the cipher suites and key exchanges of aws-lc-rs, X25519MLKEM768 first.
/// - ALPN (RFC 7301): `h2`, then `http/1.1`; and `acme-tls/1` where an authority may ask. A connection that negotiated
///   [`ACME_TLS`] carries no data: the server closes it after the handshake.
/// - Sessions are resumed by tickets, and by nothing else: the server keeps no state of them.
/// - No early data (0-RTT): an attacker can send it twice.
///
/// # Errors
/// Ours: the library refuses what we ask of it.
pub fn server_config(
    certificates: Arc<Certificates>,
    tickets: Arc<Tickets>,
    minimum: MinimumVersion,
) -> Result<Arc<ServerConfig>, rustls::Error> {
    let versions = match minimum {
        MinimumVersion::Tls12 => &[&TLS13, &TLS12][..],
        MinimumVersion::Tls13 => &[&TLS13],
    };
    let mut protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    if certificates.is_challenged() {
        protocols.push(ACME_TLS.to_vec());
    }
    let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_protocol_versions(versions)?
        .with_no_client_auth()
        .with_cert_resolver(certificates);
    config.alpn_protocols = protocols;
    config.ticketer = tickets;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = TICKETS;
    config.max_tls13_tickets = TICKETS_MAX;
    config.max_early_data_size = 0;
    Ok(Arc::new(config))
}
