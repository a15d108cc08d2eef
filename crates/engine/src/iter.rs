//! Enumerating a volume.

use crate::cache::Cache;
use crate::format::slot::Slot;
use crate::hit::Hit;
use crate::read::{self, Wanted};
use crate::volume::Volume;

/// All entries, in no particular order; see [`Cache::iter`].
#[derive(Debug)]
pub struct Iter<'a> {
    volume: &'a Volume,
    stripe: usize,
    bucket: u64,
    slot: usize,
    wanted: Wanted,
}

impl<'a> Iter<'a> {
    pub(crate) fn new(cache: &'a Cache) -> Self {
        Self { volume: cache.volume(), stripe: 0, bucket: 0, slot: 0, wanted: Wanted::Fresh }
    }

    pub(crate) fn all(cache: &'a Cache) -> Self {
        Self { wanted: Wanted::Any, ..Self::new(cache) }
    }

    /// Steps to the next slot; the one that it stood on is returned.
    fn step(&mut self) -> Option<(usize, &'a std::sync::atomic::AtomicU64)> {
        let volume = self.volume;
        let layout = &volume.layout;
        if self.stripe as u64 >= layout.stripes {
            return None;
        }
        let line = volume.region.line(layout.bucket_at(self.stripe, self.bucket));
        let at = (self.stripe, &line[self.slot]);
        self.slot += 1;
        if self.slot == line.len() {
            self.slot = 0;
            self.bucket += 1;
        }
        if self.bucket == layout.buckets {
            self.bucket = 0;
            self.stripe += 1;
        }
        Some(at)
    }
}

impl<'a> Iterator for Iter<'a> {
    type Item = Hit<'a>;

    fn next(&mut self) -> Option<Hit<'a>> {
        while let Some((stripe, slot)) = self.step() {
            let seen = Slot(slot.load(std::sync::atomic::Ordering::Acquire));
            if !seen.is_live() {
                continue;
            }
            let hit = read::hit_of_slot(self.volume, stripe, slot, self.wanted);
            // Of a volume that failed nothing is known; each further step could only meet another lost page.
            if self.volume.has_failed() {
                return None;
            }
            if hit.is_some() {
                return hit;
            }
        }
        None
    }
}
