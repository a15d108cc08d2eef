//! When addresses were purged: a response that was asked for before a purge isn't stored after it as if it were new.
//!
//! The volume remembers purges by tag, by prefix and of everything, from any process. Its epochs tell what came before them
//! ([`Mark::epoch`]). The purge of one address removes the entry of its key, or makes it stale, and the volume remembers nothing of
//! that. So each process counts the purges that it makes itself, and can miss those of others. A purge counts, then removes. A fill
//! stores, then looks at the count. So there are two cases. The fill sees the purge, and removes what it stored or makes it stale.
//! Or the fill stored first, and the purge finds its entry.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;

use eyewall::{Epoch, Purge};

const SLOTS: usize = 4096;
/// A count has two halves: the upper one counts hard purges, the lower one soft purges. An overflow of the lower half counts as a
/// hard purge.
const HARD: u64 = 1 << 32;

/// How often addresses were purged. Addresses that share a slot count as purged together, which costs no more than a fill.
#[derive(Debug)]
pub struct RecentPurges {
    hasher: RandomState,
    slots: Box<[AtomicU64]>,
}

/// The state of all purges when the upstream was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    slot: usize,
    count: u64,
    /// The state of the purges that the volume remembers.
    pub epoch: Option<Epoch>,
}

impl Default for RecentPurges {
    fn default() -> Self {
        Self { hasher: RandomState::new(), slots: (0..SLOTS).map(|_| AtomicU64::new(0)).collect() }
    }
}

impl RecentPurges {
    /// The state before the upstream is asked for an address. `epoch` is the present epoch of the volume.
    pub fn mark(&self, address: &[u8], epoch: Option<Epoch>) -> Mark {
        let slot = self.slot(address);
        Mark { slot, count: self.slots[slot].load(SeqCst), epoch }
    }

    /// Counts a purge of an address. Call this before the entry is removed, or made stale.
    pub fn note(&self, address: &[u8], kind: Purge) {
        let one = match kind {
            Purge::Hard => HARD,
            Purge::Soft => 1,
        };
        self.slots[self.slot(address)].fetch_add(one, SeqCst);
    }

    /// The hardest purge of the address since the mark. `None`: there was none.
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
