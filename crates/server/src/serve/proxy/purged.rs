//! When addresses were purged: what the origin was asked for before that isn't stored behind it as if it were new.
//!
//! A purge counts, then removes what is stored, or makes it stale. A fill stores, then looks at the count: either it sees the
//! purge, and does the same to what it stored, or what the purge does comes behind its storing.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;

use eyewall::Purge;

const SLOTS: usize = 4096;
/// A count has two halves: hard purges are counted in the upper one, soft ones in the lower. What overflows the lower is taken
/// for a hard one.
const HARD: u64 = 1 << 32;

/// How often addresses were purged. Those that share a slot are taken to be purged together, which costs a fill and no more.
pub(crate) struct Purged {
    hasher: RandomState,
    slots: Box<[AtomicU64]>,
    /// Purges that may mean any address.
    many: AtomicU64,
}

/// The counts of an address, when the origin was asked for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    slot: usize,
    count: u64,
    many: u64,
}

impl Purged {
    pub(crate) fn new() -> Self {
        let slots = (0..SLOTS).map(|_| AtomicU64::new(0)).collect();
        Self { hasher: RandomState::new(), slots, many: AtomicU64::new(0) }
    }

    pub(crate) fn mark(&self, key: &[u8]) -> Mark {
        self.of_slot(self.slot(key))
    }

    pub(crate) fn note(&self, key: &[u8], kind: Purge) {
        self.slots[self.slot(key)].fetch_add(one(kind), SeqCst);
    }

    pub(crate) fn note_many(&self, kind: Purge) {
        self.many.fetch_add(one(kind), SeqCst);
    }

    /// The hardest of the purges that have come since; `None`: there was none.
    pub(crate) fn since(&self, mark: Mark) -> Option<Purge> {
        let now = self.of_slot(mark.slot);
        if now == mark {
            return None;
        }
        let is_hard = now.count / HARD != mark.count / HARD || now.many / HARD != mark.many / HARD;
        Some(if is_hard { Purge::Hard } else { Purge::Soft })
    }

    /// Whether a purge of any kind has come since.
    pub(crate) fn has_come_since(&self, mark: Mark) -> bool {
        self.since(mark).is_some()
    }

    fn of_slot(&self, slot: usize) -> Mark {
        Mark { slot, count: self.slots[slot].load(SeqCst), many: self.many.load(SeqCst) }
    }

    fn slot(&self, key: &[u8]) -> usize {
        self.hasher.hash_one(key) as usize % SLOTS
    }
}

fn one(kind: Purge) -> u64 {
    match kind {
        Purge::Hard => HARD,
        Purge::Soft => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hardest_purge_since_counts() {
        let purged = Purged::new();
        let mark = purged.mark(b"key");
        assert_eq!(purged.since(mark), None);
        purged.note(b"key", Purge::Soft);
        assert_eq!(purged.since(mark), Some(Purge::Soft));
        purged.note_many(Purge::Hard);
        assert_eq!(purged.since(mark), Some(Purge::Hard));
        let later = purged.mark(b"key");
        purged.note_many(Purge::Soft);
        assert_eq!(purged.since(later), Some(Purge::Soft));
    }
}
