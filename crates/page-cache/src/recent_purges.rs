//! When addresses were purged: what was asked for before that isn't stored behind it as if it were new.
//!
//! Purges by tag, by prefix and of everything are remembered by the volume, whoever makes them: its epochs say what came before
//! them ([`Mark::epoch`]). The purge of one address removes the entry of its key, or makes it stale, and of that the volume
//! remembers nothing. So each process counts those that it does itself, and can miss
//! those of others: a purge counts, then removes; a fill stores, then looks at
//! the count. Either it sees the purge, and does the same to what it stored, or what the purge does comes behind its storing.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;

use eyewall::{Epoch, Purge};

const SLOTS: usize = 4096;
/// A count has two halves: hard purges are counted in the upper one, soft ones in the lower. What overflows the lower is taken
/// for a hard one.
const HARD: u64 = 1 << 32;

/// How often addresses were purged. Those that share a slot are taken to be purged together, which costs a fill and no more.
#[derive(Debug)]
pub struct RecentPurges {
    hasher: RandomState,
    slots: Box<[AtomicU64]>,
}

/// What was purged when something was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    slot: usize,
    count: u64,
    /// By this the volume knows it.
    pub epoch: Option<Epoch>,
}

impl Default for RecentPurges {
    fn default() -> Self {
        Self { hasher: RandomState::new(), slots: (0..SLOTS).map(|_| AtomicU64::new(0)).collect() }
    }
}

impl RecentPurges {
    /// How things stand before an address is asked for. `epoch` is the volume's present one.
    pub fn mark(&self, address: &[u8], epoch: Option<Epoch>) -> Mark {
        let slot = self.slot(address);
        Mark { slot, count: self.slots[slot].load(SeqCst), epoch }
    }

    /// Counts a purge of an address. That comes before the entry is removed, or made stale.
    pub fn note(&self, address: &[u8], kind: Purge) {
        let one = match kind {
            Purge::Hard => HARD,
            Purge::Soft => 1,
        };
        self.slots[self.slot(address)].fetch_add(one, SeqCst);
    }

    /// The hardest of the purges of the address that have come since; `None`: there was none.
    pub fn since(&self, mark: Mark) -> Option<Purge> {
        let now = self.slots[mark.slot].load(SeqCst);
        match now {
            _ if now / HARD != mark.count / HARD => Some(Purge::Hard),
            _ if now != mark.count => Some(Purge::Soft),
            _ => None,
        }
    }

    fn slot(&self, address: &[u8]) -> usize {
        self.hasher.hash_one(address) as usize % SLOTS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hardest_purge_since_counts() {
        let counts = RecentPurges::default();
        let mark = counts.mark(b"key", None);
        assert_eq!(counts.since(mark), None);
        counts.note(b"key", Purge::Soft);
        assert_eq!(counts.since(mark), Some(Purge::Soft));
        counts.note(b"key", Purge::Hard);
        assert_eq!(counts.since(mark), Some(Purge::Hard));
        let later = counts.mark(b"key", None);
        counts.note(b"key", Purge::Soft);
        assert_eq!(counts.since(later), Some(Purge::Soft));
    }
}
