//! A stripe: one writer lock, one part of the index, two rings.
//!
//! | file | what it holds |
//! |---|---|
//! | `mod.rs` | the words of a stripe, and [`Stripe`], the right to change them |
//! | `index.rs` | finding a key's slot, and choosing one for a new key |
//! | `step.rs` | adding or removing a bucket, as the sizes of the entries demand |
//! | `walk.rs` | an order to visit all buckets in while steps may happen |
//! | `ring.rs` | head, tail, records and filler of one ring |
//! | `hand.rs` | making room: planning, evicting, moving, skipping |
//! | `room.rs` | room that is filled while the lock is free: its growth and its end |
//! | `sweep.rs` | dropping what was purged |
//! | `pages.rs` | in a tier: taking pages, and giving them back |
//! | `erase.rs` | overwriting dead entries, in a volume that erases |
//! | `mend.rs` | reading all live entries, and dropping what contradicts the format |
//! | `survey.rs` | what lies where in the rings |
//! | `untiled.rs` | logs that power loss has left: finding out which of their bytes are records |
//! | `repair.rs` | after a death: finishing what may be half done, and recounting |

mod ahead;
mod erase;
mod hand;
mod index;
mod mend;
mod pages;
mod repair;
mod ring;
mod room;
mod step;
mod survey;
mod sweep;
mod untiled;
mod walk;

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};

pub(crate) use hand::{Work, judge_pinned_again};
pub(crate) use index::{Found, Memory};
pub(crate) use mend::{Judged, drop_damaged, judge};
pub(crate) use repair::{State, all_are_sure, forget_verified, is_in_order, put_in_order};
use ring::Ends;
pub(crate) use ring::RingId;
pub use survey::ExtentKind;
pub(crate) use untiled::Named;
pub(crate) use walk::Walk;

use crate::error::Result;
use crate::format::buckets::Buckets;
use crate::format::layout::{Layout, STRIPE_BYTES};
use crate::format::record::{Head, Header, Lengths, RECORD_BYTES_MIN, Record};
use crate::format::{UNIT_BYTES, hash, hash::Place, purges, slot::Slot};
use crate::lock::{self, Got};
use crate::paging;
use crate::purge::{self, Subject, Verdict};
use crate::seam;
use crate::volume::Volume;

const LOCK: usize = 0;
const CLAIMS_HINT: usize = 4;
/// The line that each look-up reads, eight words long.
const READ_LINE: usize = 64;
const READER_FLAGS: usize = 0;
/// [`Buckets`], the ends of the small ring's laps, and the complements of both.
const BUCKETS: usize = 1;
const ENDS: usize = 2;
const BUCKETS_CHECK: usize = 3;
const ENDS_CHECK: usize = 4;
/// How many buckets there should be; the bucket that a step is about; and the first bucket that may hold old slots
/// after power loss.
const GOAL: usize = 5;
const STEP: usize = 6;
const SURE: usize = 7;
const HEADS: usize = 128;
const STATE: usize = 192;
const COUNTERS: usize = 320;
const PRESENT: usize = COUNTERS + (Count::EvictionsPurged as usize + 1) * 8;
/// How many entries were moved to a bucket that a [`Walk`] may have passed.
const MOVES: usize = PRESENT + 8;
const _: () = assert!(STATE + (Word::MainUntiledTo as usize + 1) * 8 <= COUNTERS);
const _: () = assert!(STATE + Word::Present as usize * 8 == PRESENT && MOVES + 8 <= STRIPE_BYTES as usize);

/// The words of a stripe that its lock protects, except those of the rings.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Word {
    Serial,
    /// Evictions from the small ring, by which the age of ghosts is counted.
    GhostClock,
    Entries,
    LiveBytes,
    MainEntries,
    FillerBytes,
    /// The part of the live bytes that lies in main.
    MainBytes,
    /// Whether the five counts above must be recounted, because a holder of the lock died.
    Recount,
    /// Bit set of rings that must be emptied as soon as no reader holds bytes in them.
    Reset,
    /// The bucket that the sweep looks at next.
    SweepBucket,
    /// The epoch of the last purge when the present pass over the buckets began.
    SweepEpoch,
    /// The same epoch of the last completed pass. Entries that were purged up to it are gone.
    Swept,
    /// The start and end of the part of the small ring's log that isn't tiled (see `untiled.rs`); then those of main.
    SmallUntiledFrom,
    SmallUntiledTo,
    MainUntiledFrom,
    MainUntiledTo,
    /// In a tier: how many bytes of the stripe's data, counted from their start, have pages. Stored behind the
    /// counters.
    Present = 32,
}

/// Lifetime counts of a stripe.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Count {
    EvictionsCold,
    EvictionsExpired,
    EvictionsIndex,
    EvictionsDamaged,
    Promotions,
    Reinsertions,
    Moved,
    BytesWritten,
    BytesCopied,
    Puts,
    Removes,
    Repairs,
    Resets,
    PinnedRefusals,
    /// Not a count, but milliseconds.
    EvictionAge,
    EvictionsPurged,
}

/// Tells readers to make heap copies, because too much of this stripe is pinned.
const FLAG_COPY: u64 = 1;

/// The right to change a stripe. Its lock is held until this is dropped.
#[derive(Debug)]
pub(crate) struct Stripe<'a> {
    pub(crate) volume: &'a Volume,
    pub(crate) number: usize,
    base: usize,
    words: &'a [AtomicU64; STRIPE_BYTES as usize / 8],
    /// The line that each look-up reads, and the line of heads and tails.
    read_line: &'a [AtomicU64; 8],
    heads: &'a [AtomicU64; 8],
    locked: bool,
}

/// The words of a new volume that aren't zero, with their offsets.
pub(crate) fn new_words(layout: &Layout) -> impl Iterator<Item = (usize, u64)> + '_ {
    let buckets = Buckets::new(layout.buckets_hinted());
    let ends = Ends::both(layout.small - layout.bytes_taken(buckets.count()));
    // Heads and tails are zero, so their complements are not.
    let of_stripe = move |stripe| {
        let at = layout.stripe_at(stripe);
        let checks = (4..8).map(move |word| (at + HEADS + word * 8, u64::MAX));
        let index = [(BUCKETS, buckets.word), (ENDS, ends.0), (BUCKETS_CHECK, !buckets.word), (ENDS_CHECK, !ends.0)];
        let index = index.into_iter().chain([(GOAL, buckets.count()), (SURE, u64::MAX)]);
        let index = index.map(move |(word, value)| (at + READ_LINE + word * 8, value));
        checks.chain(index)
    };
    (0..layout.stripes as usize).flat_map(of_stripe).chain(purges::NEW_WORDS)
}

/// Whether these bytes, taken from where a volume has its stripes, begin with stripes: heads and tails that are
/// possible, each with its complement. No other file has such words there. `are_used`: one of the stripes must have
/// been used, since the words of a new volume prove little.
pub(crate) fn are_stripes(bytes: &[u8], are_used: bool) -> bool {
    let heads = bytes.chunks_exact(STRIPE_BYTES as usize).map(|stripe| {
        let (words, _) = stripe[HEADS..].as_chunks();
        std::array::from_fn::<u64, 8, _>(|number| words.get(number).map_or(0, |word| u64::from_le_bytes(*word)))
    });
    let is_ring = |head: u64, tail: u64| tail <= head && (head | tail).is_multiple_of(8) && head < u64::MAX / 4;
    let is_stripe = |words: &[u64; 8]| {
        (0..4).all(|number| words[number] == !words[number + 4])
            && is_ring(words[0], words[1])
            && is_ring(words[2], words[3])
    };
    heads.take_while(is_stripe).any(|words| !are_used || words[0] | words[2] > 0)
}

/// Offset of the line that each look-up reads ([`Volume::read_line`]).
pub(crate) fn read_line_at(layout: &Layout, stripe: usize) -> usize {
    layout.stripe_at(stripe) + READ_LINE
}

/// The word that counts a stripe's buckets, as [`Buckets`].
#[inline]
pub(crate) fn buckets_word(volume: &Volume, stripe: usize) -> &AtomicU64 {
    &volume.read_line(stripe)[BUCKETS]
}

/// How many entries of a stripe have been moved to a bucket that a [`Walk`] may have passed.
pub(crate) fn moves(volume: &Volume, stripe: usize) -> u64 {
    volume.region.word(volume.layout.stripe_at(stripe) + MOVES).load(Acquire)
}

/// How many entries a stripe has. Needs no lock.
pub(crate) fn entries(volume: &Volume, stripe: usize) -> u64 {
    volume.region.word(volume.layout.stripe_at(stripe) + STATE + Word::Entries as usize * 8).load(Relaxed)
}

/// Whether readers should copy instead of holding bytes of this stripe.
#[inline]
pub(crate) fn wants_copies(volume: &Volume, stripe: usize) -> bool {
    volume.read_line(stripe)[READER_FLAGS].load(Relaxed) & FLAG_COPY != 0
}

fn set_wants_copies(volume: &Volume, stripe: usize, yes: bool) {
    if wants_copies(volume, stripe) != yes {
        volume.read_line(stripe)[READER_FLAGS].store(u64::from(yes) * FLAG_COPY, Relaxed);
    }
}

/// One of a stripe's lifetime counts. Needs no lock.
pub(crate) fn count(volume: &Volume, stripe: usize, count: Count) -> u64 {
    volume.region.word(volume.layout.stripe_at(stripe) + COUNTERS + count as usize * 8).load(Relaxed)
}

impl<'a> Stripe<'a> {
    /// Waits for the stripe's lock, and repairs the stripe if its last holder died.
    #[inline]
    pub(crate) fn lock(volume: &'a Volume, number: usize) -> Result<Self> {
        let base = volume.layout.stripe_at(number);
        let got = lock::acquire(volume, volume.region.half(base + LOCK), "a stripe's lock")?;
        let mut stripe = Self::at(volume, number, true);
        // A lost lock word reads as free. A repair also needs to see the whole stripe.
        volume.check_intact()?;
        if got == Got::FromTheDead {
            stripe.repair();
        }
        // Checked under the lock, since a resize holds all of them.
        volume.check_present()?;
        Ok(stripe)
    }

    /// Like [`Stripe::lock`], but doesn't wait. `probe`: take the lock from a dead holder.
    pub(crate) fn try_lock(volume: &'a Volume, number: usize, probe: bool) -> Option<Self> {
        let base = volume.layout.stripe_at(number);
        let got = lock::try_acquire(volume, volume.region.half(base + LOCK), probe)?;
        let mut stripe = Self::at(volume, number, true);
        if got == Got::FromTheDead {
            stripe.repair();
        }
        Some(stripe)
    }

    /// Access to a stripe without its lock, for processes that may not write. Nothing may be changed through it.
    pub(crate) fn unlocked(volume: &'a Volume, number: usize) -> Self {
        Self::at(volume, number, false)
    }

    #[inline]
    fn at(volume: &'a Volume, number: usize, locked: bool) -> Self {
        let base = volume.layout.stripe_at(number);
        let (read_line, heads) = (volume.region.line(base + READ_LINE), volume.region.line(base + HEADS));
        Self { volume, number, base, words: volume.region.words(base), read_line, heads, locked }
    }

    #[inline]
    pub(crate) fn word(&self, word: Word) -> &'a AtomicU64 {
        &self.words[STATE / 8 + word as usize]
    }

    #[inline]
    pub(crate) fn get(&self, word: Word) -> u64 {
        self.word(word).load(Relaxed)
    }

    #[inline]
    pub(crate) fn set(&self, word: Word, value: u64) {
        seam::kill_point();
        self.word(word).store(value, Relaxed);
    }

    /// Adds to and subtracts from a word that only the lock's holder changes. Never goes below zero.
    #[inline]
    fn shift(&self, word: Word, up: u64, down: u64) {
        self.set(word, self.get(word).saturating_add(up).saturating_sub(down));
    }

    #[inline]
    pub(crate) fn tally(&self, count: Count, by: u64) {
        let word = &self.words[COUNTERS / 8 + count as usize];
        word.store(word.load(Relaxed).wrapping_add(by), Relaxed);
    }

    fn note(&self, count: Count, value: u64) {
        self.words[COUNTERS / 8 + count as usize].store(value, Relaxed);
    }

    /// How many claims of this stripe may be held. 0 means that none is.
    pub(crate) fn claims_hint(&self) -> &'a AtomicU32 {
        self.volume.region.half(self.base + CLAIMS_HINT)
    }

    /// The record at `position` (units), if it can be an entry of this stripe.
    #[inline]
    pub(crate) fn entry_at(&self, position: u64) -> Option<(Record<'a>, Lengths, u64)> {
        entry_at(self.volume, self.number, position)
    }

    /// The place of the key of an entry (from [`Stripe::entry_at`]), if its MAC proves that it was put at `position`.
    fn proven_place(&self, position: u64, record: Record<'a>) -> Option<Place> {
        // SAFETY: its end was checked, and we hold the lock, so nobody overwrites it.
        let key = unsafe { record.key() };
        let place = self.volume.place(key);
        let header = record.header();
        (expected_mac(self.volume, self.number, position, place.hash, &header) == header.mac).then_some(place)
    }

    /// Takes over a serial from another volume. Later serials are larger.
    pub(crate) fn keep_serial(&self, serial: u64) -> u64 {
        self.set(Word::Serial, self.get(Word::Serial).max(serial));
        serial
    }

    /// The largest serial that an entry of this stripe can have.
    pub(crate) fn last_serial(&self) -> u64 {
        self.get(Word::Serial)
    }

    /// The next serial. Serials are unique among this stripe's entries, and grow.
    pub(crate) fn next_serial(&self) -> u64 {
        let serial = self.get(Word::Serial).wrapping_add(1) & ((1 << 48) - 1);
        self.set(Word::Serial, serial);
        serial
    }

    /// Counts a live entry less, because its slot no longer names it.
    #[inline]
    fn forget(&self, position: u64, record_bytes: u64) {
        if self.is_untiled(position) {
            return;
        }
        self.shift(Word::Entries, 0, 1);
        self.shift(Word::LiveBytes, 0, record_bytes);
        if RingId::of(self.volume, position) == RingId::Main {
            self.shift(Word::MainEntries, 0, 1);
            self.shift(Word::MainBytes, 0, record_bytes);
        }
    }

    /// Counts a live entry more, because a slot names it now.
    #[inline]
    fn remember(&self, position: u64, record_bytes: u64) {
        self.shift(Word::Entries, 1, 0);
        self.shift(Word::LiveBytes, record_bytes, 0);
        if RingId::of(self.volume, position) == RingId::Main {
            self.shift(Word::MainEntries, 1, 0);
            self.shift(Word::MainBytes, record_bytes, 0);
        }
    }
}

impl Drop for Stripe<'_> {
    fn drop(&mut self) {
        if self.locked {
            let lock = self.volume.region.half(self.base + LOCK);
            if self.volume.has_failed() {
                lock::abandon(self.volume, lock);
            } else {
                lock::release(lock);
            }
        }
    }
}

/// The entry at `position` of a stripe, with its lengths and serial, if one can be there: all of it must lie inside
/// one ring. Needs no lock. Without a pin or the lock, the answer may be outdated.
#[inline]
pub(crate) fn entry_at(volume: &Volume, stripe: usize, position: u64) -> Option<(Record<'_>, Lengths, u64)> {
    let (offset, room) = locate(volume, stripe, position)?;
    // SAFETY: `locate` has checked that a header fits there.
    let record = unsafe { Record::at_checked(&volume.region, offset) };
    let Some(Head::Entry(serial, _)) = record.head() else { return None };
    let lengths = record.lengths();
    (lengths.key > 0 && lengths.record_bytes() <= room).then_some((record, lengths, serial))
}

/// The offset of a position, and the number of bytes from there to the end of its ring; `None` if no header fits.
#[inline]
pub(crate) fn locate(volume: &Volume, stripe: usize, position: u64) -> Option<(usize, u64)> {
    locate_beside(volume, stripe, position, volume.buckets(stripe))
}

/// Does the same for given buckets of the stripe.
#[inline]
pub(crate) fn locate_beside(volume: &Volume, stripe: usize, position: u64, buckets: Buckets) -> Option<(usize, u64)> {
    let layout = &volume.layout;
    let at = position * UNIT_BYTES;
    let end = if at < layout.main {
        layout.main
    } else {
        // A bucket is not a record.
        layout.stripe_data_bytes() - layout.bytes_taken(buckets.count())
    };
    let fits = at + RECORD_BYTES_MIN <= end;
    fits.then(|| (volume.index(stripe).data_at + at as usize, end - at))
}

/// The MAC of a genuine header at `position` of `stripe`.
pub(crate) fn expected_mac(volume: &Volume, stripe: usize, position: u64, key_hash: u64, header: &Header) -> u32 {
    hash::header_mac(&volume.secret, ((stripe as u64) << 40) | position, key_hash, header)
}

/// Verifies MAC and checksum of an entry that was written in an earlier attachment. Once verified, it is trusted as
/// long as the volume stays attached.
///
/// # Safety
/// A pin or the lock keeps the entry's bytes from being reclaimed meanwhile.
#[cold]
pub(crate) unsafe fn verify_entry(
    volume: &Volume,
    place: &Place,
    position: u64,
    record: Record<'_>,
    lengths: Lengths,
) -> bool {
    let header = Header { lengths, ..record.header() };
    let mac = expected_mac(volume, place.stripe, position, place.hash, &header);
    let parts = (lengths.key + lengths.metadata + lengths.value) as usize;
    paging::before_verifying(volume, record, lengths);
    // SAFETY: the caller keeps the bytes in place, and `entry_at` checked that they lie inside the ring.
    let body = unsafe { volume.region.bytes(record.body(), parts) };
    let genuine = mac == header.mac && hash::checksum(body) == header.checksum;
    if genuine && !volume.read_only && record.generation() != volume.generation() {
        record.set_generation(volume.generation());
    }
    genuine
}

/// The effect of purges on an entry.
///
/// # Safety
/// A pin or the lock keeps the entry's bytes from being reclaimed meanwhile, and they lie inside its ring.
#[inline]
pub(crate) unsafe fn purge_verdict(volume: &Volume, record: Record<'_>) -> Verdict {
    let epoch = record.epoch();
    if u64::from(epoch) == volume.purges().epoch() {
        return Verdict::Untouched;
    }
    // SAFETY: the caller keeps the bytes in place.
    let (key, metadata) = unsafe { (record.key(), record.metadata()) };
    purge::judge(volume, &Subject { epoch, flags: record.flags(), key, metadata })
}

impl<'a> Stripe<'a> {
    /// Writes a complete entry header at `at` of `ring`, into free space or this writer's own room. Fills in MAC, lap
    /// and generation.
    pub(crate) fn seal(&self, ring: &ring::Ring<'a>, at: u64, place: &Place, header: &Header) {
        let record = self.record_at(ring, at);
        let header = Header { flags: header.flags.with_lap(ring.lap(at)), ..*header };
        let mac = expected_mac(self.volume, self.number, ring.position(at), place.hash, &header);
        record.set_header(&Header { mac, generation: self.volume.generation(), ..header });
        seam::kill_point();
        record.set_head(Head::Entry(header.serial, header.flags));
    }

    /// Copies a live entry with its header to free space at `at` of `ring`.
    fn copy_record(&self, ring: &ring::Ring<'a>, at: u64, place: &Place, source: Record<'a>) {
        let record = self.record_at(ring, at);
        let header = source.header();
        let parts = header.lengths.key + header.lengths.metadata + header.lengths.value;
        // SAFETY: the source is live, and we hold the lock. The target is free space, which nobody reads.
        unsafe {
            let body = self.volume.region.bytes(source.body(), parts as usize);
            self.volume.region.store(record.body(), body);
        }
        self.seal(ring, at, place, &header);
    }
}

/// Stores a slot. The index changes under the lock in this place only.
fn store_slot(slot: &AtomicU64, new: impl FnMut(u64) -> u64) -> u64 {
    seam::kill_point();
    crate::protocol::replace(slot, new)
}

fn load(word: &AtomicU64) -> u64 {
    word.load(Acquire)
}

fn store(word: &AtomicU64, value: u64) {
    seam::kill_point();
    word.store(value, Release);
}
