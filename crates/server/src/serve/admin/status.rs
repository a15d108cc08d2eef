//! The response to `GET /status`.

use std::collections::BTreeMap;
use std::time::Duration;

use eyewall::{Cache, Stats};
use eyewall_fleet_redis::Seen;
use eyewall_second_level::Status as LevelStatus;
use serde::Serialize;

use crate::sandbox::{self, Closed};
use crate::serve::metrics::Totals;
use crate::serve::outcome::Verdict;
use crate::serve::shared::{Shared, SharedSite};
use crate::serve::tls::CertificateStatus;
use crate::warnings;

/// The state of the server.
#[derive(Serialize)]
pub(super) struct Status {
    version: &'static str,
    process: u32,
    uptime_seconds: u64,
    /// `None` without one.
    sandbox: Option<&'static Closed>,
    sites: Vec<SiteStatus>,
    /// Responses of origins that other requests wait for, or that are being stored.
    flights: usize,
    /// How this node of the fleet is doing, if there is a fleet.
    #[serde(skip_serializing_if = "Option::is_none")]
    fleet: Option<Seen>,
    /// How the second level of the fleet is doing, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    second_level: Option<LevelStatus>,
    /// The output of `eyewall stat --json`.
    volume: Volume,
}

#[derive(Serialize)]
struct Volume {
    /// `None` for a volume in memory.
    path: Option<String>,
    #[serde(flatten)]
    stats: Stats,
    warnings: Vec<String>,
}

#[derive(Serialize)]
struct SiteStatus {
    /// The label of its metrics.
    name: String,
    hosts: Vec<String>,
    aliases: Vec<String>,
    root: Option<String>,
    origins: Vec<String>,
    /// For HTTPS.
    certificates: Vec<CertificateStatus>,
    traffic: Traffic,
}

/// The requests of a site since the server's start.
#[derive(Default, Serialize)]
struct Traffic {
    requests: u64,
    verdicts: BTreeMap<&'static str, u64>,
    /// Those for which no origin was asked.
    spared_requests: u64,
    /// Bytes of bodies that were sent to clients.
    bytes: u64,
    /// Responses with a status from 500 on.
    errors: u64,
}

impl Status {
    /// This may wait for locks.
    ///
    /// # Errors
    /// The engine's.
    pub(super) fn of(shared: &Shared, cache: &Cache, uptime: Duration) -> eyewall::Result<Self> {
        let totals = shared.metrics.totals();
        Ok(Self {
            version: env!("CARGO_PKG_VERSION"),
            process: std::process::id(),
            uptime_seconds: uptime.as_secs(),
            sandbox: sandbox::closed(),
            sites: shared
                .sites
                .iter()
                .enumerate()
                .map(|(number, site)| SiteStatus::of(site, shared.certificates(number), &totals))
                .collect(),
            flights: shared.pages.in_flight(),
            fleet: shared.fleet.as_ref().map(|fleet| fleet.this()),
            second_level: shared.second_level.as_ref().map(|level| level.status()),
            volume: Volume::of(cache)?,
        })
    }
}

impl Volume {
    fn of(cache: &Cache) -> eyewall::Result<Self> {
        let stats = cache.stats()?;
        let warnings = warnings::of_stats(&stats).into_iter().chain(warnings::of_storage(cache)).collect();
        Ok(Self { path: cache.path().map(|path| path.display().to_string()), stats, warnings })
    }
}

impl SiteStatus {
    fn of(site: &SharedSite, certificates: Vec<CertificateStatus>, totals: &Totals) -> Self {
        let (settings, name) = (&site.site.settings, site.site.label());
        Self {
            hosts: settings.hosts.iter().map(|host| host.get_ref().to_string()).collect(),
            aliases: settings.aliases.iter().map(|alias| alias.get_ref().to_string()).collect(),
            root: settings.root.as_ref().map(|root| root.get_ref().display().to_string()),
            origins: settings.origins.iter().map(|url| url.get_ref().to_string()).collect(),
            certificates,
            traffic: Traffic::of(&name, totals),
            name,
        }
    }
}

impl Traffic {
    fn of(name: &str, totals: &Totals) -> Self {
        let Some(site) = totals.sites.iter().find(|site| *site.label == *name) else { return Self::default() };
        let verdicts = Verdict::ALL.into_iter().map(Verdict::label).zip(site.requests);
        Self {
            requests: site.requests.iter().sum(),
            verdicts: verdicts.collect(),
            spared_requests: site.spared_requests,
            bytes: site.bytes.iter().sum(),
            errors: site.errors,
        }
    }
}
