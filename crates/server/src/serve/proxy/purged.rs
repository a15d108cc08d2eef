//! When addresses were purged: what the origin was asked for before that isn't stored behind it.
//!
//! A purge counts, then removes what is stored. A fill stores, then looks at the count: either it sees the purge, and removes
//! what it stored, or the purge's removal comes behind its storing.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;

const SLOTS: usize = 4096;

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

    pub(crate) fn note(&self, key: &[u8]) {
        self.slots[self.slot(key)].fetch_add(1, SeqCst);
    }

    pub(crate) fn note_many(&self) {
        self.many.fetch_add(1, SeqCst);
    }

    /// Whether a purge has come since.
    pub(crate) fn has_come_since(&self, mark: Mark) -> bool {
        self.of_slot(mark.slot) != mark
    }

    fn of_slot(&self, slot: usize) -> Mark {
        Mark { slot, count: self.slots[slot].load(SeqCst), many: self.many.load(SeqCst) }
    }

    fn slot(&self, key: &[u8]) -> usize {
        self.hasher.hash_one(key) as usize % SLOTS
    }
}
