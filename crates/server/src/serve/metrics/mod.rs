//! Metrics for Prometheus: what the server did, counted where it does it, and summed when somebody looks.
//!
//! ```text
//! worker 0: counters of site a, of site b ──┐
//! worker 1: counters of site a, of site b ──┼──> scrape: sums by site ──> page: text 0.0.4 or OpenMetrics 1.0
//! counters of each origin                 ──┤      also the volume's, the process's
//! ```
//! Each worker has counters of its own for each site, so a hit writes no cache line that another core writes, and needs no
//! locked instruction ([`Counter`]). A scrape reads them all, moments apart: two numbers of one page may differ by the requests that
//! ended between the reads.
//!
//! # Reloads and upgrades
//! Counters belong to the label of their site, and stay until the process ends. So a reload never makes a number smaller, and a site
//! that comes back goes on where it was. After an upgrade another process counts from zero, with another start time, as Prometheus
//! expects after a restart.
//!
//! # Why no crate writes the page
//! `prometheus-client` has counters that all threads share, and its encoder writes `OpenMetrics` alone. The counters here are sums
//! of many, and monitoring systems other than Prometheus read only the older text.

mod counters;
mod door;
mod families;
mod missed;
mod origins;
mod page;
mod process;
mod scrape;
mod totals;
mod volume;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use tokio::runtime::{Handle, RuntimeMetrics};

use super::follow::Followers;
use super::sample::{Part, Recent, SlowPath, Snapshot, slowest};
use crate::key::KeyRules;

use counters::{Counter, SiteCounters};
pub(crate) use counters::{Counters, FastAnswer, Sent};
pub(crate) use door::{Door, respond};
use missed::Missed;
pub(crate) use missed::{Asked, MissedKey};
pub(crate) use origins::{OpenConnection, OriginCounters};
use page::Format;
use scrape::scrape;
pub(crate) use totals::{OriginTotals, SiteTotals, Times, Totals, quantile};

use super::purge::Feed;

/// The label of requests that belong to no site. No site has this label, because it is no host.
pub(crate) const NO_SITE: &str = "-";

/// The label of a site, and the address of its origin.
type OriginLabels = (Box<str>, Box<str>);

/// All counters of a server. Every configuration of it has the same ones.
pub(crate) struct Metrics {
    pub(crate) started: SystemTime,
    /// The same time by a clock that nobody sets.
    pub(crate) begun: Instant,
    threads: Mutex<Vec<Arc<ThreadCounters>>>,
    /// Those of each origin, by the label of the site and the address.
    origins: Mutex<BTreeMap<OriginLabels, Arc<OriginCounters>>>,
    /// Those who follow the requests, one by one.
    pub(crate) followers: Arc<Followers>,
    /// What the scrubs of this process have done.
    pub(crate) scrubs: Scrubs,
    /// The last purges.
    pub(crate) purges: Feed,
    /// Counts the connections of clients, once the server accepts any.
    connections: OnceLock<Box<dyn Fn() -> ConnectionFigures + Send + Sync>>,
}

/// What scrubs have done. The thread that scrubs writes, and the thread of a scrape reads.
#[derive(Default)]
pub(crate) struct Scrubs {
    bytes: Counter,
    dropped: Counter,
}

/// The connections of clients.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct ConnectionFigures {
    /// All so far.
    pub(crate) accepted: u64,
    pub(crate) http1: u64,
    pub(crate) http2: u64,
    pub(crate) tunnels: u64,
}

/// The counters of one worker, by the labels of sites. The worker adds sites, and the thread of a scrape reads.
#[derive(Default)]
pub(crate) struct ThreadCounters {
    sites: Mutex<BTreeMap<Box<str>, Arc<SiteCounters>>>,
    missed: Missed,
    runtime: OnceLock<RuntimeMetrics>,
    /// Its part of the sample of requests.
    sample: Part,
}

impl Default for Metrics {
    fn default() -> Self {
        let (threads, origins, followers, scrubs, purges, connections) = Default::default();
        let (started, begun) = (SystemTime::now(), Instant::now());
        Self { started, begun, threads, origins, followers, scrubs, purges, connections }
    }
}

impl Metrics {
    /// Counters for one more worker, whose thread this is.
    pub(crate) fn thread(&self) -> Arc<ThreadCounters> {
        let thread: Arc<ThreadCounters> = Arc::default();
        if let Ok(runtime) = Handle::try_current() {
            // Nobody else has set it.
            let _ = thread.runtime.set(runtime.metrics());
        }
        lock(&self.threads).push(Arc::clone(&thread));
        thread
    }

    /// The counters of an origin of a site, which are the same ones for each call.
    pub(crate) fn origin(&self, site: &str, url: &str) -> Arc<OriginCounters> {
        Arc::clone(lock(&self.origins).entry((site.into(), url.into())).or_default())
    }

    /// From now on `count` counts the connections of clients.
    pub(crate) fn count_connections_by(&self, count: impl Fn() -> ConnectionFigures + Send + Sync + 'static) {
        // A server begins once.
        let _ = self.connections.set(Box::new(count));
    }

    /// The sample of the requests of all workers.
    pub(crate) fn sample(&self) -> Snapshot {
        let threads = lock(&self.threads).clone();
        Snapshot::of(threads.iter().map(|thread| &thread.sample))
    }

    /// The last requests for an address of a site with these rules, as far as the sample has them, the latest first.
    pub(crate) fn recent(&self, rules: &KeyRules, host: &[u8], target: &str, limit: usize) -> Vec<Recent> {
        let threads = lock(&self.threads).clone();
        let mut all: Vec<_> =
            threads.iter().flat_map(|thread| thread.sample.recent(rules, host, target, limit)).collect();
        all.sort_by_key(|recent| std::cmp::Reverse(recent.at_ms));
        all.truncate(limit);
        all
    }

    /// The paths whose responses begin latest, by the last requests of the sample.
    pub(crate) fn slowest(&self, limit: usize) -> Vec<SlowPath> {
        let threads = lock(&self.threads).clone();
        slowest(threads.iter().map(|thread| &thread.sample), limit)
    }

    /// The addresses that missed most, as far as they were noted.
    pub(crate) fn most_missed(&self, limit: usize) -> Vec<MissedKey> {
        let mut sums = BTreeMap::new();
        lock(&self.threads).iter().for_each(|thread| thread.missed.add_to(&mut sums));
        missed::most(sums, limit)
    }

    /// Lets the misses of long ago count less.
    pub(crate) fn age_missed(&self) {
        lock(&self.threads).iter().for_each(|thread| thread.missed.age());
    }

    /// The time for which each worker had work.
    pub(crate) fn busy(&self) -> Vec<Duration> {
        let of_thread = |thread: &Arc<ThreadCounters>| {
            // The runtime of a worker has one thread.
            thread.runtime.get().map(|runtime| runtime.worker_total_busy_duration(0)).unwrap_or_default()
        };
        lock(&self.threads).iter().map(of_thread).collect()
    }

    /// The connections of clients.
    pub(crate) fn connections(&self) -> ConnectionFigures {
        self.connections.get().map(|count| count()).unwrap_or_default()
    }

    /// What all workers have counted for each site.
    fn sites(&self) -> BTreeMap<Box<str>, SiteCounters> {
        let mut sums: BTreeMap<Box<str>, SiteCounters> = BTreeMap::new();
        for thread in &*lock(&self.threads) {
            for (label, counters) in &*lock(&thread.sites) {
                sums.entry(label.clone()).or_default().add(counters);
            }
        }
        sums
    }
}

impl Scrubs {
    /// Counts a step of a scrub.
    pub(crate) fn count(&self, bytes: u64, dropped: u64) {
        self.bytes.add(bytes);
        self.dropped.add(dropped);
    }
}

impl ThreadCounters {
    /// The counters of a site, which are the same ones for each call.
    fn site(&self, label: &str) -> Arc<SiteCounters> {
        Arc::clone(lock(&self.sites).entry(label.into()).or_default())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;

    #[test]
    fn the_counts_of_workers_are_summed_by_site_and_stay_when_it_goes() {
        let metrics = Metrics::default();
        let (one, other) = (metrics.thread(), metrics.thread());
        for (thread, label, times) in [(&one, "a", 2), (&other, "a", 3), (&other, "b", 1)] {
            for _ in 0..times {
                let sent = thread.site(label).hit(StatusCode::OK, Duration::from_micros(60));
                thread.site(label).sent(sent, 10);
            }
        }
        drop((one, other));
        let sums = metrics.sites();
        let of = |label: &str| {
            let counts = sums[label].answers().map(|(_, _, tally)| (tally.requests.get(), tally.bytes.get()));
            counts.filter(|counts| *counts != (0, 0)).collect::<Vec<_>>()
        };
        assert_eq!((of("a"), of("b")), (vec![(5, 50)], vec![(1, 10)]));
    }
}
