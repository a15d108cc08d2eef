//! Logs that power loss has left. Each page of the volume may be of another age then. Only the slots can tell which
//! bytes of a ring are records: if a slot names a record of its lap, and the record's MAC and checksum are right, it
//! is one.
//!
//! ```text
//!   tail                from                             to                head
//!    |  records, tiled   |  not tiled: live records       |  records, tiled  |
//!    v                   v  and anything else             v                  v
//!    [...................[................................)..................)
//! ```
//!
//! When the volume is opened, each ring becomes one lap that isn't tiled, from physical start to physical end, so no
//! record crosses its borders. Nothing of it is read at that point. The hand tiles the next chunk before it goes on
//! ([`Stripe::read`]), and each put tiles one chunk of each ring, so the work comes to an end. New records are
//! written behind `to`, into space that was tiled and freed. So no new slot ever names what isn't tiled, and those
//! that do can only become fewer.
//!
//! The counts of a stripe cover what is tiled. A process that dies in between leaves dropped slots and filler, which
//! the next one finds like any other garbage.

use std::collections::HashMap;
use std::ops::Range;
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

use super::ring::{Damaged, Ring};
use super::{Count, Head, RingId, Slot, Stripe, Word, store_slot, verify_entry};
use crate::format::UNIT_BYTES;
use crate::format::layout::{BUCKET_BYTES, BUCKET_SLOTS};
use crate::protocol;
use crate::seam;
use crate::thread;
use crate::volume::Volume;

/// How many bytes are tiled at a time, plus what the last record in them needs.
const CHUNK_BYTES: u64 = 256 << 10;
/// How many laps are left out after each crash, so that records of laps that were lost differ in their lap from later
/// ones. The number is odd, since slots and records know the lap modulo 64.
const LAPS_LEFT_OUT: u64 = 23;
/// How many serials are left out: more than can have been used since the stripe's page was last written to storage.
const SERIALS_LEFT_OUT: u64 = 1 << 30;
const SERIALS: u64 = 1 << 48;

/// A position (units) and the offset of the slot that names it.
type Name = (u64, usize);

/// What the slots of a stripe named when this process first tiled it, by position. It is kept since the index is
/// large and a chunk is small. Such slots only become fewer, whichever process tiles. So each is checked again, and
/// none is missing.
#[derive(Debug, Default)]
pub(crate) struct Named(Mutex<HashMap<usize, Arc<Vec<Name>>>>);

impl Named {
    /// Never waited for: a fork may leave it locked forever in the child, which then searches the slots each time.
    fn known(&self) -> Option<MutexGuard<'_, HashMap<usize, Arc<Vec<Name>>>>> {
        match self.0.try_lock() {
            Ok(known) => Some(known),
            Err(TryLockError::Poisoned(known)) => Some(known.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// A piece of a chunk that isn't free.
#[derive(Debug, Clone, Copy)]
struct Piece {
    at: u64,
    end: u64,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A slot names it.
    Live,
    /// No slot names it any more, but somebody holds it.
    Dead,
    /// Somebody is checking whether it is an entry. It isn't one, and becomes room until nobody looks any more.
    LookedAt,
}

impl<'a> Stripe<'a> {
    fn untiled_words(id: RingId) -> [Word; 2] {
        match id {
            RingId::Small => [Word::SmallUntiledFrom, Word::SmallUntiledTo],
            RingId::Main => [Word::MainUntiledFrom, Word::MainUntiledTo],
        }
    }

    /// The part of a ring's log that isn't tiled; mostly empty.
    #[inline]
    pub(super) fn untiled(&self, id: RingId) -> Range<u64> {
        let [from, to] = Self::untiled_words(id);
        self.get(from)..self.get(to)
    }

    /// The length of that part.
    pub(crate) fn untiled_bytes(&self, id: RingId) -> u64 {
        let untiled = self.untiled(id);
        untiled.end.saturating_sub(untiled.start).min(self.ring(id).size)
    }

    /// Whether any ring has such a part.
    #[inline]
    pub(super) fn has_untiled(&self) -> bool {
        RingId::BOTH.into_iter().any(|id| !self.untiled(id).is_empty())
    }

    /// Whether a position lies in it. The part ends at the physical end.
    #[inline]
    pub(super) fn is_untiled(&self, position: u64) -> bool {
        let id = RingId::of(self.volume, position);
        let untiled = self.untiled(id);
        !untiled.is_empty() && position >= self.ring(id).position(untiled.start)
    }

    /// Whether the words of that part are possible.
    pub(super) fn is_untiled_sound(&self, ring: &Ring<'a>) -> bool {
        let untiled = self.untiled(ring.id);
        untiled.is_empty()
            || ring.tail() <= untiled.start
                && untiled.end <= ring.head()
                && (untiled.end.is_multiple_of(ring.size) || ring.void_at(untiled.end) > 0)
                && untiled.start.is_multiple_of(UNIT_BYTES)
                && untiled.end - untiled.start <= ring.size
    }

    /// Forgets that part, for a log that is given up.
    pub(super) fn forget_untiled(&self, id: RingId) {
        let [from, to] = Self::untiled_words(id);
        // The end first: a part that begins behind its end is empty.
        self.set(to, 0);
        self.set(from, 0);
    }

    /// Where a ring starts again if its words are of another age than its bytes.
    pub(super) fn start_behind_what_was_lost(ring: &Ring<'a>) -> u64 {
        (ring.head().max(ring.tail()) % (1 << 60) / ring.size + LAPS_LEFT_OUT) * ring.size
    }

    /// Called after power loss by the first process of an attachment: the words are of another age than the bytes.
    pub(super) fn take_for_untiled(&self) {
        self.take_sure_buckets();
        for id in RingId::BOTH {
            let ring = self.ring(id);
            let fresh = Self::start_behind_what_was_lost(&ring);
            let [from, to] = Self::untiled_words(id);
            for lap in [ring.lap(fresh), ring.lap(fresh) + 1] {
                ring.set_end(lap, ring.most);
            }
            ring.set_tail(fresh);
            ring.set_head(fresh + ring.size);
            self.set(from, fresh);
            self.set(to, fresh + ring.most);
        }
        self.clear_counts();
        self.set(Word::Serial, (self.get(Word::Serial) + SERIALS_LEFT_OUT) % SERIALS);
        // What a pass had dropped may be there again. But before a purge was retired, storage had what was dropped
        // for it.
        self.begin_sweeps_anew(self.volume.purges().retired());
    }

    /// Whether the entry at a position was verified or written in this attachment.
    pub(super) fn is_verified(&self, position: u64) -> bool {
        self.entry_at(position).is_some_and(|(record, _, _)| record.generation() == self.volume.generation())
    }

    /// Whether words of the header at a position that a slot names may be changed, because it surely is a header.
    pub(super) fn may_write(&self, position: u64) -> bool {
        !self.is_untiled(position) || self.is_verified(position) || self.whole_entry(position).is_some()
    }

    /// The length of the entry of this stripe at a position, if its MAC and checksum are right.
    fn whole_entry(&self, position: u64) -> Option<u64> {
        let (record, lengths, _) = self.entry_at(position)?;
        // SAFETY: in what isn't tiled, only headers of entries and bytes that nobody holds are written, and we hold
        // the lock.
        let place = self.volume.place(unsafe { record.key() });
        // SAFETY: as above.
        let whole =
            place.stripe == self.number && unsafe { verify_entry(self.volume, &place, position, record, lengths) };
        whole.then(|| lengths.record_bytes())
    }

    /// Tiles a chunk of each ring that has an untiled part. Each put calls this.
    #[inline]
    pub(super) fn tile_a_little(&self) {
        if self.has_untiled() {
            self.tile_more();
        }
    }

    /// Tiles a chunk of each ring. Returns false if nothing was left to do.
    #[cold]
    pub(crate) fn tile_more(&self) -> bool {
        let mut more = false;
        for id in RingId::BOTH {
            if self.must_reset(id) || self.untiled(id).is_empty() {
                continue;
            }
            match self.tile_next(&self.ring(id)) {
                Ok(()) => more = true,
                Err(Damaged) => self.demand_reset(id),
            }
        }
        more
    }

    /// Tiles the next chunk of a ring's log.
    ///
    /// First it drops slots, then it looks at the pins, then it writes filler. So bytes that a slot named or a pin
    /// holds stay as they are (R2 and T3 of `docs/invariants.md`).
    pub(super) fn tile_next(&self, ring: &Ring<'a>) -> Result<(), Damaged> {
        let untiled = self.untiled(ring.id);
        if !self.is_untiled_sound(ring) {
            return Err(Damaged);
        }
        let named = self.named();
        let mut end = untiled.end.min(untiled.start + CHUNK_BYTES);
        let pieces = loop {
            let live = self.keep_named(ring, untiled.start..end, &named)?;
            let pieces = self.add_held(ring, untiled.start..end, &live);
            let reached = pieces.last().map_or(0, |piece| piece.end);
            if reached <= end {
                break pieces;
            }
            // Slots may name what the last piece covers, too.
            end = reached;
        };
        // Lost slots and pins hold nothing back.
        if self.volume.has_failed() {
            return Err(Damaged);
        }
        self.lay(ring, untiled.start..end, &pieces);
        let [from, _] = Self::untiled_words(ring.id);
        if end < untiled.end {
            self.set(from, end);
        } else {
            self.forget_untiled(ring.id);
            self.forget_named();
        }
        Ok(())
    }

    /// The live entries of a chunk; the last may reach beyond it. Drops slots that name anything else in the chunk.
    fn keep_named(&self, ring: &Ring<'a>, chunk: Range<u64>, named: &[Name]) -> Result<Vec<Piece>, Damaged> {
        let start = ring.position(chunk.start);
        let first = named.partition_point(|(position, _)| *position < start);
        let mut pieces: Vec<Piece> = Vec::new();
        let mut reached = chunk.start;
        for (position, slot) in &named[first..] {
            let at = chunk.start + (position - start) * UNIT_BYTES;
            // The bytes behind the last chunk belong to no lap.
            let is_beyond = at >= chunk.end.max(reached) && chunk.end != self.untiled(ring.id).end;
            if RingId::of(self.volume, *position) != ring.id || is_beyond {
                break;
            }
            let slot = self.volume.region.word(*slot);
            let names = || Slot(super::load(slot)).is_live() && Slot(super::load(slot)).position() == *position;
            if !names() {
                continue;
            }
            let bytes =
                if at < reached || at >= self.untiled(ring.id).end { None } else { self.newest_entry(*position, slot) };
            if self.volume.has_failed() {
                return Err(Damaged);
            }
            if let Some(bytes) = bytes {
                reached = at + bytes;
                pieces.push(Piece { at, end: reached, kind: Kind::Live });
            } else if names() {
                store_slot(slot, |_| Slot::EMPTY.0);
                self.tally(Count::EvictionsDamaged, 1);
            }
        }
        Ok(pieces)
    }

    /// The length of the entry at a position, if it is complete, its key belongs into this slot, and it is the newest
    /// of its key. Drops older ones.
    fn newest_entry(&self, position: u64, slot: &std::sync::atomic::AtomicU64) -> Option<u64> {
        let (record, lengths, _) = self.entry_at(position)?;
        // SAFETY: as in `whole_entry`.
        let key = unsafe { record.key() };
        let place = self.volume.place(key);
        let found = if place.stripe == self.number { self.find(&place, key)? } else { return None };
        ptr::eq(found.slot, slot).then(|| lengths.record_bytes())
    }

    /// Adds what no slot names and somebody holds. Asked after slots were dropped, so that what isn't held then stays
    /// unheld.
    fn add_held(&self, ring: &Ring<'a>, chunk: Range<u64>, live: &[Piece]) -> Vec<Piece> {
        let first = ring.position(chunk.start);
        let mut held = Vec::new();
        protocol::collect_pins(thread::pins(self.volume).map(|(_, pin)| pin), |word| match Volume::pinned(word) {
            Some((stripe, position)) if stripe == self.number && position >= first => held.push(position),
            _ => {}
        });
        held.sort_unstable();
        held.dedup();
        held.retain(|position| RingId::of(self.volume, *position) == ring.id);
        let mut pieces = live.to_vec();
        for (number, position) in held.iter().enumerate() {
            let at = chunk.start + (position - first) * UNIT_BYTES;
            let next = pieces.partition_point(|piece| piece.at <= at);
            let is_covered = next > 0 && pieces[next - 1].end > at;
            if at >= chunk.end || is_covered {
                continue;
            }
            let limit = pieces.get(next).map(|piece| piece.at);
            // A hit whose entry was replaced or removed since is complete.
            let whole = self.whole_entry(*position).map(|bytes| at + bytes);
            let piece = if let Some(end) = whole.filter(|end| limit.is_none_or(|limit| *end <= limit)) {
                Piece { at, end, kind: Kind::Dead }
            } else {
                let later = held.get(number + 1).map(|later| chunk.start + (later - first) * UNIT_BYTES);
                let end = [limit, later].into_iter().flatten().fold(chunk.end, u64::min);
                Piece { at, end, kind: Kind::LookedAt }
            };
            pieces.insert(next, piece);
        }
        pieces
    }

    /// Turns the gaps between the pieces into filler.
    fn lay(&self, ring: &Ring<'a>, chunk: Range<u64>, pieces: &[Piece]) {
        let mut at = chunk.start;
        let mut filler = 0;
        let end = Piece { at: chunk.end, end: chunk.end, kind: Kind::Dead };
        for piece in pieces.iter().chain([&end]) {
            if at < piece.at {
                seam::kill_point();
                self.put_filler(ring, at, piece.at - at);
                filler += piece.at - at;
            }
            match piece.kind {
                Kind::Live => self.remember(ring.position(piece.at), piece.end - piece.at),
                Kind::Dead => {}
                Kind::LookedAt => super::store(self.word_at(ring, piece.at), Head::Room(piece.end - piece.at).word()),
            }
            at = piece.end;
        }
        self.shift(Word::FillerBytes, filler, 0);
    }

    /// Releases the memory.
    fn forget_named(&self) {
        if let Some(mut known) = self.volume.named.known().filter(|_| !self.has_untiled()) {
            known.remove(&self.number);
        }
    }

    /// What the slots of this stripe name, or named a while ago, by position.
    fn named(&self) -> Arc<Vec<Name>> {
        let mut known = self.volume.named.known();
        if let Some(named) = known.as_ref().and_then(|known| known.get(&self.number)) {
            return Arc::clone(named);
        }
        let mut named = Vec::new();
        for bucket in 0..self.buckets().count() {
            let first = self.volume.layout.bucket_at(self.number, bucket);
            debug_assert_eq!(BUCKET_SLOTS * 8, BUCKET_BYTES);
            for (slot, word) in self.volume.region.line(first).iter().enumerate() {
                let seen = Slot(super::load(word));
                if seen.is_live() && self.is_untiled(seen.position()) {
                    named.push((seen.position(), first + slot * 8));
                }
            }
        }
        named.sort_unstable();
        let named = Arc::new(named);
        if let Some(known) = known.as_mut() {
            known.insert(self.number, Arc::clone(&named));
        }
        named
    }
}
