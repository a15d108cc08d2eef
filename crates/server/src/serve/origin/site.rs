//! What all workers know of the origins of a site.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;

use super::check::Check;
use super::forwarded::HostHeader;
use super::health::{Health, HealthRules};
use super::trust::{self, TrustError};
use super::url::OriginUrl;

/// How the origins of a site are asked.
pub(crate) struct Settings {
    /// At least one. They answer alike; the first one's address stands for all in keys.
    pub(crate) urls: Vec<OriginUrl>,
    pub(crate) host: HostHeader,
    /// Whether origins are told of clients, by `X-Forwarded-*` and `Forwarded`.
    pub(crate) tells_of_clients: bool,
    pub(crate) timeouts: Timeouts,
    /// PEM; instead of the system's authorities.
    pub(crate) ca_file: Option<PathBuf>,
    /// Instead of the host of the address: what TLS asks for, and what the certificate has to name.
    pub(crate) server_name: Option<ServerName<'static>>,
    pub(crate) health: HealthRules,
    pub(crate) check: Option<Check>,
}

/// The longest waits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timeouts {
    /// For a connection: name, TCP and TLS.
    pub(crate) connect: Duration,
    /// For the head of a response, from the last piece of the request on. For a request without a body this bounds all
    /// attempts together, connecting included.
    pub(crate) head: Duration,
    /// For the next piece of a response's body.
    pub(crate) piece: Duration,
}

/// Settings, trust and health: made once, shared by each worker's [`Origins`](super::Origins).
pub(crate) struct OriginSite {
    pub(super) settings: Settings,
    pub(super) tls: Arc<ClientConfig>,
    pub(super) health: Health,
}

impl Settings {
    /// As the command line has them: one time for all waits, and nothing out of the ordinary.
    pub(crate) fn new(urls: Vec<OriginUrl>, timeout: Duration) -> Self {
        Self {
            urls,
            host: HostHeader::default(),
            tells_of_clients: true,
            timeouts: Timeouts { connect: timeout, head: timeout, piece: timeout },
            ca_file: None,
            server_name: None,
            health: HealthRules::default(),
            check: None,
        }
    }
}

impl OriginSite {
    /// Reads the certificates of those to trust, if an origin is asked by https.
    pub(crate) fn new(settings: Settings) -> Result<Self, TrustError> {
        let is_secure = settings.urls.iter().any(OriginUrl::is_secure);
        let tls = trust::client_config(is_secure, settings.ca_file.as_deref())?;
        let health = Health::new(settings.health, settings.urls.len());
        Ok(Self { settings, tls, health })
    }
}
