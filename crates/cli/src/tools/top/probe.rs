//! Measures gets and puts that `top` makes itself.

use std::time::{Duration, Instant};

use eyewall::{Cache, PutOptions};
use serde::Serialize;

use crate::Error;

/// Gets per update.
const GETS: usize = 256;
/// Puts per update.
const PUTS: usize = 16;
const PUT_BYTES: usize = 100;
/// The entry of a probe that was killed expires after this time.
const PUT_TTL: Duration = Duration::from_mins(1);

/// How long calls took, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Latency {
    pub(super) probes: u64,
    pub(super) median_ns: u64,
    pub(super) p99_ns: u64,
    pub(super) max_ns: u64,
}

impl Latency {
    fn of(mut spans: Vec<u64>) -> Option<Self> {
        spans.sort_unstable();
        let at = |share: usize| spans.get((spans.len() * share / 100).min(spans.len().saturating_sub(1))).copied();
        Some(Self { probes: spans.len() as u64, median_ns: at(50)?, p99_ns: at(99)?, max_ns: *spans.last()? })
    }
}

/// Looks these keys up in turn. It changes neither their frequencies nor the counters.
pub(super) fn gets(cache: &Cache, keys: &[Vec<u8>]) -> Result<Option<Latency>, Error> {
    let mut spans = Vec::with_capacity(GETS);
    for key in keys.iter().cycle().take(GETS) {
        let start = Instant::now();
        let hit = cache.peek(key)?;
        spans.push(start.elapsed().as_nanos() as u64);
        drop(hit);
    }
    Ok(Latency::of(spans))
}

/// Stores small values under a key of `top`, and removes it.
pub(super) fn puts(cache: &Cache) -> Result<Option<Latency>, Error> {
    let key = format!("eyewall top, a probe of process {}", std::process::id());
    let options = PutOptions::new().ttl(PUT_TTL);
    let mut spans = Vec::with_capacity(PUTS);
    for _ in 0..PUTS {
        let start = Instant::now();
        cache.put_with(&key, [0; PUT_BYTES], &options)?;
        spans.push(start.elapsed().as_nanos() as u64);
    }
    cache.remove(&key)?;
    Ok(Latency::of(spans))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_measurements() {
        assert_eq!(Latency::of(Vec::new()), None);
        let latency = Latency::of((1..=200).rev().collect()).unwrap();
        assert_eq!((latency.probes, latency.median_ns, latency.p99_ns, latency.max_ns), (200, 101, 199, 200));
    }
}
