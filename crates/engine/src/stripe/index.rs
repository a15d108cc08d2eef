//! The index of one stripe, as the lock's holder sees it.
//!
//! A key has two buckets and is in one slot of them at most. Entries never move between slots: an overwrite
//! is one exchange in the same slot, so that no reader ever misses a key that is there.

use std::sync::atomic::AtomicU64;

use super::{Count, RingId, Stripe, Word, store_slot, verify_entry};
use crate::format::hash::Place;
use crate::format::origin::Origin;
use crate::format::record::{Lengths, Record};
use crate::format::slot::Slot;

/// A live entry and the slot that names it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found<'a> {
    pub(crate) slot: &'a AtomicU64,
    pub(crate) seen: Slot,
    pub(crate) record: Record<'a>,
    pub(crate) lengths: Lengths,
    pub(crate) serial: u64,
}

impl Found<'_> {
    /// Under the stripe's lock, in a tier: what it is a copy of.
    pub(crate) fn origin(&self) -> Option<Origin> {
        // SAFETY: the entry is live and we hold the lock: nobody reclaims it.
        let metadata = unsafe { self.record.metadata() };
        Origin::read(metadata).map(|(origin, _)| origin)
    }
}

impl<'a> Stripe<'a> {
    /// All sixteen slots that may hold a key.
    #[inline]
    fn slots(&self, place: &Place) -> [&'a AtomicU64; 16] {
        let (first, second) = (self.volume.bucket(place, 0), self.volume.bucket(place, 1));
        std::array::from_fn(|slot| if slot < 8 { &first[slot] } else { &second[slot - 8] })
    }

    /// The live entry of `key`, verified if it is older than this attachment; expired ones included.
    pub(crate) fn find(&self, place: &Place, key: &[u8]) -> Option<Found<'a>> {
        let mut all = self.slots(place).into_iter().filter_map(|slot| {
            let seen = Slot(super::load(slot));
            // Here, since it is no most of the time.
            if seen.may_hold(place) { self.found_in(slot, seen, place, key) } else { None }
        });
        let mut found = all.next()?;
        // Power loss can have left slots of several ages. The older ones go before anything is done to the newest.
        if self.has_untiled() {
            for other in all {
                let (newer, older) = if other.serial > found.serial { (other, found) } else { (found, other) };
                self.unlink(&older);
                found = newer;
            }
        }
        Some(found)
    }

    /// The live entry of `key`, if it is this slot that names it.
    fn found_in(&self, slot: &'a AtomicU64, seen: Slot, place: &Place, key: &[u8]) -> Option<Found<'a>> {
        let (record, lengths, serial) = self.entry_at(seen.position())?;
        // SAFETY: the entry is live and we hold the lock: nobody reclaims it.
        if record.flags().lap() != seen.lap() || unsafe { record.key() } != key {
            return None;
        }
        let trusted = record.generation() == self.volume.generation()
            // SAFETY: as above.
            || unsafe { verify_entry(self.volume, place, seen.position(), record, lengths) };
        trusted.then_some(Found { slot, seen, record, lengths, serial })
    }

    /// The slots that name the record at `position`: one at most, unless the index is damaged.
    pub(super) fn slots_of(
        &self,
        place: &Place,
        position: u64,
    ) -> impl Iterator<Item = (&'a AtomicU64, Slot)> + use<'a> {
        let place = *place;
        self.slots(&place).into_iter().filter_map(move |slot| {
            let seen = Slot(super::load(slot));
            (seen.may_hold(&place) && seen.position() == position).then_some((slot, seen))
        })
    }

    /// Whether a ghost remembers `place`'s key.
    pub(crate) fn is_remembered(&self, place: &Place) -> bool {
        let (stamp, memory) = (self.get(Word::GhostClock), self.ghost_memory());
        self.slots(place).into_iter().any(|slot| Slot(super::load(slot)).remembers(place, stamp, memory))
    }

    /// A ghost is void after as many evictions from the small ring as main has entries.
    fn ghost_memory(&self) -> u64 {
        self.get(Word::MainEntries)
    }

    /// Makes the record at `position` the live entry of its key.
    ///
    /// `replaces` is the slot of the entry that it overwrites; its frequency is kept. A new key has `frequency` and takes, in
    /// this order: its own ghost, an empty slot, a void ghost, a ghost, the coldest entry's slot.
    pub(crate) fn publish(
        &self,
        place: &Place,
        position: u64,
        lap: u64,
        record_bytes: u64,
        frequency: u64,
        replaces: Option<Found<'a>>,
    ) {
        self.expect_slots();
        if let Some(old) = replaces {
            store_slot(old.slot, |now| Slot::live(place, position, lap, Slot(now).frequency()).0);
            self.forget(old.seen.position(), old.lengths.record_bytes());
            self.erase_dead(old.seen.position());
            self.remember(position, record_bytes);
            return;
        }
        let slot = self.choose(place);
        let out = Slot(store_slot(slot, |_| Slot::live(place, position, lap, frequency).0));
        if out.is_live() {
            self.tally(Count::EvictionsIndex, 1);
            self.forget_position(out.position());
        }
        self.remember(position, record_bytes);
    }

    fn choose(&self, place: &Place) -> &'a AtomicU64 {
        let (stamp, memory) = (self.get(Word::GhostClock), self.ghost_memory());
        let rank = |slot: Slot| -> u64 {
            if slot.remembers(place, stamp, memory) {
                0
            } else if slot == Slot::EMPTY {
                1
            } else if slot.is_ghost() && slot.is_void(stamp, memory) {
                2
            } else if slot.is_ghost() {
                3
            } else {
                // The coldest first; of equals, newcomers before what main has kept.
                4 + slot.frequency() * 2 + u64::from(RingId::of(self.volume, slot.position()) == RingId::Main)
            }
        };
        let mut best = None;
        for slot in self.slots(place) {
            let rank = rank(Slot(super::load(slot)));
            if best.is_none_or(|(least, _)| rank < least) {
                best = Some((rank, slot));
            }
        }
        match best {
            Some((_, slot)) => slot,
            None => unreachable!("a key has two buckets of eight slots"),
        }
    }

    /// Drops a live entry: its record becomes dead, and is freed when the hand passes and nobody reads it.
    pub(crate) fn unlink(&self, found: &Found<'a>) {
        store_slot(found.slot, |_| Slot::EMPTY.0);
        self.forget(found.seen.position(), found.lengths.record_bytes());
        self.erase_dead(found.seen.position());
    }

    /// Drops every live entry of which `wanted` approves, by position. Returns how many.
    pub(crate) fn unlink_all(&self, mut wanted: impl FnMut(u64) -> bool) -> u64 {
        let mut dropped = 0;
        for bucket in 0..self.volume.layout.buckets {
            for slot in self.volume.region.line(self.volume.layout.bucket_at(self.number, bucket)) {
                let seen = Slot(super::load(slot));
                if seen.is_live() && wanted(seen.position()) {
                    store_slot(slot, |_| Slot::EMPTY.0);
                    self.forget_position(seen.position());
                    dropped += 1;
                }
            }
        }
        dropped
    }

    fn forget_position(&self, position: u64) {
        let bytes = self.entry_at(position).map_or(0, |(_, lengths, _)| lengths.record_bytes());
        self.forget(position, bytes);
        self.erase_dead(position);
    }
}
