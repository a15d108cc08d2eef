//! The index of one stripe, as the holder of its lock sees it.
//!
//! A key has two buckets, and is in at most one of their slots. Only the index's own steps (`step.rs`) move entries
//! between slots. An overwrite is one exchange in the same slot, so a reader never misses a key that is there.

use std::ptr;
use std::sync::atomic::AtomicU64;

use super::{BUCKETS, Count, RingId, Stripe, Word, locate_beside, store_slot, verify_entry};
use crate::format::buckets::Buckets;
use crate::format::hash::Place;
use crate::format::origin::Origin;
use crate::format::record::{Lengths, Record};
use crate::format::slot::Slot;
use crate::policy;
use crate::sketch;

/// The [`Stripe::worth`] of slots that name no entry. Nothing is worth less.
const EMPTY: u64 = 1;
pub(super) const VOID: u64 = 2;
pub(super) const GHOST: u64 = 3;

/// A live entry, and the slot that names it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found<'a> {
    pub(crate) slot: &'a AtomicU64,
    pub(crate) seen: Slot,
    /// The word of the buckets that the slot was found in.
    buckets: u64,
    pub(crate) record: Record<'a>,
    pub(crate) lengths: Lengths,
    pub(crate) serial: u64,
}

/// The memory of a key that has no entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Memory {
    Nothing,
    /// In a volume without a sketch: a ghost.
    Ghost,
    /// As many requests as an entry of its size needs to contend for main.
    Requests,
}

impl Found<'_> {
    /// In a tier, under the stripe's lock: the origin of this copy.
    pub(crate) fn origin(&self) -> Option<Origin> {
        // SAFETY: the entry is live, and we hold the lock, so nobody reclaims it.
        let metadata = unsafe { self.record.metadata() };
        Origin::read(metadata).map(|(origin, _)| origin)
    }
}

/// Some slots of two buckets, as a bit set.
struct Matches<'a> {
    lines: [&'a [AtomicU64; 8]; 2],
    bits: u32,
}

impl<'a> Iterator for Matches<'a> {
    type Item = &'a AtomicU64;

    #[inline]
    fn next(&mut self) -> Option<&'a AtomicU64> {
        if self.bits == 0 {
            return None;
        }
        let number = self.bits.trailing_zeros() as usize;
        self.bits &= self.bits - 1;
        Some(&self.lines[(number / 8) & 1][number & 7])
    }
}

impl<'a> Stripe<'a> {
    /// The present buckets of the stripe.
    #[inline]
    pub(crate) fn buckets(&self) -> Buckets {
        Buckets::checked(super::load(&self.read_line[BUCKETS]), &self.volume.layout)
    }

    /// A key's buckets. The second is `None` if both are the same.
    #[inline]
    fn lines(&self, place: &Place) -> (&'a [AtomicU64; 8], Option<&'a [AtomicU64; 8]>) {
        let buckets = self.buckets();
        let (first, second) = (self.volume.bucket(place, 0, buckets), self.volume.bucket(place, 1, buckets));
        (first, Some(second).filter(|second| !ptr::eq(first, *second)))
    }

    /// The slots that may hold a key at this moment: few or none.
    #[inline]
    fn matches(&self, place: &Place) -> Matches<'a> {
        let (first, second) = self.lines(place);
        // All eight at once, since a branch for each slot would often be mispredicted.
        let of = |line: &[AtomicU64; 8]| Slot::hints(line, place.fingerprint);
        Matches { lines: [first, second.unwrap_or(first)], bits: of(first) | second.map_or(0, |line| of(line) << 8) }
    }

    /// The live entry of `key`, even if it has expired. An entry that is older than this attachment is verified.
    pub(crate) fn find(&self, place: &Place, key: &[u8]) -> Option<Found<'a>> {
        let mut all = self.matches(place).filter_map(|slot| self.found_in(slot, Slot(super::load(slot)), place, key));
        let mut found = all.next()?;
        // Power loss may have left slots of different ages. The older ones go before anything is done to the newest.
        if self.has_untiled() {
            for other in all {
                let (newer, older) = if other.serial > found.serial { (other, found) } else { (found, other) };
                self.unlink(&older);
                found = newer;
            }
        }
        Some(found)
    }

    /// What [`Stripe::find`] returns for `key` now, if it returned `found` before, under the same lock. Work under the
    /// lock evicts and moves entries, but adds none.
    pub(crate) fn find_again(&self, found: Option<Found<'a>>, place: &Place, key: &[u8]) -> Option<Found<'a>> {
        let is_unchanged = match &found {
            None => true,
            Some(found) => {
                super::load(&self.read_line[BUCKETS]) == found.buckets
                    && Slot(super::load(found.slot)).same_record(found.seen)
            }
        };
        if is_unchanged && !self.has_untiled() { found } else { self.find(place, key) }
    }

    /// The live entry of `key`, if this slot names it.
    fn found_in(&self, slot: &'a AtomicU64, seen: Slot, place: &Place, key: &[u8]) -> Option<Found<'a>> {
        let buckets = self.buckets();
        let (offset, room) = locate_beside(self.volume, self.number, seen.position(), buckets)?;
        // SAFETY: a header fits there.
        let record = unsafe { Record::at_checked(&self.volume.region, offset) };
        let serial = record.serial_of_lap(seen.lap())?;
        let (lengths, generation) = record.lengths_and_generation();
        if lengths.key != key.len() as u64 || !lengths.fit_into(room) {
            return None;
        }
        // SAFETY: the entry is live, and we hold the lock, so nobody reclaims it.
        if unsafe { self.volume.region.bytes(record.body(), key.len()) } != key {
            return None;
        }
        let trusted = generation == self.volume.generation()
            // SAFETY: as above.
            || unsafe { verify_entry(self.volume, place, seen.position(), record, lengths) };
        trusted.then_some(Found { slot, seen, buckets: buckets.word, record, lengths, serial })
    }

    /// The slots that name the record at `position`: at most one, unless the index is damaged.
    pub(super) fn slots_of(
        &self,
        place: &Place,
        position: u64,
    ) -> impl Iterator<Item = (&'a AtomicU64, Slot)> + use<'a> {
        self.matches(place).filter_map(move |slot| {
            let seen = Slot(super::load(slot));
            (seen.is_live() && seen.position() == position).then_some((slot, seen))
        })
    }

    /// Looks for the key of `place`, whose new entry takes `bytes` bytes, in sketch and ghosts.
    pub(crate) fn memory_of(&self, place: &Place, bytes: u64) -> Memory {
        let Some(requests) = sketch::requests(self.volume, place) else {
            return if self.is_remembered(place) { Memory::Ghost } else { Memory::Nothing };
        };
        let is_wanted = policy::is_wanted(requests.max(1), bytes, self.mean_entry_bytes());
        // A ghost counts as one request.
        let is_known = is_wanted && (requests > 0 || self.is_remembered(place));
        if is_known { Memory::Requests } else { Memory::Nothing }
    }

    /// Whether a ghost remembers the key of `place`.
    pub(crate) fn is_remembered(&self, place: &Place) -> bool {
        let (stamp, memory) = (self.get(Word::GhostClock), self.ghost_memory());
        let (first, second) = self.lines(place);
        let is_there =
            |line: &[AtomicU64; 8]| line.iter().any(|slot| Slot(super::load(slot)).remembers(place, stamp, memory));
        is_there(first) || second.is_some_and(is_there)
    }

    /// A bucket that the stripe has, or may have.
    pub(super) fn bucket(&self, bucket: u64) -> &'a [AtomicU64; 8] {
        self.volume.bucket_line(self.number, bucket)
    }

    /// A ghost becomes void after as many evictions from the small ring as main has entries.
    pub(super) fn ghost_memory(&self) -> u64 {
        self.get(Word::MainEntries)
    }

    /// Makes the record at `position` the live entry of its key.
    ///
    /// `replaces` is the entry that it overwrites. The new one takes its slot and keeps its frequency. A new key
    /// starts with `frequency`. It takes the first of these: its own ghost, an empty slot, a void ghost, a ghost, the
    /// slot of the coldest entry.
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
        sketch::answer(self.volume, place);
        let mut slot = self.choose(place);
        if Slot(super::load(slot)).is_live() {
            slot = self.displace(place).unwrap_or(slot);
        }
        let out = Slot(store_slot(slot, |_| Slot::live(place, position, lap, frequency).0));
        if out.is_live() {
            self.tally(Count::EvictionsIndex, 1);
            self.forget_position(out.position());
        }
        self.remember(position, record_bytes);
    }

    fn choose(&self, place: &Place) -> &'a AtomicU64 {
        let (stamp, memory) = (self.get(Word::GhostClock), self.ghost_memory());
        let mut best = None;
        let (first, second) = self.lines(place);
        for line in [Some(first), second].into_iter().flatten() {
            for slot in line {
                let seen = Slot(super::load(slot));
                let rank = if seen.remembers(place, stamp, memory) { 0 } else { self.worth(seen, stamp, memory) };
                if best.is_none_or(|(least, _)| rank < least) {
                    best = Some((rank, slot));
                }
            }
        }
        match best {
            Some((_, slot)) => slot,
            None => unreachable!("a key has a bucket, and it has slots"),
        }
    }

    /// The cost of taking a slot for another entry, in this order: an empty slot, a void ghost, a ghost, the coldest
    /// entry. Of equally cold entries, those of small cost less than those of main.
    #[inline]
    pub(super) fn worth(&self, slot: Slot, stamp: u64, memory: u64) -> u64 {
        if slot == Slot::EMPTY {
            EMPTY
        } else if !slot.is_live() {
            if slot.is_void(stamp, memory) { VOID } else { GHOST }
        } else {
            GHOST + 1 + slot.frequency() * 2 + u64::from(RingId::of(self.volume, slot.position()) == RingId::Main)
        }
    }

    /// Drops a live entry. Its record becomes dead, and is freed when the hand passes and nobody reads it.
    pub(crate) fn unlink(&self, found: &Found<'a>) {
        store_slot(found.slot, |_| Slot::EMPTY.0);
        self.forget(found.seen.position(), found.lengths.record_bytes());
        self.erase_dead(found.seen.position());
    }

    /// Drops every live entry whose position `wanted` accepts. Returns how many.
    pub(crate) fn unlink_all(&self, mut wanted: impl FnMut(u64) -> bool) -> u64 {
        let mut dropped = 0;
        for bucket in 0..self.buckets().count() {
            for slot in self.bucket(bucket) {
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

    pub(super) fn forget_position(&self, position: u64) {
        let bytes = self.entry_at(position).map_or(0, |(_, lengths, _)| lengths.record_bytes());
        self.forget(position, bytes);
        self.erase_dead(position);
    }
}
