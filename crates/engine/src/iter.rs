//! Enumerating a volume.

use std::collections::HashSet;

use crate::cache::Cache;
use crate::format::buckets::Buckets;
use crate::hit::Hit;
use crate::read::{self, SlotAt, Wanted};
use crate::stripe::{self, Walk};
use crate::volume::Volume;

/// How often the iteration repeats a stripe at most, if its entries keep moving.
const ROUNDS_MAX: u32 = 8;

/// All entries, in no particular order; see [`Cache::iter`].
#[derive(Debug)]
pub struct Iter<'a> {
    volume: &'a Volume,
    wanted: Wanted,
    stripe: usize,
    round: Round,
    rounds: u32,
    /// Hashes of the keys of this stripe that were returned already. A step may move one of them into buckets that
    /// are still to come.
    given: HashSet<u64>,
}

/// One pass through a stripe.
#[derive(Debug)]
struct Round {
    /// The count of moves when the pass began. If it differs at the end, an entry may have moved past the walk.
    moves: u64,
    walk: Walk,
    /// The buckets when the present class was begun, and the slots of that class that are still to come, the last one
    /// first.
    buckets: Option<Buckets>,
    pending: Vec<SlotAt>,
}

impl Round {
    fn new(volume: &Volume, stripe: usize) -> Self {
        let is_one = (stripe as u64) < volume.layout.stripes;
        let moves = if is_one { stripe::moves(volume, stripe) } else { 0 };
        Self { moves, walk: Walk::default(), buckets: None, pending: Vec::new() }
    }

    /// The next slot. If there was a step meanwhile, it may have moved entries of the class, so the class is
    /// repeated.
    fn next_slot(&mut self, volume: &Volume, stripe: usize) -> Option<SlotAt> {
        loop {
            if let Some(at) = self.pending.pop() {
                return Some(at);
            }
            let now = volume.buckets(stripe);
            if self.buckets == Some(now) {
                self.walk = self.walk.next(now);
            }
            self.buckets = Some(now);
            let (first, second) = self.walk.class(now)?;
            let slots = |bucket| (0..8).rev().map(move |number| SlotAt { stripe, bucket, number });
            self.pending.extend(second.into_iter().chain([first]).flat_map(slots));
        }
    }
}

impl<'a> Iter<'a> {
    pub(crate) fn new(cache: &'a Cache) -> Self {
        let (volume, stripe) = (cache.volume(), 0);
        let round = Round::new(volume, stripe);
        Self { volume, wanted: Wanted::Fresh, stripe, round, rounds: 1, given: HashSet::new() }
    }

    pub(crate) fn all(cache: &'a Cache) -> Self {
        Self { wanted: Wanted::Any, ..Self::new(cache) }
    }

    fn next_slot(&mut self) -> Option<SlotAt> {
        while (self.stripe as u64) < self.volume.layout.stripes {
            if let Some(at) = self.round.next_slot(self.volume, self.stripe) {
                return Some(at);
            }
            if self.rounds < ROUNDS_MAX && stripe::moves(self.volume, self.stripe) != self.round.moves {
                self.rounds += 1;
            } else {
                (self.stripe, self.rounds) = (self.stripe + 1, 1);
                self.given.clear();
            }
            self.round = Round::new(self.volume, self.stripe);
        }
        None
    }
}

impl<'a> Iterator for Iter<'a> {
    type Item = Hit<'a>;

    fn next(&mut self) -> Option<Hit<'a>> {
        while let Some(at) = self.next_slot() {
            let found = read::hit_of_slot(self.volume, at, self.wanted);
            // The content of a failed volume is unknown; each further step could only meet another lost page.
            if self.volume.has_failed() {
                return None;
            }
            if let Some(hit) = found.filter(|hit| self.given.insert(self.volume.place(hit.key()).hash)) {
                return Some(hit);
            }
        }
        None
    }
}
