//! Purges many entries by one tag while threads read other entries. Measures the time of the call, and its effect on
//! the readers.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use eyewall::{Cache, Purge, PutOptions};
use hdrhistogram::Histogram;
use serde::Deserialize;

use super::Procedure;
use crate::clock::{histogram, now_ns};
use crate::error::{Error, Result};
use crate::load::{Population, allow_misses};
use crate::random::{self, Random};
use crate::store::Place;
use crate::stores::Volume;
use crate::suite::cell::Cell;
use crate::suite::size::Bytes;
use crate::suite::value::Value;
use crate::touch;
use crate::windows::{Windows, noise};

/// The tags of purged entries, and of those that stay. Gets check entries of both kinds for purges.
const PURGED_TAG: &str = "purged";
const KEPT_TAG: &str = "kept";

/// The values of the parameter `window`: two windows before the purge, and the one that begins with it.
const WINDOWS: [&str; 3] = ["earlier", "before", "after"];

/// The first window isn't counted.
const UNCOUNTED: usize = 1;

/// For each measure, the quantile of a get's time.
const QUANTILES: [(&str, f64); 2] = [("p50", 0.5), ("p99", 0.99)];

/// `storage` makes cells; a new volume for each repetition.
pub(super) struct Purging;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// Entries that are purged.
    purged: u64,
    /// Entries that stay, which the readers get.
    kept: u64,
    value: Bytes,
    readers: u64,
    /// Length of a window.
    milliseconds: u64,
}

impl Procedure for Purging {
    fn within(&self) -> &'static [&'static str] {
        &["window"]
    }

    fn measure(&self, cell: &mut Cell<'_>) -> Result<()> {
        let settings: Settings = cell.settings()?;
        let (case, storage) = (cell.case().clone(), cell.storage()?);
        let Settings { purged, kept, .. } = settings;
        let value_bytes = settings.value.0 as usize;
        let population = Population { objects: kept + purged, value_bytes };
        let mut p99 = Vec::new();
        for repetition in 1..=cell.repetitions() {
            cell.breathe()?;
            cell.show(&format!("repetition {repetition}, {case}"));
            let directory = cell.scratch().make(storage)?;
            let store = Volume::create(&Place::new(directory.path(), population.cap_bytes(), value_bytes))?;
            store.put_all(kept..population.objects, value_bytes, &PutOptions::new().tags(&[PURGED_TAG]))?;
            store.put_all(0..kept, value_bytes, &PutOptions::new().tags(&[KEPT_TAG]))?;
            cell.scratch().settle(storage)?;
            let sample = purge(&store, &settings, cell.seed())?;
            let left = purged - store.count_missing(kept..population.objects)?;
            if left > 0 {
                let what = format!("{left} of {purged} entries were found after their tag was purged");
                return Err(Error::Invalid(what));
            }
            cell.sample(&case, Volume::NAME, "call", repetition, sample.call_ns as f64 / 1e9)?;
            for (window, latency_ns) in WINDOWS.iter().zip(&sample.latency_ns) {
                let case = case.clone().with("window", Value::Text((*window).to_owned()));
                for (measure, quantile) in QUANTILES {
                    let seconds = latency_ns.value_at_quantile(quantile) as f64 / 1e9;
                    cell.sample(&case, Volume::NAME, measure, repetition, seconds)?;
                }
                cell.distribution(&case, Volume::NAME, "get", repetition, latency_ns)?;
            }
            p99.push([0, 1, 2].map(|window: usize| sample.latency_ns[window].value_at_quantile(0.99) as f64));
        }
        // How much windows without a purge between them differed, in all repetitions.
        let noise = noise(p99.iter().map(|[earlier, before, _]| (*earlier, *before)));
        for (number, [_, before, after]) in p99.iter().enumerate() {
            cell.sample(&case, Volume::NAME, "p99_beyond_noise", number + 1, after / before / noise)?;
        }
        Ok(())
    }
}

/// One repetition.
struct Sample {
    call_ns: u64,
    /// For each counted window.
    latency_ns: Vec<Histogram<u64>>,
}

fn purge(store: &Volume, settings: &Settings, seed: u64) -> Result<Sample> {
    let count = UNCOUNTED + WINDOWS.len();
    let windows = Windows::new(count);
    let window = Duration::from_millis(settings.milliseconds);
    let cache = store.cache();
    let misses = AtomicU64::new(0);
    thread::scope(|scope| {
        let readers: Vec<_> = (0..settings.readers)
            .map(|reader| {
                let (windows, misses) = (&windows, &misses);
                let random = Random::new(random::mix(seed + reader));
                scope.spawn(move || read(cache, windows, settings.kept, random, misses))
            })
            .collect();
        for _ in 0..count - 2 {
            thread::sleep(window);
            windows.next();
        }
        thread::sleep(window);
        // Gets during the call count as gets after it.
        windows.next();
        let begin_ns = now_ns();
        let purged = cache.purge_tag(PURGED_TAG, Purge::Hard);
        let call_ns = now_ns() - begin_ns;
        thread::sleep(window);
        windows.end();
        let mut latency_ns = (0..count).map(|_| histogram()).collect::<Result<Vec<_>>>()?;
        for reader in readers {
            let found = reader.join().map_err(|_| Error::Invalid("a reader panicked".to_owned()))??;
            for (all, one) in latency_ns.iter_mut().zip(found) {
                all.add(one).map_err(|failure| Error::Invalid(format!("histogram: {failure}")))?;
            }
        }
        purged?;
        let gets = latency_ns.iter().map(Histogram::len).sum();
        allow_misses("a reader of what was not purged", misses.load(Ordering::Relaxed), gets)?;
        Ok(Sample { call_ns, latency_ns: latency_ns.split_off(UNCOUNTED) })
    })
}

/// Gets of random entries that stay.
fn read(
    cache: &Cache,
    windows: &Windows,
    kept: u64,
    mut random: Random,
    misses: &AtomicU64,
) -> Result<Vec<Histogram<u64>>> {
    windows.time(|| {
        match cache.get(random::key(random.below(kept)))? {
            Some(hit) => {
                black_box(touch::page(&hit));
            }
            None => {
                misses.fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(())
    })
}
