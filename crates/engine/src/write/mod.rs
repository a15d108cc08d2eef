//! Writing. A put makes room and stores the slot under the stripe's lock, but copies large values outside of it.
//!
//! ```text
//!            lock                        (large)          lock again
//!   check -> make room -> room, head   --> fill bytes --> check -> header -> slot
//!                              `-- small: filled and published at once --'
//! ```
//!
//! Room that its writer hasn't published yet is garbage that the writer pins. If the writer dies, only the pin has to
//! be cleaned up.

mod change;
mod draft;

use std::sync::atomic::AtomicU64;

pub(crate) use change::{clear, increment, remove, touch};
pub(crate) use draft::{Draft, check_key};

use crate::claim::{self, Line};
use crate::error::{Error, Result};
use crate::format::hash::Place;
use crate::format::record::{Flags, Head, Record};
use crate::format::times::Phase;
use crate::paging;
use crate::protocol;
use crate::purge::Verdict;
use crate::seam;
use crate::stripe::{Count, Found, Memory, RingId, Stripe, Work, purge_verdict};
use crate::thread::Thread;
use crate::volume::Volume;

/// Entries up to this size are filled under the lock, since taking it a second time costs more.
const FILL_UNDER_LOCK: u64 = 8 << 10;

/// The condition of a put.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Condition {
    Always,
    Absent,
    Serial(u64),
    /// The claim wasn't voided meanwhile.
    Claimed(Line),
}

/// What became of a put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Stored, under this serial.
    Stored(u64),
    /// The condition didn't hold: nothing was stored.
    Unmet,
    /// A purge since the work on the entry began covers it. It counts as stored before the purge, under this serial,
    /// and nothing of it remains.
    Superseded(u64),
}

/// Stores an entry if `condition` holds.
pub(crate) fn put(volume: &Volume, draft: &Draft<'_>, condition: Condition) -> Result<Outcome> {
    volume.check_writable()?;
    volume.mark_unclean()?;
    let place = volume.place(draft.key);
    volume.prefetch_buckets(&place);
    let mut stripe = Stripe::lock(volume, place.stripe)?;
    let found = stripe.find(&place, draft.key);
    if !allows(&stripe, condition, found.as_ref()) {
        return Ok(Outcome::Unmet);
    }
    let bytes = draft.lengths.record_bytes();
    let (ring, at) = find_room(&mut stripe, &place, bytes, found.as_ref())?;
    // Making room may have evicted the entry that is to be replaced. Nobody can see that while the lock is held.
    let replaces_nothing = matches!(condition, Condition::Serial(_)) && stripe.find(&place, draft.key).is_none();
    match writer_pin(volume, bytes).filter(|_| !replaces_nothing) {
        None => {
            let checksum = draft.fill(volume, record(&stripe, ring, at));
            let spot = Spot { ring, at, checksum, stage: Stage::Free };
            Ok(finish(&stripe, &place, spot, draft, condition, found))
        }
        Some(pin) => put_in_two_steps(stripe, &place, (ring, at), draft, condition, pin),
    }
}

/// Stores a draft under the lock of its stripe, which the caller has taken, and releases the lock. Waits for nothing.
pub(crate) fn put_locked(mut stripe: Stripe<'_>, place: &Place, draft: &Draft<'_>) -> Result<Outcome> {
    let found = stripe.find(place, draft.key);
    let bytes = draft.lengths.record_bytes();
    let (ring, at) = find_room(&mut stripe, place, bytes, found.as_ref())?;
    let checksum = draft.fill(stripe.volume, record(&stripe, ring, at));
    // Bytes read from the volume behind a tier may have been lost. Processes that haven't met the loss would take
    // them for a copy.
    if let Some(behind) = &stripe.volume.front_of {
        behind.check_intact()?;
    }
    let spot = Spot { ring, at, checksum, stage: Stage::Free };
    Ok(finish(&stripe, place, spot, draft, Condition::Always, found))
}

/// Makes room for a new entry in the ring where it belongs. If its key was asked for before, it contends for main.
pub(crate) fn find_room(
    stripe: &mut Stripe<'_>,
    place: &Place,
    bytes: u64,
    found: Option<&Found<'_>>,
) -> Result<(RingId, u64)> {
    let mut work = Work::new(bytes);
    let replaced = found.filter(|found| RingId::of(stripe.volume, found.seen.position()) == RingId::Main);
    work.gives_back = replaced.is_some_and(|found| found.lengths.record_bytes() >= bytes);
    let ring = if replaced.is_some() { RingId::Main } else { ring_for(stripe, bytes) };
    if ring == RingId::Small && found.is_none() {
        match stripe.memory_of(place, bytes) {
            Memory::Nothing => {}
            Memory::Ghost => return make_room(stripe, RingId::Main, bytes, &mut work),
            Memory::Requests => {
                if let Some(at) = stripe.win_room(bytes, &mut work) {
                    return Ok((RingId::Main, at));
                }
            }
        }
    }
    make_room(stripe, ring, bytes, &mut work)
}

/// The ring for an entry of which only its size is known.
pub(crate) fn ring_for(stripe: &Stripe<'_>, bytes: u64) -> RingId {
    if bytes > stripe.largest_for_small() { RingId::Main } else { RingId::Small }
}

/// Makes room in `ring`, or in main if readers hold too much of small. New entries that are being sent to slow
/// clients can fill small before an eighth of the stripe is held.
pub(crate) fn make_room(stripe: &mut Stripe<'_>, ring: RingId, bytes: u64, work: &mut Work) -> Result<(RingId, u64)> {
    let mut room = stripe.make_room(ring, bytes, work).map(|at| (ring, at));
    if ring == RingId::Small && matches!(room, Err(Error::Pinned { .. })) {
        room = stripe.make_room(RingId::Main, bytes, work).map(|at| (RingId::Main, at));
    }
    if matches!(room, Err(Error::Pinned { .. })) {
        stripe.tally(Count::PinnedRefusals, 1);
    }
    room
}

/// The pin with which a writer fills a large entry outside of the lock; `None` if it fills under the lock.
fn writer_pin(volume: &Volume, bytes: u64) -> Option<&AtomicU64> {
    if bytes <= FILL_UNDER_LOCK {
        return None;
    }
    Thread::current(volume).map(Thread::transient_pin)
}

fn put_in_two_steps<'a>(
    stripe: Stripe<'a>,
    place: &Place,
    (ring, at): (RingId, u64),
    draft: &Draft<'_>,
    condition: Condition,
    pin: &'a AtomicU64,
) -> Result<Outcome> {
    let volume = stripe.volume;
    let record = record(&stripe, ring, at);
    let unpin = Unpin(pin);
    let bytes = draft.lengths.record_bytes();
    protocol::Word::store_fenced(pin, Volume::pin_word(stripe.number, stripe.ring(ring).position(at)));
    seam::kill_point();
    record.set_head(Head::Room(bytes));
    stripe.advance(ring, at, bytes);
    volume.check_intact()?;
    drop(stripe);
    paging::make_room(volume, record.body(), record.offset + bytes as usize);
    let checksum = draft.fill(volume, record);
    let stripe = Stripe::lock(volume, place.stripe)?;
    let found = stripe.find(place, draft.key);
    let spot = Spot { ring, at, checksum, stage: Stage::Room };
    let outcome = if allows(&stripe, condition, found.as_ref()) {
        finish(&stripe, place, spot, draft, condition, found)
    } else {
        Outcome::Unmet
    };
    drop(unpin);
    Ok(outcome)
}

/// Releases the writer's pin, also after an error.
struct Unpin<'a>(&'a AtomicU64);

impl Drop for Unpin<'_> {
    fn drop(&mut self) {
        protocol::unpin(self.0);
    }
}

fn record<'a>(stripe: &Stripe<'a>, ring: RingId, at: u64) -> Record<'a> {
    stripe.record_at(&stripe.ring(ring), at)
}

fn allows(stripe: &Stripe<'_>, condition: Condition, found: Option<&Found<'_>>) -> bool {
    match condition {
        Condition::Always => true,
        Condition::Absent => !found.is_some_and(|found| is_value(stripe.volume, found)),
        Condition::Serial(serial) => {
            found.is_some_and(|found| found.serial == serial && phase(stripe.volume, found) != Phase::Over)
        }
        Condition::Claimed(claim) => !claim.is_void(stripe),
    }
}

/// The phase of an entry. Called under the lock of its stripe.
fn phase(volume: &Volume, found: &Found<'_>) -> Phase {
    let record = found.record;
    // SAFETY: the entry is live and its stripe is locked, so nobody reclaims it.
    let times = match unsafe { purge_verdict(volume, record) } {
        Verdict::Hard => return Phase::Over,
        Verdict::Soft => record.times().staled(),
        Verdict::Untouched => record.times(),
    };
    times.phase(record.created_ms(), || volume.now_ms())
}

/// Whether `get` finds the entry: it is fresh and not negative.
fn is_value(volume: &Volume, found: &Found<'_>) -> bool {
    !found.record.flags().has(Flags::NEGATIVE) && phase(volume, found) == Phase::Fresh
}

/// Where the bytes of a draft are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spot {
    pub(crate) ring: RingId,
    pub(crate) at: u64,
    pub(crate) checksum: u32,
    pub(crate) stage: Stage,
}

/// What these bytes are part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Free space ahead of the head.
    Free,
    /// A room of exactly their length.
    Room,
    /// A room of this many bytes, whose followers were promised this serial.
    Reserved(u64, u64),
}

/// Completes the header and publishes the slot. Called under the lock, with all bytes in place, and with the
/// condition checked since the lock was taken. `found` is what `Stripe::find` has found since then.
pub(crate) fn finish<'a>(
    stripe: &Stripe<'a>,
    place: &Place,
    spot: Spot,
    draft: &Draft<'_>,
    condition: Condition,
    found: Option<Found<'a>>,
) -> Outcome {
    let bytes = draft.lengths.record_bytes();
    // Before the entry has a slot: a step may take the slot of a cold entry.
    stripe.step_a_little(bytes);
    let mut found = stripe.find_again(found, place, draft.key);
    let ring = stripe.ring(spot.ring);
    let verdict = draft.judge(stripe.volume);
    let superseded = verdict == Verdict::Hard;
    let (serial, frequency) = match (draft.standing, spot.stage) {
        (Some((serial, frequency)), _) => (stripe.keep_serial(serial), frequency),
        (None, Stage::Reserved(_, serial)) => (serial, 0),
        (None, Stage::Free | Stage::Room) => (stripe.next_serial(), 0),
    };
    if superseded {
        // The bytes lie in free space, or in a room that nobody will publish.
        if spot.stage == Stage::Free {
            stripe.erase_unused(spot.ring, spot.at, bytes);
        }
        // An entry begun in a later epoch came after the purge, or readers judge it by the purge.
        while let Some(old) = found.filter(|old| old.record.epoch() <= draft.epoch) {
            stripe.unlink(&old);
            found = stripe.find(place, draft.key);
        }
    } else {
        if let Stage::Reserved(room, _) = spot.stage {
            stripe.trim_room(spot.ring, spot.at, room, bytes);
            // If the filler was lost, the log would end after the entry.
            if stripe.volume.has_failed() {
                return Outcome::Stored(serial);
            }
        }
        let mut header = draft.header(serial, spot.checksum);
        if verdict == Verdict::Soft {
            header.times = header.times.staled();
        }
        stripe.seal(&ring, spot.at, place, &header);
        if spot.stage == Stage::Free {
            stripe.advance(ring.id, spot.at, bytes);
        }
        // The record or the head may not have reached the file, so nobody may find the entry.
        if stripe.volume.has_failed() {
            return Outcome::Stored(serial);
        }
        stripe.publish(place, ring.position(spot.at), ring.lap(spot.at), bytes, frequency, found);
        stripe.tally(Count::BytesWritten, bytes);
    }
    if !matches!(condition, Condition::Claimed(_)) {
        claim::void(stripe, Some(place.hash));
    }
    stripe.tally(Count::Puts, 1);
    stripe.sweep_a_little();
    if superseded { Outcome::Superseded(serial) } else { Outcome::Stored(serial) }
}
