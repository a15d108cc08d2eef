//! What the page shows of one moment.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use eyewall::{Cache, Stats};
use eyewall_fleet_redis::Seen;
use serde::{Serialize, Serializer};

use super::history::Point;
use super::window::Windows;
use crate::serve::metrics::{MissedKey, OriginTotals, SiteTotals, Times, Totals, quantile};
use crate::serve::outcome::Verdict;
use crate::serve::sample::SlowPath;
use crate::serve::shared::Shared;
use crate::serve::tls::CertificateStatus;
use crate::warnings;

/// The most sites, origins and keys that are shown.
const ROWS_MAX: usize = 50;
const KEYS_MAX: usize = 10;

/// All that the page shows of one moment. Counts are those since the start.
#[derive(Serialize)]
pub(crate) struct Sample {
    version: &'static str,
    process: u32,
    /// Milliseconds since 1970.
    time: u64,
    uptime_seconds: u64,
    pub(super) windows: Windows,
    /// Requests by verdict since the start, for the curve.
    verdicts: [u64; Verdict::ALL.len()],
    pub(super) sites: Vec<Site>,
    /// How many more there are.
    more_sites: usize,
    origins: Vec<Origin>,
    more_origins: usize,
    failures: BTreeMap<String, u64>,
    remembered: u64,
    flights: usize,
    connections: [u64; 3],
    /// Seconds for which each worker had work.
    busy_seconds: Vec<f64>,
    /// `None` while the volume has failed, or is busy.
    pub(super) volume: Option<Volume>,
    #[serde(flatten, serialize_with = "of_slow")]
    pub(super) slow: Arc<Slow>,
    #[serde(skip)]
    pub(super) point: Point,
}

/// Figures that cost more, and are found less often.
#[derive(Serialize)]
pub(super) struct Slow {
    #[serde(skip)]
    pub(super) at: Instant,
    hottest: Vec<Hot>,
    missed: Vec<MissedKey>,
    slowest: Vec<SlowPath>,
    certificates: Vec<Certificate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fleet: Option<Seen>,
    warnings: Vec<String>,
}

#[derive(Serialize)]
pub(super) struct Site {
    pub(super) name: Box<str>,
    pub(super) verdicts: [u64; Verdict::ALL.len()],
    pub(super) requests: u64,
    pub(super) spared_requests: u64,
    pub(super) bytes: u64,
    pub(super) errors: u64,
}

#[derive(Serialize)]
struct Origin {
    site: Box<str>,
    url: Box<str>,
    /// `None` if the configuration doesn't have it any more.
    is_up: Option<bool>,
    requests: u64,
    bytes: u64,
    errors: BTreeMap<&'static str, u64>,
    retries: u64,
    connections: u64,
    open: u64,
    #[serde(serialize_with = "as_quantiles")]
    times: Times,
}

#[derive(Serialize)]
pub(super) struct Volume {
    path: Option<String>,
    pub(super) size_bytes: u64,
    pub(super) data_bytes: u64,
    pub(super) live_bytes: u64,
    pub(super) entries: u64,
    evictions: BTreeMap<&'static str, u64>,
    pub(super) eviction_age_seconds: f64,
    written_bytes: u64,
    copied_bytes: u64,
}

#[derive(Serialize)]
struct Hot {
    key: String,
    frequency: u64,
    bytes: u64,
}

#[derive(Serialize)]
struct Certificate {
    site: String,
    #[serde(flatten)]
    status: CertificateStatus,
    /// Below zero: it has ended.
    days_left: Option<i64>,
}

impl Sample {
    /// This may wait for locks.
    pub(super) fn of(shared: &Shared, cache: &Cache, slow: Arc<Slow>) -> Self {
        let metrics = &shared.metrics;
        let totals = metrics.totals();
        let point = Point::now(metrics, &totals);
        let mut sites: Vec<_> = totals.sites.iter().map(Site::of).collect();
        sites.sort_by(|one, other| other.requests.cmp(&one.requests).then_with(|| one.name.cmp(&other.name)));
        let more_sites = shorten(&mut sites);
        let Totals { origins, failures, remembered, .. } = totals;
        let mut origins = Origin::all(shared, origins);
        let more_origins = shorten(&mut origins);
        let figures = metrics.connections();
        Self {
            version: env!("CARGO_PKG_VERSION"),
            process: std::process::id(),
            time: point.time,
            uptime_seconds: point.uptime.as_secs(),
            windows: Windows::default(),
            verdicts: point.verdicts,
            sites,
            more_sites,
            origins,
            more_origins,
            failures,
            remembered,
            flights: shared.pages.in_flight(),
            connections: [figures.http1, figures.http2, figures.tunnels],
            busy_seconds: metrics.busy().iter().map(std::time::Duration::as_secs_f64).collect(),
            volume: (!shared.pages.store.has_failed()).then(|| Volume::of(cache)).flatten(),
            slow,
            point,
        }
    }
}

impl Slow {
    /// This may wait for locks.
    pub(super) fn of(shared: &Shared, cache: &Cache) -> Self {
        let is_well = !shared.pages.store.has_failed();
        let hottest = if is_well { cache.hottest(KEYS_MAX).unwrap_or_default() } else { Vec::new() };
        let hottest = hottest.into_iter().map(|hot| Hot {
            key: String::from_utf8_lossy(&hot.key).into_owned(),
            frequency: hot.frequency,
            bytes: hot.value_bytes,
        });
        let certificates = shared.sites.iter().enumerate().flat_map(|(number, site)| {
            let of_site = move |status| Certificate::of(site.site.label(), status);
            shared.certificates(number).into_iter().map(of_site)
        });
        let mut warnings: Vec<String> = warnings::of_storage(cache).into_iter().collect();
        if is_well {
            warnings.extend(cache.stats().iter().flat_map(warnings::of_stats));
        } else {
            warnings.push("The volume has failed; restart the server.".to_owned());
        }
        Self {
            at: Instant::now(),
            hottest: hottest.collect(),
            missed: shared.metrics.most_missed(KEYS_MAX),
            slowest: shared.metrics.slowest(KEYS_MAX),
            certificates: certificates.collect(),
            fleet: shared.fleet.as_ref().map(|fleet| fleet.this()),
            warnings,
        }
    }
}

impl Site {
    fn of(site: &SiteTotals) -> Self {
        Self {
            requests: site.requests.iter().sum(),
            spared_requests: site.spared_requests,
            bytes: site.bytes.iter().sum(),
            errors: site.errors,
            verdicts: site.requests,
            name: site.label.clone(),
        }
    }
}

impl Origin {
    /// Those that are left out come first, then those with the most requests.
    fn all(shared: &Shared, totals: Vec<OriginTotals>) -> Vec<Self> {
        let mut health = BTreeMap::new();
        for site in &shared.sites {
            for (url, is_well) in site.origins.iter().flat_map(|origins| origins.health()) {
                health.insert((site.site.label(), url.to_string()), is_well);
            }
        }
        let of = |origin: OriginTotals| Self {
            is_up: health.get(&(origin.site.to_string(), origin.url.to_string())).copied(),
            site: origin.site,
            url: origin.url,
            requests: origin.requests,
            bytes: origin.bytes,
            errors: origin.errors,
            retries: origin.retries,
            connections: origin.connections,
            open: origin.open,
            times: origin.times,
        };
        let mut all: Vec<_> = totals.into_iter().map(of).collect();
        all.sort_by_key(|origin| (origin.is_up != Some(false), std::cmp::Reverse(origin.requests)));
        all
    }
}

impl Volume {
    fn of(cache: &Cache) -> Option<Self> {
        let stats: Stats = cache.stats().ok()?;
        let evictions = BTreeMap::from([
            ("cold", stats.evictions_cold),
            ("expired", stats.evictions_expired),
            ("index", stats.evictions_index),
            ("damaged", stats.evictions_damaged),
            ("purged", stats.evictions_purged),
        ]);
        Some(Self {
            path: cache.path().map(|path| path.display().to_string()),
            size_bytes: stats.size_bytes,
            data_bytes: stats.data_bytes,
            live_bytes: stats.live_bytes,
            entries: stats.entries,
            evictions,
            eviction_age_seconds: stats.eviction_age_ms as f64 / 1e3,
            written_bytes: stats.bytes_written,
            copied_bytes: stats.bytes_copied,
        })
    }
}

impl Certificate {
    fn of(site: String, status: CertificateStatus) -> Self {
        const DAY_SECONDS: u64 = 86_400;
        let days = |time: std::time::Duration| (time.as_secs() / DAY_SECONDS) as i64;
        let days_left = status.expires().map(|expires| match expires.duration_since(SystemTime::now()) {
            Ok(left) => days(left),
            Err(over) => -1 - days(over.duration()),
        });
        Self { site, status, days_left }
    }
}

fn shorten<T>(rows: &mut Vec<T>) -> usize {
    let more = rows.len().saturating_sub(ROWS_MAX);
    rows.truncate(ROWS_MAX);
    more
}

/// The median, and the seconds that 95 % of the times stay below.
fn as_quantiles<S: Serializer>(times: &Times, serializer: S) -> Result<S::Ok, S::Error> {
    [0.5, 0.95].map(|share| quantile(times, share)).serialize(serializer)
}

fn of_slow<S: Serializer>(slow: &Arc<Slow>, serializer: S) -> Result<S::Ok, S::Error> {
    slow.as_ref().serialize(serializer)
}
