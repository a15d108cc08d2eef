//! Addresses whose last answer could not be stored: waiting for one another would only make their clients slow.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

const SLOTS: usize = 4096;

/// A small memory of their keys. Two keys that share a slot push each other out, which costs a wait and nothing else;
/// for the same reason no order of memory is asked for.
pub(crate) struct Unstorable {
    hasher: RandomState,
    slots: Box<[AtomicU64]>,
}

impl Unstorable {
    pub(crate) fn new() -> Self {
        Self { hasher: RandomState::new(), slots: (0..SLOTS).map(|_| AtomicU64::new(0)).collect() }
    }

    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        let (slot, hash) = self.slot(key);
        slot.load(Ordering::Relaxed) == hash
    }

    pub(crate) fn insert(&self, key: &[u8]) {
        let (slot, hash) = self.slot(key);
        slot.store(hash, Ordering::Relaxed);
    }

    pub(crate) fn remove(&self, key: &[u8]) {
        let (slot, hash) = self.slot(key);
        let _ = slot.compare_exchange(hash, 0, Ordering::Relaxed, Ordering::Relaxed);
    }

    fn slot(&self, key: &[u8]) -> (&AtomicU64, u64) {
        let hash = self.hasher.hash_one(key);
        (&self.slots[hash as usize % SLOTS], hash)
    }
}
