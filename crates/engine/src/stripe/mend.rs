//! On demand: reads all live entries, and drops what contradicts the format.
//!
//! The dropped slots were of no use. Look-ups check whatever they follow, so a slot that names no entry of its key is a
//! miss. But it takes space, and counts.

use std::sync::atomic::AtomicU64;

use super::{Count, RingId, Stripe, Word, store_slot, verify_entry};
use crate::error::{Error, Result};
use crate::format::hash::{self, Place};
use crate::format::record::RECORD_BYTES_MIN;
use crate::format::slot::Slot;
use crate::protocol;
use crate::read::SlotAt;
use crate::thread::Thread;
use crate::volume::Volume;

/// What [`Stripe::mend`] did.
#[derive(Debug, Default)]
pub(crate) struct Mended {
    pub(crate) rings_emptied: u64,
    /// Rings that can't be emptied while readers hold bytes in them.
    pub(crate) rings_held: u64,
    pub(crate) slots_dropped: u64,
}

/// What a read of a bucket's entries found.
#[derive(Debug, Default)]
pub(crate) struct Read {
    pub(crate) entries: u64,
    pub(crate) bytes: u64,
    pub(crate) dropped: u64,
    /// Positions of entries that fail their checksum.
    pub(crate) damaged: Vec<u64>,
}

/// Drops the entry that a look-up found damaged in a slot of `place`. Does so only if the stripe's lock is free and
/// the slot still names the entry.
#[cold]
pub(crate) fn drop_damaged(volume: &Volume, place: &Place, seen: Slot) {
    if volume.check_writable().is_err() || volume.mark_unclean().is_err() {
        return;
    }
    // The lock isn't taken from a dead holder, since a repair takes more time than a look-up has.
    let Some(stripe) = Stripe::try_lock(volume, place.stripe, false) else { return };
    let buckets = stripe.buckets();
    for bucket in place.picks.map(|pick| buckets.of(pick)) {
        let slots = volume.bucket_line(place.stripe, bucket).iter();
        for slot in slots.filter(|slot| Slot(super::load(slot)).same_record(seen)) {
            stripe.drop_damaged(bucket, slot);
        }
    }
}

/// What a slot names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Judged {
    /// Nothing.
    Nothing,
    /// Something that isn't completely in memory.
    Cold,
    /// An entry of its own, of this many bytes, that is as it was put.
    Whole(u64),
    /// Anything else.
    Damaged,
}

/// Compares what a slot names with its checksum, without the stripe's lock. `only_resident`: only if all of it is in
/// memory.
pub(crate) fn judge(volume: &Volume, at: SlotAt, only_resident: bool) -> Result<Judged> {
    let home = (at.stripe, at.bucket);
    if !at.load(volume).is_some_and(|(slot, _)| Slot(super::load(slot)).is_live()) {
        return Ok(Judged::Nothing);
    }
    let Some(pin) = Thread::current(volume).map(Thread::transient_pin) else {
        // If nothing can be pinned, the lock keeps everything in its place.
        let _stripe = Stripe::lock(volume, at.stripe)?;
        let seen = at.load(volume).map_or(Slot::EMPTY, |(slot, _)| Slot(super::load(slot)));
        return judge_held(volume, home, seen, only_resident);
    };
    loop {
        let Some((slot, buckets)) = at.load(volume) else { return Ok(Judged::Nothing) };
        let seen = Slot(super::load(slot));
        if !seen.is_live() {
            return Ok(Judged::Nothing);
        }
        let claim = Volume::pin_word(at.stripe, seen.position());
        if !protocol::pin(slot, seen.0, pin, claim, |now, then| Slot(now).same_record(Slot(then))) {
            continue;
        }
        let is_slot = volume.has_still(at.stripe, buckets);
        let judged = if is_slot { Some(judge_held(volume, home, seen, only_resident)) } else { None };
        protocol::unpin(pin);
        if let Some(judged) = judged {
            return judged;
        }
    }
}

/// Does the same for an entry that is pinned, or whose stripe is locked.
fn judge_held(volume: &Volume, (number, bucket): (usize, u64), seen: Slot, only_resident: bool) -> Result<Judged> {
    if !seen.is_live() {
        return Ok(Judged::Nothing);
    }
    let position = seen.position();
    let Some((offset, _)) = super::locate(volume, number, position) else { return Ok(Judged::Damaged) };
    let is_cold = |bytes: u64| {
        let failed = |error| Error::io("checking what is in memory of", volume.name(), error);
        let is_resident = !only_resident || volume.region.is_resident(offset, bytes as usize).map_err(failed)?;
        Ok::<_, Error>(!is_resident)
    };
    if is_cold(RECORD_BYTES_MIN)? {
        return Ok(Judged::Cold);
    }
    let Some((record, lengths, _)) = super::entry_at(volume, number, position) else { return Ok(Judged::Damaged) };
    if is_cold(lengths.record_bytes())? {
        return Ok(Judged::Cold);
    }
    // SAFETY: the record is held, and `entry_at` has checked that it ends before its ring does.
    let place = volume.place(unsafe { record.key() });
    let is_own = place.stripe == number && volume.buckets(number).are_of(&place, bucket) && seen.may_hold(&place);
    let is_whole = is_own
        && record.flags_of_lap(seen.lap()).is_some()
        // SAFETY: as above.
        && unsafe { verify_entry(volume, &place, position, record, lengths) };
    Ok(if is_whole { Judged::Whole(lengths.record_bytes()) } else { Judged::Damaged })
}

/// An entry of a log.
struct Logged {
    position: u64,
    place: Place,
}

impl Stripe<'_> {
    /// Empties rings whose log can't be read as one, and drops slots that name no entry of theirs.
    pub(crate) fn mend(&mut self) -> Mended {
        let mut mended = Mended::default();
        // A death before the end leaves counts half done.
        self.set(Word::Recount, 1);
        // If this fails, the next process that opens the volume while no other has it open empties the stripe.
        self.mend_complements();
        let mut logged = Vec::new();
        for id in RingId::BOTH {
            if self.collect_log(id, &mut logged) {
                continue;
            }
            self.demand_reset(id);
            match self.finish_reset(id) {
                Ok(()) => mended.rings_emptied += 1,
                Err(_) => mended.rings_held += 1,
            }
            logged.retain(|entry: &Logged| RingId::of(self.volume, entry.position) != id);
        }
        logged.sort_unstable_by_key(|entry| entry.position);
        mended.slots_dropped = self.drop_false_slots(&logged);
        self.recount_if_needed();
        mended
    }

    /// Collects all entries of a ring's log, live or dead. Returns false if it can't be read as a log.
    fn collect_log(&self, id: RingId, logged: &mut Vec<Logged>) -> bool {
        let ring = self.ring(id);
        let (head, mut at) = (ring.head(), ring.tail());
        let may_be = ring.is_intact() && !self.must_reset(id);
        if !may_be || head < at || head - at > ring.size || !head.is_multiple_of(8) || !at.is_multiple_of(8) {
            return false;
        }
        while at < head {
            let Ok(seen) = self.read(&ring, at, head) else { return false };
            if let Some(record) = seen.as_entry() {
                // SAFETY: the record lies in the log, and we hold the lock, so nobody overwrites it.
                let key = unsafe { record.key() };
                let place = hash::place(&self.volume.layout, hash::key_hash(&self.volume.secret, key));
                logged.push(Logged { position: ring.position(at), place });
            }
            at += seen.bytes;
        }
        true
    }

    /// `logged` is sorted by position.
    fn drop_false_slots(&self, logged: &[Logged]) -> u64 {
        let mut dropped = 0;
        // Whether a slot names the entry already.
        let mut named = vec![false; logged.len()];
        let buckets = self.buckets();
        for bucket in 0..buckets.count() {
            for slot in self.bucket(bucket) {
                let seen = Slot(super::load(slot));
                if !seen.is_live() {
                    continue;
                }
                let found = logged.binary_search_by_key(&seen.position(), |entry| entry.position).ok();
                let is_true = found.is_some_and(|at| {
                    let place = &logged[at].place;
                    let belongs = place.stripe == self.number && buckets.are_of(place, bucket);
                    belongs && seen.may_hold(place) && !std::mem::replace(&mut named[at], true)
                });
                if is_true {
                    continue;
                }
                store_slot(slot, |_| Slot::EMPTY.0);
                dropped += 1;
            }
        }
        // A logged entry that no right slot names is dead from now on.
        let dead = logged.iter().zip(&named).filter(|(_, named)| !**named);
        dead.for_each(|(entry, _)| self.erase_dead(entry.position));
        dropped
    }

    /// Compares each live entry of a bucket with its MAC and checksum. `drops`: drop those that fail.
    pub(crate) fn read_bucket(&self, bucket: u64, drops: bool) -> Read {
        let mut read = Read::default();
        let line = self.bucket(bucket);
        self.prefetch_bucket(line);
        for slot in line {
            let seen = Slot(super::load(slot));
            let Some((record, lengths, _)) = self.entry_at(seen.position()).filter(|_| seen.is_live()) else {
                continue;
            };
            // SAFETY: the entry is live, and we hold the lock, so nobody reclaims it.
            let key = unsafe { record.key() };
            let place = hash::place(&self.volume.layout, hash::key_hash(&self.volume.secret, key));
            read.entries += 1;
            read.bytes += lengths.record_bytes();
            // SAFETY: as above.
            if unsafe { verify_entry(self.volume, &place, seen.position(), record, lengths) } {
                continue;
            }
            read.damaged.push(seen.position());
            read.dropped += u64::from(drops && self.drop_damaged(bucket, slot));
        }
        read
    }

    /// Drops what a slot of a bucket names, unless that is an entry of its own, as it was put. Returns true if it was
    /// dropped.
    pub(crate) fn drop_damaged(&self, bucket: u64, slot: &AtomicU64) -> bool {
        let seen = Slot(super::load(slot));
        let judged = judge_held(self.volume, (self.number, bucket), seen, false);
        // Bytes that were lost in this process may be intact in the file.
        if !matches!(judged, Ok(Judged::Damaged)) || self.volume.has_failed() {
            return false;
        }
        let position = seen.position();
        // At least the header must belong to an entry that this slot, and no other, names.
        let proven = self.entry_at(position).filter(|(record, _, _)| {
            self.proven_place(position, *record).is_some_and(|place| {
                let mut own = self.slots_of(&place, position);
                place.stripe == self.number
                    && own.next().is_some_and(|(own, _)| std::ptr::eq(own, slot))
                    && own.next().is_none()
            })
        });
        if proven.is_none() && !self.is_untiled(position) {
            // Nobody knows how many bytes go.
            self.set(Word::Recount, 1);
        }
        store_slot(slot, |_| Slot::EMPTY.0);
        if let Some((_, lengths, _)) = proven {
            self.forget(position, lengths.record_bytes());
        }
        self.erase_dead(position);
        self.tally(Count::EvictionsDamaged, 1);
        true
    }
}
