//! A bounded memory of keys that had some property a moment ago.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Bits of the number of places.
const PLACE_BITS: u32 = 12;
/// Bits of a word that are a time in milliseconds. It wraps after 12 days.
const TIME_BITS: u32 = 30;
const TIME_MASK: u64 = (1 << TIME_BITS) - 1;

/// A table of keys with the time at which each was noted. The hash of a key gives its one place.
///
/// Two keys of one place replace each other. The words order no other memory access, and a wrong one only costs an unnecessary
/// request or wait.
#[derive(Debug)]
pub struct RecentKeys {
    began: Instant,
    /// How long a key is known. None: until another key takes its place.
    period: Option<Duration>,
    hashes: RandomState,
    /// Other bits of the hash, then the time.
    places: Box<[AtomicU64]>,
}

impl RecentKeys {
    /// A table that forgets a key after `period`, which is less than 12 days. None: when another key takes its place.
    pub fn new(period: Option<Duration>) -> Self {
        let places = (0..1 << PLACE_BITS).map(|_| AtomicU64::new(u64::MAX)).collect();
        Self { began: Instant::now(), period, hashes: RandomState::new(), places }
    }

    /// Whether a key was noted recently.
    pub fn contains(&self, key: &[u8]) -> bool {
        let (place, hash) = self.place(key);
        let seen = place.load(Ordering::Relaxed);
        let is_same = (seen ^ hash << TIME_BITS) >> TIME_BITS == 0;
        let is_recent = |period: Duration| self.now().wrapping_sub(seen) & TIME_MASK < period.as_millis() as u64;
        is_same && self.period.is_none_or(is_recent)
    }

    /// Notes a key.
    pub fn insert(&self, key: &[u8]) {
        let (place, hash) = self.place(key);
        place.store(hash << TIME_BITS | self.now(), Ordering::Relaxed);
    }

    /// Forgets a key.
    pub fn remove(&self, key: &[u8]) {
        if self.contains(key) {
            self.place(key).0.store(u64::MAX, Ordering::Relaxed);
        }
    }

    fn now(&self) -> u64 {
        self.began.elapsed().as_millis() as u64 & TIME_MASK
    }

    fn place(&self, key: &[u8]) -> (&AtomicU64, u64) {
        let hash = self.hashes.hash_one(key);
        (&self.places[(hash >> (u64::BITS - PLACE_BITS)) as usize], hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_noted_key_is_known_for_the_period_and_no_longer() {
        let mut keys = RecentKeys::new(Some(Duration::from_mins(1)));
        assert!(!keys.contains(b"a"));
        keys.insert(b"a");
        assert!(keys.contains(b"a") && !keys.contains(b"b"));
        keys.began -= Duration::from_secs(61);
        assert!(!keys.contains(b"a"));
        keys.insert(b"a");
        keys.remove(b"a");
        assert!(!keys.contains(b"a"));
    }
}
