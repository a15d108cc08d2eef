//! When this process last set the access time of each file.

use std::sync::atomic::{AtomicU64, Ordering};

/// Slots; a power of two, several times the files of any workload.
const SLOTS: usize = 1 << 18;

/// A table of (hash tag, second) words. Two files in one slot evict each other. That costs an extra system call, but no
/// access time is lost. Words are independent, so relaxed accesses suffice.
#[derive(Debug)]
pub(super) struct Touched {
    slots: Box<[AtomicU64]>,
}

impl Touched {
    pub(super) fn new() -> Self {
        Self { slots: (0..SLOTS).map(|_| AtomicU64::new(0)).collect() }
    }

    /// Whether the file of this hash is due, that is, not yet touched in this second. Marks it as touched.
    pub(super) fn due(&self, hash: u64, second: u64) -> bool {
        let word = (hash & !0xffff_ffff) | (second & 0xffff_ffff);
        let slot = &self.slots[hash as usize & (SLOTS - 1)];
        if slot.load(Ordering::Relaxed) == word {
            return false;
        }
        slot.store(word, Ordering::Relaxed);
        true
    }
}
