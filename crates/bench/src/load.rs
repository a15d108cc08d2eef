//! The load of a store: the order of the keys, the values, the time.

use std::sync::Arc;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::random::{self, KEY_BYTES, Random};
use crate::touch::Touch;

/// File systems allocate space in blocks of this size.
pub(crate) const BLOCK_BYTES: usize = 4096;

/// Room beyond the objects themselves. Some parts of a store get more than an even share of them, and a server counts
/// the buffers of up to 64 connections against its cap.
const SPARE_OBJECTS: u64 = 192;

/// One get in so many may miss: putting an entry again after a fill may have evicted another entry.
const GETS_PER_MISS_MIN: u64 = 1_000;

/// Objects with the indexes from 0 to `objects`, all of `value_bytes`.
#[derive(Debug, Clone, Copy)]
pub struct Population {
    /// How many.
    pub objects: u64,
    /// Bytes of each value, at least 8.
    pub value_bytes: usize,
}

impl Population {
    /// The bytes of a value, before [`stamp`] marks it as an object's own.
    pub fn value(&self) -> Vec<u8> {
        random::filler(3, self.value_bytes)
    }

    /// Room for all objects in a store that packs its entries: with headers, index, and some to spare.
    pub fn cap_bytes(&self) -> u64 {
        let entry_bytes = self.value_bytes as u64 + 96;
        (self.objects * entry_bytes * 3 / 2 + SPARE_OBJECTS * entry_bytes).max(16 << 20)
    }

    /// Room for all objects in files, which take whole blocks.
    pub fn cap_in_blocks(&self) -> u64 {
        self.objects * self.value_bytes.next_multiple_of(BLOCK_BYTES) as u64 * 2
    }
}

/// Marks a value as the object's, in its first 8 bytes.
#[inline]
pub fn stamp(value: &mut [u8], index: u64) {
    value[..8].copy_from_slice(&index.to_le_bytes());
}

/// Whether a value has the object's mark.
pub fn is_stamped(value: &[u8], index: u64) -> bool {
    value.get(..8) == Some(index.to_le_bytes().as_slice())
}

/// Keys, in the order in which each thread requests them.
#[derive(Debug, Clone)]
pub struct Sequences {
    of_thread: Arc<[Vec<[u8; KEY_BYTES]>]>,
}

impl Sequences {
    /// Uniformly random keys of a population, `total` for all threads together. Each thread walks through its own part
    /// again and again, from front to back, so that hardware prefetch brings the keys themselves.
    pub fn random(population: Population, threads: usize, total: usize, seed: u64) -> Self {
        let of_thread = (0..threads as u64)
            .map(|thread| {
                let mut random = Random::new(random::mix(seed ^ (thread << 32)));
                (0..total / threads).map(|_| random::key(random.below(population.objects))).collect()
            })
            .collect();
        Self { of_thread }
    }

    /// These keys, by thread.
    pub fn of(of_thread: Vec<Vec<[u8; KEY_BYTES]>>) -> Self {
        Self { of_thread: of_thread.into() }
    }

    /// The number of threads.
    pub fn threads(&self) -> usize {
        self.of_thread.len()
    }

    /// One thread's keys.
    pub fn of_thread(&self, thread: usize) -> &[[u8; KEY_BYTES]] {
        &self.of_thread[thread]
    }
}

/// Gets by several threads for a time.
#[derive(Debug, Clone)]
pub struct Gets {
    /// The keys of each thread.
    pub sequences: Sequences,
    /// What a reader does with a value.
    pub touch: Touch,
    /// How long.
    pub duration: Duration,
}

/// Puts by one thread for a time.
#[derive(Debug, Clone, Copy)]
pub struct Puts {
    /// The objects in the store, for a store that does not evict.
    pub population: Population,
    /// Index of the first new object, for a store that evicts. Objects from here on have not been put yet.
    pub first: u64,
    /// How long.
    pub duration: Duration,
}

/// Refuses a figure if too many of its gets missed.
pub(crate) fn allow_misses(store: &str, missed: u64, gets: u64) -> Result<()> {
    if missed > gets.div_ceil(GETS_PER_MISS_MIN) {
        return Err(Error::Invalid(format!("{store}: {missed} of {gets} gets missed")));
    }
    Ok(())
}
