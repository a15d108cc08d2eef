//! Replays a trace through a volume of the engine: a get, and on a miss a put, as a server does that stores every response.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::estimate::{Index, Tally};
use super::progress::Progress;
use super::sizes::{entry_bytes_max, rate, scaled};
use super::trace::{Key, Trace};
use crate::Error;
use eyewall::{Cache, Options};

const THREADS: usize = 2;
/// Progress is reported after this many requests.
const STEP: usize = 1 << 14;
/// In a replay the hash stands for the key. The other bytes of the key count to the value.
const NAME_BYTES: u64 = 8;

/// Tries all sizes, the slow ones first, and returns their tallies in the order of the sizes.
pub(crate) fn replay_all(trace: &Trace, sizes: &[u64]) -> Result<Vec<Tally>, Error> {
    let mut trials = sizes.iter().map(|size| Trial::new(trace, *size)).collect::<Result<Vec<_>, _>>()?;
    trials.sort_by(|a, b| b.rate.total_cmp(&a.rate));
    let largest = trials.iter().map(|trial| trial.entry_bytes_max).max().unwrap_or(0);
    // Nobody reads the values, so all entries can have the same bytes.
    let zeros = vec![0; largest as usize];
    let progress = Progress::new("replaying", (trials.len() * trace.visits.len()) as u64);
    let next = AtomicUsize::new(0);
    let tallies = Mutex::new(Vec::new());
    let work = || {
        while let Some(trial) = trials.get(next.fetch_add(1, Relaxed)) {
            let tally = trial.run(trace, &zeros, &progress)?;
            tallies.lock().unwrap_or_else(PoisonError::into_inner).push(tally);
        }
        Ok(())
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS.min(trials.len())).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
    .map_err(|error: eyewall::Error| Error::Cache(error))?;
    let mut tallies = tallies.into_inner().unwrap_or_else(PoisonError::into_inner);
    tallies.sort_by_key(|tally: &Tally| tally.size_bytes);
    Ok(tallies)
}

/// A size, and the sample that it is tried with.
struct Trial {
    size: u64,
    rate: f64,
    /// The sampled volume.
    scaled: u64,
    entry_bytes_max: u64,
    /// The sample consists of the first keys, this many.
    keys: usize,
}

impl Trial {
    fn new(trace: &Trace, size: u64) -> Result<Self, Error> {
        let rate = rate(trace, size);
        let scaled = scaled(size, rate).ok_or(Error::SampleTooSmall { size })?;
        Ok(Self {
            size,
            rate,
            scaled,
            entry_bytes_max: entry_bytes_max(size).min(scaled / 4),
            keys: trace.keys_at(rate),
        })
    }

    fn run(&self, trace: &Trace, zeros: &[u8], progress: &Progress) -> eyewall::Result<Tally> {
        let cache = Options::new().size(self.scaled).entry_bytes_max(self.entry_bytes_max).heap()?;
        let mut tally = Tally { size_bytes: self.size, sample_rate: self.rate, ..Tally::default() };
        for visits in trace.visits.chunks(STEP) {
            for visit in visits.iter().filter(|visit| (visit.key as usize) < self.keys) {
                let key = &trace.keys[visit.key as usize];
                if cache.get(key.hash.to_le_bytes())?.is_none() {
                    tally.missed_requests.add(key.hash, 1);
                    tally.missed_bytes.add(key.hash, visit.bytes);
                    tally.too_large += u64::from(!put(&cache, key, zeros)?);
                }
            }
            progress.add(visits.len() as u64);
        }
        for key in &trace.keys[..self.keys] {
            if cache.contains(key.hash.to_le_bytes())? {
                tally.held_bytes.add(key.hash, key.entry_bytes());
            }
        }
        tally.index = Index::of(&cache.stats()?);
        Ok(tally)
    }
}

/// Stores a value of the key's size; false if it is too large for the volume.
fn put(cache: &Cache, key: &Key, zeros: &[u8]) -> eyewall::Result<bool> {
    let bytes = (key.name_bytes + key.value_bytes).saturating_sub(NAME_BYTES);
    let Some(value) = zeros.get(..bytes as usize) else { return Ok(false) };
    match cache.put(key.hash.to_le_bytes(), value) {
        Ok(_) => Ok(true),
        Err(eyewall::Error::EntryTooLarge { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::super::estimate::points;
    use super::super::trace::Collector;
    use super::*;

    /// `SplitMix64`, a pseudorandom number.
    fn mix(number: u64) -> u64 {
        let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Requests like those of the web. A rank is as likely to be below a hundred as between that and ten thousand. A tenth of
    /// the requests is for objects that are never requested again. Most objects are small, and a few are not.
    fn fill(mut collector: Collector) -> Trace {
        for number in 0..600_000_u64 {
            let rank = 1e6_f64.powf(mix(number) as f64 / u64::MAX as f64) as u64;
            let key = if number % 10 == 0 { u64::MAX - number } else { rank };
            let bytes = 200 + mix(key) % 4000;
            collector.add(&key.to_le_bytes(), if mix(key) % 500 == 7 { bytes * 40 } else { bytes });
        }
        collector.finish()
    }

    #[test]
    fn a_sample_is_off_by_no_more_than_it_says() {
        let sizes = [8 << 20, 32 << 20, 96 << 20];
        let (whole, sample) = (fill(Collector::new(true)), fill(Collector::keeping(100_000)));
        assert!(sample.rate <= 0.25, "{}", sample.rate);
        let curve = |trace: &Trace| points(&replay_all(trace, &sizes).unwrap(), &trace.totals);
        let (whole, sample) = (curve(&whole), curve(&sample));
        for (whole, sample) in whole.iter().zip(&sample) {
            for (whole, sample) in [(whole.object_hits, sample.object_hits), (whole.byte_hits, sample.byte_hits)] {
                assert!(whole.error <= 0.0 && sample.error > 0.0 && sample.error < 0.03, "{sample:?}");
                // A small volume itself differs by up to half a point.
                let off = (sample.ratio - whole.ratio).abs();
                assert!(off < 3.0 * sample.error + 0.005, "{sample:?} for {whole:?}");
            }
        }
    }
}
