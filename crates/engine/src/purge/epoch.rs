//! [`Epoch`]: a moment, as purges count time.

use crate::volume::Volume;

/// A moment in the life of a volume, between two of its purges ([`crate::Cache::epoch`]).
///
/// It belongs to the cache that returned it and its clones, as long as they are open, and survives resizes. For any
/// other cache it lies before all purges: what is put with it isn't stored. Two equal epochs have no purge between
/// them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Epoch {
    lineage: u64,
    number: u32,
}

/// An epoch before all epochs of any volume.
const BEFORE_ALL: u32 = 0;

impl Epoch {
    /// The present epoch.
    pub(crate) fn now(volume: &Volume) -> Self {
        Self { lineage: volume.lineage, number: volume.purges().epoch() as u32 }
    }

    /// Whether this moment lies before another one of the same cache. Moments of different caches lie before each other.
    pub fn is_before(self, other: Self) -> bool {
        self.lineage != other.lineage || self.number < other.number
    }

    /// The epoch of this number.
    pub(crate) fn numbered(volume: &Volume, number: u32) -> Self {
        Self { lineage: volume.lineage, number }
    }

    /// Its number, which all processes that have the same volume count alike. Epochs are numbered in their order; after four billion
    /// purges they begin again.
    pub fn number(self) -> u32 {
        self.number
    }

    /// The number of the epoch in a volume.
    pub(crate) fn of(self, volume: &Volume) -> u32 {
        if self.lineage == volume.lineage { self.number } else { BEFORE_ALL }
    }
}

#[cfg(test)]
mod tests {
    use crate::format::purges::{EPOCHS, Purge};
    use crate::{Cache, Options, PutOptions};

    #[test]
    fn an_entry_begun_before_epochs_begin_again_is_not_stored() {
        let cache: Cache = Options::new().heap().unwrap();
        cache.volume().purges().set_epoch(EPOCHS);
        let begun = cache.epoch().unwrap();
        cache.purge_tag("any", Purge::Hard).unwrap();
        assert!(cache.volume().purges().epoch() < EPOCHS, "the volume was emptied");
        cache.put("key", "of behind").unwrap();
        cache.put_with("other", "of before", &PutOptions::new().begun_in(begun)).unwrap();
        assert!(!cache.contains("other").unwrap() && cache.contains("key").unwrap());
    }
}
