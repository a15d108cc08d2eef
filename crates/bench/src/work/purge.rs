//! Purging a million entries by one tag while threads read others: how long the call takes, and what the readers notice.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use eyewall::{Cache, Purge, PutOptions};
use hdrhistogram::Histogram;

use crate::clock::now_ns;
use crate::contender::{allow_misses, histogram};
use crate::error::{Error, Result};
use crate::load::Population;
use crate::random::{self, Random};
use crate::record::{Ask, Row};
use crate::report::figure;
use crate::run::{Run, SEED};
use crate::scratch::Storage;
use crate::store::{Place, Volume};
use crate::touch;
use crate::windows::{Windows, noise};

const VALUE_BYTES: usize = 100;

/// Entries that stay, which are what is read.
const KEPT: u64 = 100_000;

const READERS: u64 = 2;

/// The tags of what is purged and of what stays: both kinds are judged.
const PURGED_TAG: &str = "purged";
const KEPT_TAG: &str = "kept";

const EARLIER: &str = "the window before";
const BEFORE: &str = "before";
const AFTER: &str = "after";

/// One that isn't counted, two before the purge, one after it.
const WINDOWS: usize = 4;

/// Purges on both storages.
pub fn run(run: &mut Run) -> Result<()> {
    let purged = run.pick(1_000_000, 100_000);
    let population = Population { objects: KEPT + purged, value_bytes: VALUE_BYTES };
    let cap_bytes = population.cap_bytes();
    for storage in [Storage::Shm, Storage::Disk] {
        if run.lacks_space(storage, 2 * cap_bytes, &format!("purge on {}", run.storage_name(storage)))? {
            continue;
        }
        let mut samples = Vec::new();
        for _ in 0..run.repetitions() {
            let directory = run.scratch(storage)?;
            let store = Volume::create(&Place::new(directory.path(), cap_bytes, VALUE_BYTES))?;
            store.put_all(KEPT..population.objects, VALUE_BYTES, &PutOptions::new().tags(&[PURGED_TAG]))?;
            store.put_all(0..KEPT, VALUE_BYTES, &PutOptions::new().tags(&[KEPT_TAG]))?;
            run.settle(storage)?;
            samples.push(purge(&store, Duration::from_millis(run.pick(1_000, 100)))?);
            let left = purged - store.count_missing(KEPT..population.objects)?;
            if left > 0 {
                return Err(Error::Invalid(format!(
                    "{left} of {purged} entries were found after their tag was purged"
                )));
            }
        }
        record(run, storage, purged, &samples);
    }
    Ok(())
}

/// One repetition.
struct Sample {
    call_ns: u64,
    /// By window.
    latency_ns: Vec<Histogram<u64>>,
}

fn purge(store: &Volume, window: Duration) -> Result<Sample> {
    let windows = Windows::new(WINDOWS);
    let cache = store.cache();
    let misses = AtomicU64::new(0);
    thread::scope(|scope| {
        let readers: Vec<_> = (0..READERS)
            .map(|reader| {
                let (windows, misses) = (&windows, &misses);
                scope.spawn(move || read(cache, windows, reader, misses))
            })
            .collect();
        for _ in 0..WINDOWS - 2 {
            thread::sleep(window);
            windows.next();
        }
        thread::sleep(window);
        // What readers do during the call counts as after it.
        windows.next();
        let begin_ns = now_ns();
        let purged = cache.purge_tag(PURGED_TAG, Purge::Hard);
        let call_ns = now_ns() - begin_ns;
        thread::sleep(window);
        windows.end();
        let mut latency_ns = (0..WINDOWS).map(|_| histogram()).collect::<Result<Vec<_>>>()?;
        for reader in readers {
            let found = reader.join().map_err(|_| Error::Invalid("a reader panicked".to_owned()))??;
            for (all, one) in latency_ns.iter_mut().zip(found) {
                all.add(one).map_err(|failure| Error::Invalid(format!("histogram: {failure}")))?;
            }
        }
        purged?;
        let gets = latency_ns.iter().map(Histogram::len).sum();
        allow_misses("a reader of what was not purged", misses.load(Ordering::Relaxed), gets)?;
        Ok(Sample { call_ns, latency_ns })
    })
}

/// Gets of random entries that stay.
fn read(cache: &Cache, windows: &Windows, reader: u64, misses: &AtomicU64) -> Result<Vec<Histogram<u64>>> {
    let mut random = Random::new(random::mix(SEED + reader));
    windows.time(|| {
        match cache.get(random::key(random.below(KEPT)))? {
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

fn record(run: &mut Run, storage: Storage, purged: u64, samples: &[Sample]) {
    let name = format!("{} entries, {READERS} readers, {}", figure(purged as f64), run.storage_name(storage));
    let calls: Vec<f64> = samples.iter().map(|sample| sample.call_ns as f64 / 1e3).collect();
    let row = Row::new("purge", format!("{name}: the call"), "us")
        .series(Volume::NAME, &calls)
        .value(Volume::NAME, Ask::at_most(50.0).aim(5.0));
    run.push(row);
    for (quantile_name, quantile) in [("p50", 0.5), ("p99", 0.99)] {
        let of_window = |window: usize| -> Vec<f64> {
            let figure = |sample: &Sample| sample.latency_ns[window].value_at_quantile(quantile) as f64 / 1e3;
            samples.iter().map(figure).collect()
        };
        let (earlier, before, after) = (of_window(1), of_window(2), of_window(3));
        // What two windows without a purge between them differ by.
        let noise = noise(earlier.iter().copied().zip(before.iter().copied()));
        let ask = if quantile_name == "p99" { Ask::at_most(noise) } else { Ask::NOTHING };
        let row = Row::new("purge", format!("{name}: {quantile_name} of a get"), "us")
            .series(AFTER, &after)
            .series(BEFORE, &before)
            .series(EARLIER, &earlier)
            .ratio(AFTER, BEFORE, ask)
            .ratio(BEFORE, EARLIER, Ask::NOTHING);
        run.push(row);
    }
}
