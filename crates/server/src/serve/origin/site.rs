//! The state of a site's origins that all workers share.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use http::uri::PathAndQuery;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::sync::Notify;
use toml::Spanned;

use super::forwarded::HostHeader;
use super::health::{Health, HealthCheck, HealthRules};
use super::tls::{self, TlsError};
use crate::config;
use crate::config::origin::Http2;
use crate::config::origin_url::OriginUrl;
use crate::serve::admission::{OriginQueue, QueueLimits};
use crate::serve::metrics::{Metrics, OriginCounters};

/// The settings for requests to the origins of a site.
pub(crate) struct Settings {
    /// At least one. They have the same content, and keys have the first one's address for all.
    pub(crate) urls: Vec<OriginUrl>,
    pub(crate) host: HostHeader,
    /// How often a request that may be repeated is retried.
    pub(crate) retries: u32,
    pub(crate) timeouts: Timeouts,
    pub(crate) http2: Http2,
    /// A PEM file of authorities, instead of the system's.
    pub(crate) ca_file: Option<PathBuf>,
    /// The name for TLS and its certificate, instead of the host of the address.
    pub(crate) server_name: Option<ServerName<'static>>,
    pub(crate) health: HealthRules,
    pub(crate) check: Option<HealthCheck>,
    /// How many requests they get at once. None: any number.
    pub(crate) queue: Option<QueueLimits>,
}

/// The timeouts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timeouts {
    /// For a connection: name, TCP and TLS.
    pub(crate) connect: Duration,
    /// For the head of a response, from the last piece of the request. For a request without a body it bounds all attempts
    /// together, with connecting.
    pub(crate) head: Duration,
    /// For the next piece of a response's body.
    pub(crate) piece: Duration,
}

/// Settings, certificates and health, which each worker's [`Origins`](super::Origins) shares.
pub(crate) struct OriginSite {
    pub(super) settings: Settings,
    pub(super) tls: Arc<ClientConfig>,
    pub(super) health: Health,
    pub(super) queue: Option<OriginQueue>,
    /// One for each address. Another configuration may give the site another label.
    pub(super) counters: Vec<Arc<ArcSwap<OriginCounters>>>,
    /// Whether a worker checks the origins already; one is enough.
    is_checked: AtomicBool,
    /// Notified once no configuration has this site any more.
    retired: Notify,
}

impl Settings {
    /// From the configuration of a site.
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
            http2: asked.http2,
            ca_file: tls.ca_file.map(Spanned::into_inner),
            // The configuration has checked that it is a host, and TLS accepts any host.
            server_name: tls.server_name.and_then(|name| ServerName::try_from(name.0).ok()),
            health: health.unwrap_or_default(),
            check: asked.health.map(|health| HealthCheck {
                // The configuration has checked that it is a path.
                path: health.path.0.parse().unwrap_or_else(|_| PathAndQuery::from_static("/")),
                interval: health.interval.0,
                timeout: health.timeout.0,
                statuses: health.status,
            }),
            queue: site.limits.of_origins().map(|(at_once, waiting, wait)| QueueLimits {
                at_once: at_once as usize,
                waiting: waiting as usize,
                wait,
            }),
        }
    }

    /// One timeout for all waits, and defaults for the rest.
    #[cfg(test)]
    pub(crate) fn new(urls: Vec<OriginUrl>, timeout: Duration) -> Self {
        Self {
            urls,
            host: HostHeader::default(),
            retries: 1,
            timeouts: Timeouts { connect: timeout, head: timeout, piece: timeout },
            http2: Http2::Auto,
            ca_file: None,
            server_name: None,
            health: HealthRules::default(),
            check: None,
            queue: None,
        }
    }
}

impl OriginSite {
    /// Reads the trusted certificates, if an origin has https. The site of the configuration `before` gives it the requests that its origins
    /// have, if they are the same.
    pub(crate) fn new(settings: Settings, before: Option<&Self>) -> Result<Self, TlsError> {
        let is_secure = settings.urls.iter().any(OriginUrl::is_secure);
        let tls = tls::client_config(is_secure, settings.ca_file.as_deref())?;
        let health = Health::new(settings.health, settings.urls.len());
        let known = before.filter(|before| before.settings.urls == settings.urls);
        let known = known.and_then(|before| before.queue.as_ref());
        let queue = settings.queue.map(|limits| match known {
            Some(known) => known.renewed(limits),
            None => OriginQueue::new(limits),
        });
        let counters = settings.urls.iter().map(|_| Arc::default()).collect();
        let (is_checked, retired) = (AtomicBool::new(false), Notify::new());
        Ok(Self { settings, tls, health, queue, counters, is_checked, retired })
    }

    /// Takes over what another site knows of the health of the same addresses.
    pub(crate) fn take_over(&self, other: &Self) {
        for (origin, url) in self.settings.urls.iter().enumerate() {
            if let Some(theirs) = other.settings.urls.iter().position(|known| known == url) {
                self.health.take_over(origin, &other.health, theirs);
            }
        }
    }

    /// From now on its origins count for the site with this label.
    pub(crate) fn count_for(&self, label: &str, metrics: &Metrics) {
        for (url, counters) in self.settings.urls.iter().zip(&self.counters) {
            counters.store(metrics.origin(label, &url.to_string()));
        }
    }

    /// Its origins, and whether requests go to them.
    pub(crate) fn health(&self) -> impl Iterator<Item = (&OriginUrl, bool)> {
        let now = Instant::now();
        self.settings.urls.iter().enumerate().map(move |(origin, url)| (url, self.health.is_well(origin, now)))
    }

    /// The configuration is in force.
    pub(crate) fn begin(&self) {
        if let Some(queue) = &self.queue {
            queue.begin();
        }
    }

    /// True for the first caller, which has to check the origins.
    pub(super) fn begins_checking(&self) -> bool {
        !self.is_checked.swap(true, Ordering::Relaxed)
    }

    /// Ends the health checks.
    pub(crate) fn retire(&self) {
        // It is kept for a task that doesn't wait yet. There is at most one.
        self.retired.notify_one();
    }

    pub(super) async fn is_retired(&self) {
        self.retired.notified().await;
    }
}
