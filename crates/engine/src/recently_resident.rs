//! Which entries were in memory a moment ago. Asking the kernel each time would cost as much as the hit itself.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long an entry that was in memory is assumed to stay there. The kernel takes pages that were just used last.
const RECENT: Duration = Duration::from_secs(1);
/// Bits of the index into the table.
const PLACE_BITS: u32 = 14;
/// Bits of a word that hold a time in milliseconds, which wraps after 12 days.
const TIME_BITS: u32 = 30;
const TIME_MASK: u64 = (1 << TIME_BITS) - 1;

/// A table of the keys that were last found in memory. The hash of a key gives its only place.
///
/// Its words order nothing, and a wrong one only costs a needless question. It takes a key for another only if their
/// hashes are equal (48 bits, with a secret), or after a wait of 12 days to the millisecond. That costs one wait for
/// storage.
#[derive(Debug)]
pub(crate) struct RecentlyResident {
    began: Instant,
    hashes: RandomState,
    /// Other bits of the hash, then the time.
    places: Box<[AtomicU64]>,
}

impl Default for RecentlyResident {
    fn default() -> Self {
        let places = (0..1 << PLACE_BITS).map(|_| AtomicU64::new(u64::MAX)).collect();
        Self { began: Instant::now(), hashes: RandomState::new(), places }
    }
}

impl RecentlyResident {
    /// Whether the entry of a key is in memory: because it was a moment ago, or because `ask` says so.
    pub(crate) fn get_or_ask(&self, key: &[u8], ask: impl FnOnce() -> bool) -> bool {
        let hash = self.hashes.hash_one(key);
        let place = &self.places[(hash >> (u64::BITS - PLACE_BITS)) as usize];
        let now = self.began.elapsed().as_millis() as u64 & TIME_MASK;
        let seen = place.load(Ordering::Relaxed);
        let is_same = (seen ^ hash << TIME_BITS) >> TIME_BITS == 0;
        if is_same && now.wrapping_sub(seen) & TIME_MASK < RECENT.as_millis() as u64 {
            return true;
        }
        let is_there = ask();
        if is_there {
            place.store(hash << TIME_BITS | now, Ordering::Relaxed);
        }
        is_there
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn an_entry_resident_a_moment_ago_is_not_asked_for_again() {
        let recently_resident = RecentlyResident::default();
        let asked = Cell::new(0);
        let ask = |key: &str, says| {
            recently_resident.get_or_ask(key.as_bytes(), || {
                asked.set(asked.get() + 1);
                says
            })
        };
        assert!(!ask("a", false) && !ask("a", false), "what is not there is asked for each time");
        assert_eq!(asked.get(), 2);
        assert!(ask("a", true) && ask("a", false), "it was there a moment ago");
        assert_eq!(asked.get(), 3);
        assert!(!ask("b", false), "another key is asked for");
    }

    #[test]
    fn an_entry_resident_long_ago_is_asked_for_again() {
        let mut recently_resident = RecentlyResident::default();
        assert!(recently_resident.get_or_ask(b"a", || true));
        recently_resident.began -= RECENT;
        assert!(!recently_resident.get_or_ask(b"a", || false));
    }
}
