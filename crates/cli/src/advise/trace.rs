//! The requests of a log, thinned by key until they fit into memory.
//!
//! The sample is spatial (Waldspurger et al., "Efficient MRC Construction with SHARDS", FAST 2015): a key is in it if its // tidy: word
//! hash is below a limit, and then all of its requests are. A sample at the rate R behaves in a cache of R times the size
//! as the whole log does in the full one. When there is no more room, the limit is halved, and the keys above it are dropped.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use xxhash_rust::xxh3::xxh3_64;

use crate::volume::HEADER_BYTES;

/// Requests that are kept without `--exact`: 128 MiB of them.
const KEPT_MAX: usize = 8 << 20;
const UNIT_BYTES: u64 = 8;

/// The totals of the log, sampled or not.
#[derive(Debug, Default, Clone, serde::Serialize)]
pub(crate) struct Totals {
    /// Lines that are not empty.
    pub(crate) lines: u64,
    /// Lines that are not in the format.
    pub(crate) bad_lines: u64,
    /// Requests with another method than GET.
    pub(crate) other_methods: u64,
    /// Requests with a status that doesn't count.
    pub(crate) other_statuses: u64,
    /// Requests that count.
    pub(crate) requests: u64,
    /// Bytes that were sent for them.
    pub(crate) bytes: u64,
}

/// A key of the sample.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Key {
    pub(crate) hash: u64,
    /// The length of the key itself.
    pub(crate) name_bytes: u64,
    /// The length of the longest response: shorter ones were cut off, or told the client that it has the object.
    pub(crate) value_bytes: u64,
    pub(crate) requests: u64,
}

impl Key {
    /// The bytes of its entry in a volume.
    pub(crate) fn entry_bytes(&self) -> u64 {
        (HEADER_BYTES + self.name_bytes + self.value_bytes).next_multiple_of(UNIT_BYTES)
    }
}

/// A request of the sample.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Visit {
    /// The number of the key.
    pub(crate) key: u32,
    /// Bytes that were sent.
    pub(crate) bytes: u64,
}

/// A request while the log is read: the hash of its key, and its bytes above the 16 bits of the key's length.
#[derive(Debug, Clone, Copy)]
struct Noted {
    hash: u64,
    lengths: u64,
}

/// A key while the sample is assembled, and its place in the order of the hashes.
#[derive(Debug)]
struct Seen {
    key: Key,
    number: u32,
}

/// Collects requests, and thins them when they become many.
#[derive(Debug)]
pub(crate) struct Collector {
    pub(crate) totals: Totals,
    noted: Vec<Noted>,
    noted_max: usize,
    /// The largest hash that is kept.
    limit: u64,
    is_exact: bool,
}

impl Collector {
    pub(crate) fn new(is_exact: bool) -> Self {
        Self { is_exact, ..Self::keeping(if is_exact { usize::MAX } else { KEPT_MAX }) }
    }

    pub(crate) fn keeping(noted_max: usize) -> Self {
        Self { totals: Totals::default(), noted: Vec::new(), noted_max, limit: u64::MAX, is_exact: false }
    }

    /// `bytes` has 48 bits, and the key a length of 16 bits.
    pub(crate) fn add(&mut self, key: &[u8], bytes: u64) {
        self.totals.requests += 1;
        self.totals.bytes = self.totals.bytes.saturating_add(bytes);
        let hash = xxh3_64(key);
        if hash > self.limit {
            return;
        }
        if self.noted.len() >= self.noted_max {
            self.thin();
            if hash > self.limit {
                return;
            }
        }
        self.noted.push(Noted { hash, lengths: bytes << 16 | key.len() as u64 & 0xffff });
    }

    fn thin(&mut self) {
        self.limit /= 2;
        let before = self.noted.len();
        self.noted.retain(|noted| noted.hash <= self.limit);
        // The remaining keys may be few, and have most of the requests. Further halving would drop even these, so
        // the sample may use more memory instead.
        if self.noted.len() > before / 4 * 3 {
            self.noted_max += self.noted_max / 2;
        }
    }

    /// The sample, with its keys numbered in the order of their hashes: the first keys are a smaller sample.
    pub(crate) fn finish(self) -> Trace {
        let mut seen: HashMap<u64, Seen, BuildHasherDefault<Same>> = HashMap::default();
        for noted in &self.noted {
            let (value_bytes, name_bytes) = (noted.lengths >> 16, noted.lengths & 0xffff);
            let key = Key { hash: noted.hash, name_bytes, value_bytes: 0, requests: 0 };
            let key = &mut seen.entry(noted.hash).or_insert(Seen { key, number: 0 }).key;
            key.value_bytes = key.value_bytes.max(value_bytes);
            key.requests += 1;
        }
        let mut keys: Vec<Key> = seen.values().map(|seen| seen.key).collect();
        keys.sort_unstable_by_key(|key| key.hash);
        for (number, key) in keys.iter().enumerate() {
            if let Some(seen) = seen.get_mut(&key.hash) {
                seen.number = number as u32;
            }
        }
        let visits = self.noted.into_iter().map(|noted| Visit {
            key: seen.get(&noted.hash).map_or(0, |seen| seen.number),
            bytes: noted.lengths >> 16,
        });
        Trace {
            totals: self.totals,
            visits: visits.collect(),
            keys,
            rate: rate_of(self.limit),
            is_exact: self.is_exact,
        }
    }
}

/// The requests of a log, or a sample of them by key.
#[derive(Debug)]
pub(crate) struct Trace {
    pub(crate) totals: Totals,
    /// In the order of their hashes.
    pub(crate) keys: Vec<Key>,
    /// In the order of the log.
    pub(crate) visits: Vec<Visit>,
    /// The share of all keys that the sample has.
    pub(crate) rate: f64,
    /// Every size is replayed with all keys of the log.
    pub(crate) is_exact: bool,
}

impl Trace {
    /// How many keys a sample at this rate has; it consists of the first keys.
    pub(crate) fn keys_at(&self, rate: f64) -> usize {
        if rate >= self.rate {
            return self.keys.len();
        }
        let limit = (rate * 2_f64.powi(64)) as u64;
        self.keys.partition_point(|key| key.hash <= limit)
    }

    /// How many keys the log has.
    pub(crate) fn key_count(&self) -> u64 {
        (self.keys.len() as f64 / self.rate).round() as u64
    }

    /// The bytes of a volume that would hold everything.
    pub(crate) fn footprint_bytes(&self) -> u64 {
        let bytes: u64 = self.keys.iter().map(Key::entry_bytes).fold(0, u64::saturating_add);
        (bytes as f64 / self.rate).round() as u64
    }

    /// The share of keys, and of the bytes of their entries, that were requested once.
    pub(crate) fn one_hit_shares(&self) -> (f64, f64) {
        let once = self.keys.iter().filter(|key| key.requests == 1);
        let (count, bytes) =
            once.fold((0_u64, 0_u64), |(count, bytes), key| (count + 1, bytes.saturating_add(key.entry_bytes())));
        let all = self.keys.iter().map(Key::entry_bytes).fold(0, u64::saturating_add);
        (count as f64 / self.keys.len().max(1) as f64, bytes as f64 / all.max(1) as f64)
    }
}

fn rate_of(limit: u64) -> f64 {
    (limit as f64 + 1.0) / 2_f64.powi(64)
}

/// Hashes hashes: the high bits of a sample's hashes are all zero, the low ones are random.
#[derive(Debug, Default)]
struct Same(u64);

impl Hasher for Same {
    fn write(&mut self, _: &[u8]) {}

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash.rotate_left(32);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_has_all_requests_of_a_key_or_none() {
        let mut collector = Collector::keeping(1000);
        for round in 0..3 {
            for key in 0..2000_u64 {
                collector.add(&key.to_le_bytes(), 100 + round);
            }
        }
        let trace = collector.finish();
        assert_eq!((trace.totals.requests, trace.totals.bytes), (6000, 606_000));
        assert!(trace.visits.len() <= 1000 && trace.rate <= 0.25, "{} at {}", trace.visits.len(), trace.rate);
        assert!(trace.keys.iter().all(|key| key.requests == 3 && key.value_bytes == 102), "the largest answer counts");
        assert!(trace.key_count().abs_diff(2000) < 400, "{}", trace.key_count());
        let half = trace.keys_at(trace.rate / 2.0);
        assert!(half.abs_diff(trace.keys.len() / 2) < 40, "{half} of {}", trace.keys.len());
        assert!(trace.keys.is_sorted_by_key(|key| key.hash));
    }

    #[test]
    fn a_key_of_most_requests_does_not_empty_the_sample() {
        let mut collector = Collector::keeping(1000);
        for key in 0..10_000_u64 {
            collector.add(b"favourite", 1);
            collector.add(&key.to_le_bytes(), 1);
        }
        let trace = collector.finish();
        assert!(trace.keys.len() > 100, "{}", trace.keys.len());
    }

    #[test]
    fn objects_requested_once_are_counted_by_keys_and_by_bytes() {
        let mut collector = Collector::new(false);
        for (key, bytes) in [("a", 19), ("b", 99), ("a", 0)] {
            collector.add(key.as_bytes(), bytes);
        }
        let trace = collector.finish();
        assert_eq!(trace.footprint_bytes(), 64 + 144);
        assert_eq!(trace.one_hit_shares(), (0.5, 144.0 / 208.0));
        assert!((trace.rate - 1.0).abs() < f64::EPSILON);
    }
}
