//! What all workers know of the origins of a site.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::uri::PathAndQuery;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use toml::Spanned;

use super::forwarded::HostHeader;
use super::health::{Health, HealthRules};
use super::health_check::HealthCheck;
use super::tls::{self, TlsError};
use super::url::OriginUrl;
use crate::config;

/// How the origins of a site are asked.
pub(crate) struct Settings {
    /// At least one. They answer alike; the first one's address stands for all in keys.
    pub(crate) urls: Vec<OriginUrl>,
    pub(crate) host: HostHeader,
    /// How often a request that may be repeated is tried again.
    pub(crate) retries: u32,
    pub(crate) timeouts: Timeouts,
    /// PEM; instead of the system's authorities.
    pub(crate) ca_file: Option<PathBuf>,
    /// Instead of the host of the address: what TLS asks for, and what the certificate has to name.
    pub(crate) server_name: Option<ServerName<'static>>,
    pub(crate) health: HealthRules,
    pub(crate) check: Option<HealthCheck>,
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
    /// As the configuration of a site has them.
    pub(crate) fn of(site: &config::site::Site) -> Self {
        let asked = site.origin_settings();
        let tls = asked.tls.map(Spanned::into_inner).unwrap_or_default();
        let timeout = asked.timeout.0;
        let health = asked.health.as_ref().map(|health| HealthRules {
            checks_failed_max: health.unhealthy_after.0 as u32,
            checks_passed_min: health.healthy_after.0 as u32,
            ..HealthRules::default()
        });
        Self {
            urls: site.origins.iter().map(|origin| origin.get_ref().clone()).collect(),
            host: HostHeader::of(&asked.host_header),
            retries: asked.retries.0 as u32,
            timeouts: Timeouts { connect: asked.connect_timeout.0, head: timeout, piece: timeout },
            ca_file: tls.ca_file.map(Spanned::into_inner),
            // It was read as a host, which TLS takes any of.
            server_name: tls.server_name.and_then(|name| ServerName::try_from(name.0).ok()),
            health: health.unwrap_or_default(),
            check: asked.health.map(|health| HealthCheck {
                // It was read as a path.
                path: health.path.0.parse().unwrap_or_else(|_| PathAndQuery::from_static("/")),
                interval: health.interval.0,
                timeout: health.timeout.0,
                statuses: health.status,
            }),
        }
    }

    /// One time for all waits, and nothing out of the ordinary.
    #[cfg(test)]
    pub(crate) fn new(urls: Vec<OriginUrl>, timeout: Duration) -> Self {
        Self {
            urls,
            host: HostHeader::default(),
            retries: 1,
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
    pub(crate) fn new(settings: Settings) -> Result<Self, TlsError> {
        let is_secure = settings.urls.iter().any(OriginUrl::is_secure);
        let tls = tls::client_config(is_secure, settings.ca_file.as_deref())?;
        let health = Health::new(settings.health, settings.urls.len());
        Ok(Self { settings, tls, health })
    }
}
