//! The figures: the current ones, and the difference to the last update.

use std::path::Path;
use std::time::{Duration, Instant};

use eyewall::{Cache, ProcessDetails, Stats};
use serde::Serialize;

use super::probe::{self, Latency};
use crate::Error;
use crate::output::key_text;

const HOT_MAX: usize = 32;

/// One update.
#[derive(Debug, Clone, Serialize)]
pub(super) struct View {
    pub(super) path: String,
    /// Since the tool began.
    pub(super) seconds: f64,
    pub(super) size_bytes: u64,
    pub(super) data_bytes: u64,
    pub(super) live_bytes: u64,
    pub(super) entries: u64,
    pub(super) index_live: u64,
    pub(super) index_slots: u64,
    pub(super) index_slots_wanted: u64,
    pub(super) pins: u64,
    pub(super) per_second: Rates,
    /// Since the last update; `None` without any lookup.
    pub(super) hit_ratio: Option<f64>,
    /// Since the tool began.
    pub(super) hit_ratio_of_run: Option<f64>,
    pub(super) get: Option<Latency>,
    pub(super) put: Option<Latency>,
    pub(super) hot: Vec<HotKey>,
    pub(super) processes: Vec<Process>,
}

/// Events per second since the last update.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Rates {
    pub(super) hits: f64,
    pub(super) misses: f64,
    pub(super) puts: f64,
    pub(super) removes: f64,
    pub(super) evictions: f64,
    /// The part of `evictions` for want of an index slot.
    pub(super) slot_evictions: f64,
    /// Steps of the index towards its goal.
    pub(super) index_steps: f64,
}

/// A hot entry.
#[derive(Debug, Clone, Serialize)]
pub(super) struct HotKey {
    /// As text.
    pub(super) key: String,
    pub(super) frequency: u64,
    pub(super) value_bytes: u64,
}

/// A process, with its rates.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Process {
    pub(super) pid: u32,
    pub(super) since_seconds: u64,
    pub(super) threads: u64,
    pub(super) pins: u64,
    pub(super) hits_per_second: f64,
    pub(super) misses_per_second: f64,
    /// This process.
    pub(super) is_this: bool,
}

/// Reads the figures of a volume, and remembers the last ones.
pub(super) struct Looker<'a> {
    path: String,
    cache: &'a Cache,
    probes_puts: bool,
    begun: Instant,
    first: Stats,
    last: (Instant, Stats, Vec<ProcessDetails>),
}

impl<'a> Looker<'a> {
    pub(super) fn new(path: &Path, cache: &'a Cache, probes_puts: bool) -> Result<Self, Error> {
        let (begun, stats) = (Instant::now(), cache.stats()?);
        let last = (begun, stats.clone(), cache.processes()?);
        Ok(Self { path: path.display().to_string(), cache, probes_puts, begun, first: stats, last })
    }

    pub(super) fn look(&mut self) -> Result<View, Error> {
        let (now, stats, processes) = (Instant::now(), self.cache.stats()?, self.cache.processes()?);
        let (then, before, processes_before) = &self.last;
        let seconds = now.duration_since(*then).as_secs_f64().max(0.001);
        let hot = self.cache.hottest(HOT_MAX)?;
        let mut keys: Vec<Vec<u8>> = hot.iter().map(|hot| hot.key.clone()).collect();
        if keys.is_empty() {
            keys = self.cache.iter().take(HOT_MAX).map(|hit| hit.key().to_owned()).collect();
        }
        let view = View {
            path: self.path.clone(),
            seconds: now.duration_since(self.begun).as_secs_f64(),
            size_bytes: stats.size_bytes,
            data_bytes: stats.data_bytes,
            live_bytes: stats.live_bytes,
            entries: stats.entries,
            index_live: stats.index_live,
            index_slots: stats.index_slots,
            index_slots_wanted: stats.index_slots_wanted,
            pins: stats.pins,
            per_second: rates(before, &stats, seconds),
            hit_ratio: hit_ratio(before, &stats),
            hit_ratio_of_run: hit_ratio(&self.first, &stats),
            get: probe::gets(self.cache, &keys)?,
            put: if self.probes_puts && !self.cache.is_read_only() { probe::puts(self.cache)? } else { None },
            hot: hot
                .into_iter()
                .map(|hot| HotKey { key: key_text(&hot.key), frequency: hot.frequency, value_bytes: hot.value_bytes })
                .collect(),
            processes: processes.iter().map(|process| rates_of(process, processes_before, seconds)).collect(),
        };
        self.last = (now, stats, processes);
        Ok(view)
    }
}

fn rates(before: &Stats, now: &Stats, seconds: f64) -> Rates {
    let evictions = |stats: &Stats| {
        stats.evictions_cold
            + stats.evictions_expired
            + stats.evictions_index
            + stats.evictions_damaged
            + stats.evictions_purged
    };
    let rate = |before: u64, now: u64| now.saturating_sub(before) as f64 / seconds;
    Rates {
        hits: rate(before.hits, now.hits),
        misses: rate(before.misses, now.misses),
        puts: rate(before.puts, now.puts),
        removes: rate(before.removes, now.removes),
        evictions: rate(evictions(before), evictions(now)),
        slot_evictions: rate(before.evictions_index, now.evictions_index),
        index_steps: rate(before.index_steps, now.index_steps),
    }
}

fn hit_ratio(before: &Stats, now: &Stats) -> Option<f64> {
    let (hits, misses) = (now.hits.saturating_sub(before.hits), now.misses.saturating_sub(before.misses));
    (hits + misses > 0).then(|| hits as f64 / (hits + misses) as f64)
}

/// A process is the same as before if its id and its start are.
fn rates_of(now: &ProcessDetails, all_before: &[ProcessDetails], seconds: f64) -> Process {
    let same = |before: &&ProcessDetails| before.pid == now.pid && before.since_seconds == now.since_seconds;
    let before = all_before.iter().find(same);
    let rate = |now: u64, before: Option<u64>| before.map_or(0.0, |before| now.saturating_sub(before) as f64 / seconds);
    Process {
        pid: now.pid,
        since_seconds: now.since().elapsed().as_ref().map_or(0, Duration::as_secs),
        threads: now.threads,
        pins: now.pins,
        hits_per_second: rate(now.hits, before.map(|before| before.hits)),
        misses_per_second: rate(now.misses, before.map(|before| before.misses)),
        is_this: now.pid == std::process::id(),
    }
}

#[cfg(test)]
impl View {
    /// A busy volume.
    pub(super) fn example() -> Self {
        let latency = |median_ns| Latency { probes: 256, median_ns, p99_ns: median_ns * 7, max_ns: median_ns * 90 };
        Self {
            path: "site.eye".to_owned(),
            seconds: 75.0,
            size_bytes: 64 << 20,
            data_bytes: 62 << 20,
            live_bytes: 40 << 20,
            entries: 12_345,
            index_live: 12_345,
            index_slots: 100_000,
            index_slots_wanted: 120_000,
            pins: 7,
            per_second: Rates {
                hits: 123_456.7,
                misses: 890.1,
                puts: 850.0,
                removes: 0.0,
                evictions: 12.3,
                slot_evictions: 2.4,
                index_steps: 850.0,
            },
            hit_ratio: Some(0.993),
            hit_ratio_of_run: Some(0.951),
            get: Some(latency(140)),
            put: Some(latency(1900)),
            hot: (0..40)
                .map(|number| HotKey {
                    key: format!("/pages/{number}.html"),
                    frequency: 7 - number / 8,
                    value_bytes: 1000 * (number + 1),
                })
                .collect(),
            processes: (0..3)
                .map(|number| Process {
                    pid: 4000 + number,
                    since_seconds: 3600 * u64::from(number + 1),
                    threads: 8,
                    pins: u64::from(number),
                    hits_per_second: 41_000.0,
                    misses_per_second: 296.0,
                    is_this: number == 2,
                })
                .collect(),
        }
    }
}
