//! Enumerating a volume.

use crate::cache::Cache;
use crate::format::buckets::Buckets;
use crate::format::slot::Slot;
use crate::hit::Hit;
use crate::read::{self, SlotAt, Wanted};
use crate::stripe::Walk;
use crate::volume::Volume;

/// All entries, in no particular order; see [`Cache::iter`].
#[derive(Debug)]
pub struct Iter<'a> {
    volume: &'a Volume,
    stripe: usize,
    walk: Walk,
    /// As they were when the present class of buckets was begun, and what of it is to come, from the last on.
    buckets: Option<Buckets>,
    pending: Vec<SlotAt>,
    /// What of that class was given out.
    given: Vec<Slot>,
    wanted: Wanted,
}

impl<'a> Iter<'a> {
    pub(crate) fn new(cache: &'a Cache) -> Self {
        Self {
            volume: cache.volume(),
            stripe: 0,
            walk: Walk::default(),
            buckets: None,
            pending: Vec::new(),
            given: Vec::new(),
            wanted: Wanted::Fresh,
        }
    }

    pub(crate) fn all(cache: &'a Cache) -> Self {
        Self { wanted: Wanted::Any, ..Self::new(cache) }
    }

    /// The next slot. A class is looked through again where there was a step meanwhile, which may have moved what is in it.
    fn step(&mut self) -> Option<SlotAt> {
        loop {
            if let Some(at) = self.pending.pop() {
                return Some(at);
            }
            if self.stripe as u64 >= self.volume.layout.stripes {
                return None;
            }
            let now = self.volume.buckets(self.stripe);
            if self.buckets == Some(now) {
                self.walk = self.walk.next(now);
                self.given.clear();
            }
            self.buckets = Some(now);
            let Some((first, second)) = self.walk.class(now) else {
                (self.stripe, self.walk, self.buckets) = (self.stripe + 1, Walk::default(), None);
                continue;
            };
            let stripe = self.stripe;
            let slots = |bucket| (0..8).rev().map(move |number| SlotAt { stripe, bucket, number });
            self.pending.extend(second.into_iter().chain([first]).flat_map(slots));
        }
    }
}

impl<'a> Iterator for Iter<'a> {
    type Item = Hit<'a>;

    fn next(&mut self) -> Option<Hit<'a>> {
        while let Some(at) = self.step() {
            let found = read::hit_of_slot(self.volume, at, self.wanted);
            // Of a volume that failed nothing is known; each further step could only meet another lost page.
            if self.volume.has_failed() {
                return None;
            }
            if let Some((slot, hit)) =
                found.filter(|(slot, _)| !self.given.iter().any(|given| given.same_record(*slot)))
            {
                self.given.push(slot);
                return Some(hit);
            }
        }
        None
    }
}
