//! One ring: a circular log of records between `tail` and `head`, which are virtual offsets that only grow.
//!
//! ```text
//!   tail                         head                tail + size
//!    |  records, oldest first      |   free            |
//!    v                             v                   v
//!    [......log....................)...................)      physical offset = virtual % size
//! ```
//!
//! Invariants, while the lock is held:
//! 1. `tail <= head`, and both are multiples of 8. `head - tail > size` only between the two last stores of a skip,
//!    and between the two stores of a reset.
//! 2. The records from `tail` on tile `[tail, head)` without gaps, and none crosses the physical end.
//! 3. Every live slot of the stripe names the start of an entry record inside a log.
//! 4. Bytes in `[head, tail + size)` belong to nobody: no slot names them and no pin holds them.
//!
//! Power loss leaves a log for which 2 and 3 don't hold yet: see `untiled.rs`.
//!
//! The index takes bytes from the end of the small ring ([`super::step`]). So each lap of that ring has an end of its
//! own. The bytes behind this end are **void**: they count as part of the lap, and read as filler without being
//! looked at.
//!
//! ```text
//!    [......this lap........)............the last one......)  void   | buckets
//!                         head  tail                      its end    size - what they take
//! ```
//! 5. No bucket lies before the end of a lap that the log is in.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Release;

use super::{ENDS, ENDS_CHECK, Stripe, Word, expected_mac, load, store};
use crate::format::layout::{BUCKET_BYTES, LEAST_OF_SMALL};
use crate::format::record::{Head, RECORD_BYTES_MIN, Record};
use crate::format::{UNIT_BYTES, hash};
use crate::volume::Volume;

/// One of the two rings of a stripe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RingId {
    /// Takes new entries.
    Small,
    /// Keeps entries that had enough hits.
    Main,
}

impl RingId {
    pub(crate) const BOTH: [Self; 2] = [Self::Small, Self::Main];

    /// The ring of a position (units).
    #[inline]
    pub(crate) fn of(volume: &Volume, position: u64) -> Self {
        if position * UNIT_BYTES < volume.layout.main { Self::Main } else { Self::Small }
    }
}

/// The ends of a ring's laps, in bytes from its start. The low half, in units of 64 bytes, is for laps with even
/// numbers; the high half is for odd ones. A log covers two laps at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ends(pub(super) u64);

impl Ends {
    const HALF: u32 = 32;

    pub(super) fn both(bytes: u64) -> Self {
        Self(0).with(0, bytes).with(1, bytes)
    }

    pub(super) fn of(self, lap: u64) -> u64 {
        ((self.0 >> (lap % 2 * u64::from(Self::HALF))) & u64::from(u32::MAX)) * BUCKET_BYTES
    }

    fn with(self, lap: u64, bytes: u64) -> Self {
        let shift = lap % 2 * u64::from(Self::HALF);
        Self((self.0 & !(u64::from(u32::MAX) << shift)) | ((bytes / BUCKET_BYTES) << shift))
    }
}

/// A ring's place and size, with its head and tail. Each word has a complement beside it, which is stored first. If
/// the two don't match, either a writer died in between, or the file is damaged.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ring<'a> {
    pub(crate) id: RingId,
    /// The size, including what the index has taken.
    pub(crate) size: u64,
    /// In bytes from the start of the stripe's data.
    start: u64,
    /// The bytes that the index leaves.
    pub(crate) most: u64,
    /// [`Ends`] and their complement, for a ring whose laps may end earlier.
    ends: Option<[&'a AtomicU64; 2]>,
    head: &'a AtomicU64,
    tail: &'a AtomicU64,
    head_check: &'a AtomicU64,
    tail_check: &'a AtomicU64,
}

impl Ring<'_> {
    pub(crate) fn head(&self) -> u64 {
        load(self.head)
    }

    pub(crate) fn tail(&self) -> u64 {
        load(self.tail)
    }

    pub(crate) fn set_head(&self, to: u64) {
        set_head(self.head, self.head_check, to);
    }

    pub(crate) fn set_tail(&self, to: u64) {
        store(self.tail_check, !to);
        store(self.tail, to);
    }

    /// Whether both words match their complements.
    pub(crate) fn is_intact(&self) -> bool {
        self.head() == !load(self.head_check) && self.tail() == !load(self.tail_check)
    }

    /// Repairs the words after a death between the stores of a complement and its word: the word is right. A word
    /// that differs from its complement by more than any step is damaged, and stays as it is.
    pub(crate) fn mend(&self) {
        for (word, check) in [(self.head, self.head_check), (self.tail, self.tail_check)] {
            let (now, next) = (load(word), !load(check));
            if next > now && next - now <= 2 * self.size {
                store(check, !now);
            }
        }
    }

    pub(crate) fn free(&self) -> u64 {
        self.tail().saturating_add(self.size).saturating_sub(self.head())
    }

    /// Where a lap ends, in bytes from the ring's start. The word may be damaged, but a bucket is never part of a
    /// lap.
    #[inline]
    pub(super) fn end(&self, lap: u64) -> u64 {
        self.ends.map_or(self.size, |[ends, _]| Ends(load(ends)).of(lap).clamp(self.size / LEAST_OF_SMALL, self.most))
    }

    /// Sets the end of a lap. No record of the lap lies beyond it, and no bucket lies before it.
    pub(super) fn set_end(&self, lap: u64, bytes: u64) {
        let Some([ends, check]) = self.ends else { return };
        let (old, new) = (load(ends), Ends(load(ends)).with(lap, bytes).0);
        if old != new {
            store(check, !new);
            store(ends, new);
        }
    }

    /// Bytes of the log, without its void.
    pub(crate) fn used(&self) -> u64 {
        let (head, tail) = (self.head(), self.tail());
        let is_wrapped = self.lap(tail) < self.lap(head);
        let void = if is_wrapped { self.size - self.end(self.lap(tail)).max(tail % self.size) } else { 0 };
        head.saturating_sub(tail).saturating_sub(void)
    }

    /// Bytes from a virtual offset to the end of its lap; 0 in the void.
    #[inline]
    pub(crate) fn bytes_to_end(&self, at: u64) -> u64 {
        self.end(self.lap(at)).saturating_sub(at % self.size)
    }

    /// Length of the void that begins at a virtual offset; 0 if none does.
    pub(super) fn void_at(&self, at: u64) -> u64 {
        let place = at % self.size;
        if place > 0 && place == self.end(self.lap(at)) { self.size - place } else { 0 }
    }

    /// The position (units, within the stripe's data) of a virtual offset.
    pub(crate) fn position(&self, at: u64) -> u64 {
        (self.start + at % self.size) / UNIT_BYTES
    }

    /// The distance of a position from the tail. The oldest record has 0.
    pub(crate) fn age_rank(&self, position: u64) -> u64 {
        let at = (position * UNIT_BYTES).wrapping_sub(self.start);
        (at + self.size - self.tail() % self.size) % self.size
    }

    pub(crate) fn lap(&self, at: u64) -> u64 {
        at / self.size
    }

    /// Whether a record can lie at a virtual offset now.
    pub(crate) fn reaches(&self, offset: u64) -> bool {
        offset.checked_sub(self.tail()).is_some_and(|behind| behind < self.size)
    }

    /// The virtual offset of a record of the log, given its position (units).
    pub(crate) fn offset(&self, position: u64) -> u64 {
        let at = (position * UNIT_BYTES).saturating_sub(self.start);
        let tail = self.tail();
        tail.saturating_add(at.wrapping_sub(tail % self.size).wrapping_add(self.size) % self.size)
    }

    /// Whether `bytes` contiguous bytes, and `ahead` more bytes, are free at the head.
    pub(crate) fn has_room(&self, bytes: u64, ahead: u64) -> bool {
        self.run_end(self.head(), bytes).saturating_add(ahead) <= self.tail().saturating_add(self.size)
    }

    /// The end of a run of `bytes` contiguous bytes that starts at `head`, or at the next physical start.
    fn run_end(&self, head: u64, bytes: u64) -> u64 {
        let start = if bytes <= self.bytes_to_end(head) { head } else { self.next_lap(head) };
        start.saturating_add(bytes)
    }

    /// The virtual offset at which the lap after that of `at` begins.
    pub(super) fn next_lap(&self, at: u64) -> u64 {
        (at - at % self.size).saturating_add(self.size)
    }

    /// How far the tail must have come for `bytes` contiguous bytes to fit at `head`.
    pub(crate) fn tail_needed(&self, head: u64, bytes: u64) -> u64 {
        self.run_end(head, bytes).saturating_sub(self.size)
    }

    /// Does the same for a head that a skip will make. Its lap then has the end that the tail's lap has now.
    pub(crate) fn tail_needed_behind_skip(&self, head: u64, bytes: u64) -> u64 {
        let to_end = self.end(self.lap(self.tail())).saturating_sub(head % self.size);
        let start = if bytes <= to_end { head } else { self.next_lap(head) };
        start.saturating_add(bytes).saturating_sub(self.size)
    }
}

fn set_head(head: &AtomicU64, check: &AtomicU64, to: u64) {
    store(check, !to);
    store(head, to);
}

/// A record of the log, as the hand sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen<'a> {
    pub(crate) head: Head,
    pub(crate) bytes: u64,
    /// A void: bytes of a lap that the index has, or may have. It doesn't count as filler.
    pub(super) is_void: bool,
    /// The record, if this is an entry.
    entry: Option<Record<'a>>,
}

impl<'a> Seen<'a> {
    /// The entry's record, if this is one.
    pub(crate) fn as_entry(&self) -> Option<Record<'a>> {
        self.entry
    }
}

/// The log can't be read as one, so the ring must be reset.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Damaged;

impl<'a> Stripe<'a> {
    #[inline]
    pub(crate) fn ring(&self, id: RingId) -> Ring<'a> {
        let layout = &self.volume.layout;
        let (start, size) = match id {
            RingId::Small => (layout.main, layout.small),
            RingId::Main => (0, layout.main),
        };
        let [head, tail, head_check, tail_check] = self.ends_of(id);
        let (most, ends) = match id {
            RingId::Main => (size, None),
            RingId::Small => (
                size - layout.bytes_taken(self.buckets().count()),
                Some([&self.read_line[ENDS], &self.read_line[ENDS_CHECK]]),
            ),
        };
        Ring { id, size, start, most, ends, head, tail, head_check, tail_check }
    }

    /// The words of a ring: head, tail, and the complements of both.
    #[inline]
    fn ends_of(&self, id: RingId) -> [&'a AtomicU64; 4] {
        let [small_head, small_tail, head, tail, small_head_check, small_tail_check, head_check, tail_check] =
            self.heads;
        match id {
            RingId::Small => [small_head, small_tail, small_head_check, small_tail_check],
            RingId::Main => [head, tail, head_check, tail_check],
        }
    }

    pub(super) fn offset_of(&self, ring: &Ring<'_>, at: u64) -> usize {
        self.volume.index(self.number).data_at + (ring.position(at) * UNIT_BYTES) as usize
    }

    /// The record at a virtual offset. A header must fit before the physical end.
    pub(crate) fn record_at(&self, ring: &Ring<'_>, at: u64) -> Record<'a> {
        Record::at(&self.volume.region, self.offset_of(ring, at))
    }

    /// The first word of what is, or will be, at a virtual offset. Filler may be shorter than a header.
    pub(super) fn word_at(&self, ring: &Ring<'_>, at: u64) -> &'a AtomicU64 {
        self.volume.region.word(self.offset_of(ring, at))
    }

    /// Reads the record at virtual offset `at` of a log that ends at `head`, and trusts nothing. Tiles the log there
    /// if it isn't tiled yet.
    pub(crate) fn read(&self, ring: &Ring<'a>, at: u64, head: u64) -> Result<Seen<'a>, Damaged> {
        while self.untiled(ring.id).contains(&at) {
            self.tile_next(ring)?;
        }
        let to_end = ring.bytes_to_end(at);
        if to_end == 0 {
            let void = ring.void_at(at);
            let is_whole = void > 0 && void <= head.saturating_sub(at);
            let seen = Seen { head: Head::Filler(void), bytes: void, is_void: true, entry: None };
            return if is_whole { Ok(seen) } else { Err(Damaged) };
        }
        let room = to_end.min(head.saturating_sub(at));
        let kind = Head::from_word(load(self.word_at(ring, at))).filter(|_| room >= UNIT_BYTES);
        let (bytes, entry) = match kind {
            None => return Err(Damaged),
            Some(Head::Filler(bytes) | Head::Room(bytes)) => (bytes, None),
            Some(Head::Entry(..)) if room < RECORD_BYTES_MIN => return Err(Damaged),
            Some(Head::Entry(..)) => {
                let record = self.record_at(ring, at);
                (record.lengths().record_bytes(), Some(record))
            }
        };
        let Some(kind) = kind.filter(|_| bytes > 0 && bytes <= room) else { return Err(Damaged) };
        let seen = Seen { head: kind, bytes, is_void: false, entry };
        if self.is_genuine(ring, at, &seen) { Ok(seen) } else { Err(Damaged) }
    }

    /// Entries of an earlier attachment must prove their header by its MAC before the hand follows it.
    fn is_genuine(&self, ring: &Ring<'_>, at: u64, seen: &Seen<'a>) -> bool {
        let Some(record) = seen.entry else { return true };
        if record.generation() == self.volume.generation() {
            return true;
        }
        // SAFETY: the record lies in the log, and we hold the lock, so nobody overwrites it.
        let key = unsafe { record.key() };
        let key_hash = hash::key_hash(&self.volume.secret, key);
        let header = record.header();
        expected_mac(self.volume, self.number, ring.position(at), key_hash, &header) == header.mac
    }

    pub(super) fn put_filler(&self, ring: &Ring<'_>, at: u64, bytes: u64) {
        self.word_at(ring, at).store(Head::Filler(bytes).word(), Release);
    }

    /// Turns `[from, to)` of the free space into filler: up to the end of its lap, and on from the start.
    pub(super) fn fill(&self, ring: &Ring<'_>, from: u64, to: u64) {
        let (mut at, mut filler) = (from, 0);
        while at < to {
            let bytes = ring.bytes_to_end(at).min(to - at);
            if bytes == 0 {
                at = ring.next_lap(at);
                continue;
            }
            crate::seam::kill_point();
            self.put_filler(ring, at, bytes);
            at += bytes;
            filler += bytes;
        }
        self.shift(Word::FillerBytes, filler, 0);
    }

    /// The virtual offset for `bytes` bytes, if they fit without evicting anything. If they don't fit before the
    /// physical end, the rest up to there becomes filler.
    pub(super) fn fit(&self, ring: &Ring<'_>, bytes: u64) -> Option<u64> {
        if ring.has_room(bytes, 0) { self.take(ring, bytes) } else { None }
    }

    /// Like [`Stripe::fit`], for bytes that have room.
    #[inline]
    pub(super) fn take(&self, ring: &Ring<'_>, bytes: u64) -> Option<u64> {
        debug_assert!(ring.has_room(bytes, 0));
        if self.must_reset(ring.id) || self.volume.has_failed() {
            return None;
        }
        let head = ring.head();
        let at = if bytes <= ring.bytes_to_end(head) {
            self.renew_pages(ring, head, bytes);
            head
        } else {
            let next = ring.next_lap(head);
            self.fill(ring, head, next);
            ring.set_end(ring.lap(next), self.end_wanted(ring));
            ring.set_head(next);
            next
        };
        self.volume.mapped.map(&self.volume.region, self.offset_of(ring, at), bytes as usize);
        Some(at)
    }

    /// Takes the `bytes` bytes at `at` (from [`Stripe::fit`]) into the log. The header of their record must be there
    /// already.
    pub(crate) fn advance(&self, id: RingId, at: u64, bytes: u64) {
        // A record that was lost would end the log for all processes.
        if !self.volume.has_failed() {
            let [head, _, head_check, _] = self.ends_of(id);
            set_head(head, head_check, at + bytes);
        }
    }

    /// Lets everything up to `to` stay in place, as if it had just been written: the free space before it becomes
    /// filler, and head and tail move on together.
    ///
    /// The stores come in this order: filler, head, tail. A death between the last two leaves `head - tail > size`,
    /// which the repair mends. Before these stores, the lap after the tail's lap gets the same end, since what stays
    /// in place becomes part of it.
    pub(super) fn skip(&self, ring: &Ring<'_>, to: u64) {
        let (head, tail) = (ring.head(), ring.tail());
        if self.volume.has_failed() {
            return;
        }
        let lap = ring.lap(tail);
        ring.set_end(lap + 1, ring.end(lap));
        self.fill(ring, head, tail + ring.size);
        ring.set_head(to + ring.size);
        ring.set_tail(to);
    }
}
