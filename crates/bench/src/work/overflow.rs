//! Overflow: many times the cap is written and nothing read. Is the cap hard, and is the space used?

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use super::{KIB, MIB, sweep};
use crate::contender::Contender as _;
use crate::error::{Error, Result};
use crate::record::{Ask, Row};
use crate::run::Run;
use crate::scratch::Storage;
use crate::store::{Place, Volume, footprint};

const CAP_BYTES: u64 = 16 * MIB as u64;

/// Bytes written, in caps.
const CAPS_WRITTEN: usize = 20;

const SAMPLE_EVERY: Duration = Duration::from_millis(1);

/// Overflows a new volume on each storage.
pub fn run(run: &mut Run) -> Result<()> {
    let sizes = sizes();
    for storage in [Storage::Disk, Storage::Shm] {
        let mut peaks = Vec::new();
        let mut live = Vec::new();
        for _ in 0..run.repetitions() {
            let found = overflow(run, storage, &sizes)?;
            peaks.push(found.allocated_bytes_max as f64 / MIB as f64);
            live.push(100.0 * found.live_bytes as f64 / CAP_BYTES as f64);
        }
        let name = run.storage_name(storage).to_owned();
        let row = Row::new("overflow", format!("{name}: most blocks ever allocated"), "MB")
            .series(Volume::NAME, &peaks)
            .value(Volume::NAME, Ask::at_most(16.0));
        run.push(row);
        let row = Row::new("overflow", format!("{name}: live entries with headers, of the cap"), "%")
            .series(Volume::NAME, &live)
            .value(Volume::NAME, Ask::at_least(90.0).aim(95.0));
        run.push(row);
    }
    Ok(())
}

/// Sizes of 1 to 100 KB until 20 caps are reached.
fn sizes() -> Vec<usize> {
    let total = CAPS_WRITTEN * CAP_BYTES as usize;
    let mut written = 0;
    sweep::sizes(total / KIB)
        .into_iter()
        .take_while(|bytes| {
            let before = written;
            written += bytes;
            before < total
        })
        .collect()
}

struct Found {
    allocated_bytes_max: u64,
    live_bytes: u64,
}

fn overflow(run: &Run, storage: Storage, sizes: &[usize]) -> Result<Found> {
    let directory = run.scratch(storage)?;
    let place = Place::new(directory.path(), CAP_BYTES, 50 * KIB);
    let store = Volume::create(&place)?;
    let path = directory.path().join(Volume::FILE);
    let allocated_bytes_max = AtomicU64::new(0);
    let done = AtomicBool::new(false);
    let sample = || -> Result<()> {
        allocated_bytes_max.fetch_max(footprint::below(directory.path())?.bytes, Ordering::Relaxed);
        Ok(())
    };
    thread::scope(|scope| {
        let sampler = scope.spawn(|| -> Result<()> {
            while !done.load(Ordering::Relaxed) {
                sample()?;
                thread::sleep(SAMPLE_EVERY);
            }
            Ok(())
        });
        let swept = store.sweep(sizes, sizes.len());
        done.store(true, Ordering::Relaxed);
        let sampling = sampler.join().map_err(|_| Error::Invalid("the sampler panicked".to_owned()))?;
        swept.map(|_| ()).and(sampling)
    })?;
    fs::File::open(&path).and_then(|file| file.sync_all()).map_err(Error::path("sync", &path))?;
    sample()?;
    let live_bytes = store.cache().stats()?.live_bytes;
    Ok(Found { allocated_bytes_max: allocated_bytes_max.into_inner(), live_bytes })
}
