//! The load of a store: the keys in their order, the values, the time.

use std::sync::Arc;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::random::{self, KEY_BYTES, Random};
use crate::touch::Touch;

/// Files take space in blocks of this size.
pub(crate) const BLOCK_BYTES: usize = 4096;

/// Room for more objects than there are: some parts of a store get more than an even share, and a server counts the buffers of each
/// of 64 connections against its cap.
const SPARE_OBJECTS: u64 = 192;

/// One get in so many may miss: an entry that was put again after a fill may have cost another its place.
const GETS_PER_MISS_MIN: u64 = 1_000;

/// Objects with the indexes from 0 to `objects`, all of `value_bytes`.
#[derive(Debug, Clone, Copy)]
pub struct Population {
    /// How many.
    pub objects: u64,
    /// Bytes of each value, 8 at least.
    pub value_bytes: usize,
}

impl Population {
    /// The bytes of a value; [`stamp`] makes it an object's own.
    pub fn value(&self) -> Vec<u8> {
        random::filler(3, self.value_bytes)
    }

    /// Room for all of them in a store that packs its entries: headers, index, and some to spare.
    pub fn cap_bytes(&self) -> u64 {
        let entry_bytes = self.value_bytes as u64 + 96;
        (self.objects * entry_bytes * 3 / 2 + SPARE_OBJECTS * entry_bytes).max(16 << 20)
    }

    /// Room for all of them in files, which take whole blocks.
    pub fn cap_in_blocks(&self) -> u64 {
        self.objects * self.value_bytes.next_multiple_of(BLOCK_BYTES) as u64 * 2
    }
}

/// Marks a value as the object's by its first 8 bytes.
#[inline]
pub fn stamp(value: &mut [u8], index: u64) {
    value[..8].copy_from_slice(&index.to_le_bytes());
}

/// Whether a value was marked as the object's.
pub fn is_stamped(value: &[u8], index: u64) -> bool {
    value.get(..8) == Some(index.to_le_bytes().as_slice())
}

/// Keys in the order in which each thread asks for them.
#[derive(Debug, Clone)]
pub struct Sequences {
    of_thread: Arc<[Vec<[u8; KEY_BYTES]>]>,
}

impl Sequences {
    /// Uniformly random keys of a population, `total` over all threads; each thread walks its own part round and
    /// round, front to back, so that the keys themselves come by hardware prefetch.
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

    /// How many threads ask.
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
    /// What each thread asks for.
    pub sequences: Sequences,
    /// The use of a value.
    pub touch: Touch,
    /// How long.
    pub duration: Duration,
}

/// Puts by one thread for a time.
#[derive(Debug, Clone, Copy)]
pub struct Puts {
    /// The objects that a store holds which does not evict.
    pub population: Population,
    /// Index of the first new object, for a store that evicts; none before it was put as new.
    pub first: u64,
    /// How long.
    pub duration: Duration,
}

/// Refuses a figure of gets of which too many missed.
pub(crate) fn allow_misses(store: &str, missed: u64, gets: u64) -> Result<()> {
    if missed > gets.div_ceil(GETS_PER_MISS_MIN) {
        return Err(Error::Invalid(format!("{store}: {missed} of {gets} gets missed")));
    }
    Ok(())
}
