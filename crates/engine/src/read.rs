//! Reading: without a lock, without a copy, and without a system call unless the thread had to wait for storage
//! ([`crate::paging`]).
//!
//! 1. Hash the key, and search its two buckets for its fingerprint.
//! 2. Publish a pin, then look again at the slot ([`crate::protocol::pin`]) and at the count of the index's steps. If
//!    both are unchanged, except for the frequency, the record stays where it is. Otherwise start again.
//! 3. Compare the key, verify an entry that is older than this attachment, check purges and times, raise the
//!    frequency. A miss is noted in the sketch ([`crate::sketch`]).

mod plain;

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};

use crate::error::{Error, Result};
use crate::format::buckets::Buckets;
use crate::format::hash::{Place, checksum};
use crate::format::record::{Flags, Header, Lengths, Record};
use crate::format::slot::Slot;
use crate::format::times::{Phase, Times};
use crate::hit::{Copied, Hit};
use crate::paging;
use crate::protocol;
use crate::purge::{self, Subject, Verdict};
use crate::seam;
use crate::sketch;
use crate::stripe::{
    drop_damaged, entry_at, judge_pinned_again, locate, locate_beside, purge_verdict, verify_entry, wants_copies,
};
use crate::thread::{Counter, Thread};
use crate::volume::Volume;
use crate::write::check_key;

pub(crate) use plain::{get_plain, get_plain_if};

/// How many heap bytes the hits of one process may hold as copies. Beyond it, hits are pins again.
const COPIED_BYTES_MAX: u64 = 64 << 20;
/// A reader checks once in this many copies whether copying is still needed.
const LOOKS_EVERY: u64 = 64;
/// How often to try a copy without a pin while writers keep changing the entry.
const COPY_TRIES: u32 = 1000;

/// Whether a look-up counts as a use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// It raises the frequency and counts as a hit or a miss.
    Counts,
    /// It leaves no trace.
    Peeks,
}

/// Which entries a look-up accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Valid values.
    Fresh,
    /// Also stale and negative entries.
    Any,
}

impl Wanted {
    #[inline]
    fn takes(self, phase: Phase, flags: Flags) -> bool {
        match self {
            Self::Fresh => phase == Phase::Fresh && !flags.has(Flags::NEGATIVE),
            Self::Any => phase != Phase::Over,
        }
    }
}

/// An entry that the calling thread has pinned, before it is returned.
pub(crate) struct Pinned<'a> {
    volume: &'a Volume,
    pub(crate) record: Record<'a>,
    /// The lengths as they were checked. If the volume fails, the words may read differently later.
    lengths: Lengths,
    pub(crate) phase: Phase,
    pin: &'a AtomicU64,
    pub(crate) slot: &'a AtomicU64,
    pub(crate) seen: Slot,
}

impl<'a> Pinned<'a> {
    /// Key, value, and the metadata with what lies behind the caller's own.
    pub(crate) fn parts(&self) -> [&[u8]; 3] {
        let Lengths { key, metadata, value } = self.lengths;
        // SAFETY: the record is pinned while this value exists, and `check` has found that it ends before its ring
        // does.
        let body = unsafe { self.volume.region.bytes(self.record.body(), (key + metadata + value) as usize) };
        let (key, rest) = body.split_at(key as usize);
        let (metadata, value) = rest.split_at(metadata as usize);
        [key, metadata, value]
    }

    /// Whether its bytes match the checksum of `header`, its own header.
    pub(crate) fn is_whole(&self, header: &Header) -> bool {
        let Lengths { key, metadata, value } = self.lengths;
        // SAFETY: as in `parts`.
        checksum(unsafe { self.volume.region.bytes(self.record.body(), (key + metadata + value) as usize) })
            == header.checksum
    }

    /// The hit for the caller.
    #[inline]
    pub(crate) fn into_hit(self) -> Hit<'a> {
        // SAFETY: `find` has validated the claim, which belongs to this hit alone now. The lengths were checked.
        unsafe { Hit::pinned(self.volume, self.record, self.lengths, self.phase, self.pin) }
    }

    /// Releases the pin; nobody gets the entry.
    pub(crate) fn release(self) {
        protocol::unpin(self.pin);
    }
}

/// Looks up bytes that may not be a valid key.
#[inline]
pub(crate) fn get_checked<'a>(volume: &'a Volume, key: &[u8], usage: Use, wanted: Wanted) -> Result<Option<Hit<'a>>> {
    check_key(volume, key)?;
    get(volume, key, usage, wanted)
}

/// Looks `key` up.
#[inline]
pub(crate) fn get<'a>(volume: &'a Volume, key: &[u8], usage: Use, wanted: Wanted) -> Result<Option<Hit<'a>>> {
    get_at(volume, &volume.place(key), key, usage, wanted)
}

/// Like [`get`], for a key whose place is known.
#[inline]
pub(crate) fn get_at<'a>(
    volume: &'a Volume,
    place: &Place,
    key: &[u8],
    usage: Use,
    wanted: Wanted,
) -> Result<Option<Hit<'a>>> {
    get_watched(volume, place, key, usage, wanted, |_| {})
}

/// The frequency of the valid entry of `key`.
pub(crate) fn uses(volume: &Volume, key: &[u8]) -> Result<Option<u8>> {
    check_key(volume, key)?;
    let mut uses = 0;
    let watch = |found: &Pinned<'_>| uses = found.seen.frequency() as u8;
    let found = get_watched(volume, &volume.place(key), key, Use::Peeks, Wanted::Fresh, watch)?;
    Ok(found.map(|_| uses))
}

/// What the sketch remembers of a key.
pub(crate) fn remembered_requests(volume: &Volume, key: &[u8]) -> Result<Option<u64>> {
    check_key(volume, key)?;
    Ok(sketch::remembered(volume, &volume.place(key)))
}

/// Like [`get_at`], but shows the pinned entry to `watch` before it is returned.
#[inline]
pub(crate) fn get_watched<'a>(
    volume: &'a Volume,
    place: &Place,
    key: &[u8],
    usage: Use,
    wanted: Wanted,
    watch: impl FnOnce(&Pinned<'a>),
) -> Result<Option<Hit<'a>>> {
    let Some(thread) = Thread::current(volume) else { return get_unpinned(volume, place, key, wanted) };
    let Some(pin) = thread.free_pin().filter(|_| !must_copy(volume, place.stripe)) else {
        return Ok(get_copy(volume, thread, place, key, usage, wanted));
    };
    let found = find(volume, place, key, wanted, pin);
    count(thread, place.hash, usage, found.as_ref());
    let Some(found) = found else { return Ok(None) };
    watch(&found);
    Ok(Some(found.into_hit()))
}

#[inline]
pub(crate) fn must_copy(volume: &Volume, stripe: usize) -> bool {
    wants_copies(volume, stripe) && volume.copied_bytes.load(Relaxed) < COPIED_BYTES_MAX
}

#[inline]
fn count(thread: Thread<'_>, hash: u64, usage: Use, found: Option<&Pinned<'_>>) {
    match found {
        None => count_miss(thread, hash, usage),
        Some(found) => count_hit(thread, usage, found),
    }
}

#[inline]
pub(crate) fn count_hit(thread: Thread<'_>, usage: Use, found: &Pinned<'_>) {
    if usage == Use::Counts {
        thread.count(Counter::Hits);
        raise(found.slot, found.seen);
    }
}

/// `hash` is that of the key.
#[inline]
fn count_miss(thread: Thread<'_>, hash: u64, usage: Use) {
    if usage == Use::Counts {
        thread.count_miss();
        sketch::ask(thread.volume(), hash);
    }
}

/// Counts one use of a slot's entry.
#[inline]
pub(crate) fn raise(slot: &AtomicU64, seen: Slot) {
    if let Some(raised) = seen.used_once_more() {
        // If another reader or a writer was faster, one use isn't counted.
        let _ = slot.compare_exchange(seen.0, raised.0, Relaxed, Relaxed);
    }
}

/// Finds and pins the valid entry of `key`. On a miss, `pin` is free again.
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "otherwise its result goes through memory in pieces, a third of a warm look-up"
)]
pub(crate) fn find<'a>(
    volume: &'a Volume,
    place: &Place,
    key: &[u8],
    wanted: Wanted,
    pin: &'a AtomicU64,
) -> Option<Pinned<'a>> {
    let is_paging = paging::is_paging(volume);
    'again: loop {
        let buckets = volume.buckets(place.stripe);
        for which in 0..2 {
            let line = volume.bucket(place, which, buckets);
            // All eight at once, since a branch for each slot would be mispredicted in most look-ups.
            let mut matches = Slot::hints(line, place.fingerprint);
            while matches != 0 {
                let slot = &line[matches.trailing_zeros() as usize & 7];
                matches &= matches - 1;
                let seen = Slot(slot.load(Acquire));
                if !seen.may_hold(place) {
                    continue 'again;
                }
                let Some(spot) = locate_beside(volume, place.stripe, seen.position(), buckets) else { continue };
                if is_paging {
                    paging::begin(volume, spot);
                }
                // The pin below first drains the CPU's stores, which takes as long as fetching the record.
                volume.region.prefetch(spot.0);
                volume.region.prefetch(spot.0 + 64);
                seam::before_pin();
                let claim = Volume::pin_word(place.stripe, seen.position());
                let same = |now, then| Slot(now).same_record(Slot(then));
                if !protocol::pin(slot, seen.0, pin, claim, same) {
                    continue 'again;
                }
                if !volume.has_still(place.stripe, buckets) {
                    protocol::unpin(pin);
                    continue 'again;
                }
                if let Some(Checked { record, lengths, flags, .. }) = check(volume, place, key, seen, spot) {
                    let Some(phase) = phase_of_pinned(volume, record, slot, seen) else {
                        protocol::unpin(pin);
                        continue 'again;
                    };
                    if wanted.takes(phase, flags) {
                        if is_paging {
                            paging::finish(volume, record, lengths);
                        }
                        return Some(Pinned { volume, record, lengths, phase, pin, slot, seen });
                    }
                }
                protocol::unpin(pin);
            }
        }
        if volume.has_still(place.stripe, buckets) {
            return None;
        }
    }
}

/// A pinned record that is the entry looked for, and that lies completely in its ring.
struct Checked<'a> {
    record: Record<'a>,
    lengths: Lengths,
    generation: u16,
    flags: Flags,
}

/// The pinned record, if it is the entry of `key` and can be trusted. It lies at `offset`, with `room` bytes to the end
/// of its ring.
#[inline]
fn check<'a>(volume: &'a Volume, place: &Place, key: &[u8], seen: Slot, spot: (usize, u64)) -> Option<Checked<'a>> {
    let found = entry_of(volume, key, seen, spot)?;
    if !volume.trusts(found.generation)
        // SAFETY: the record is pinned.
        && !unsafe { verify_entry(volume, place, seen.position(), found.record, found.lengths) }
    {
        if volume.options.verify_hits {
            drop_damaged(volume, place, seen);
        }
        return None;
    }
    Some(found)
}

/// The pinned record at `offset`, if it is the entry of `key`. An entry of an earlier attachment may be damaged.
#[inline(always)]
#[expect(clippy::inline_always, reason = "otherwise its result goes through memory in pieces")]
fn entry_of<'a>(volume: &'a Volume, key: &[u8], seen: Slot, (offset, room): (usize, u64)) -> Option<Checked<'a>> {
    // SAFETY: `locate` has checked that a header fits there.
    let record = unsafe { Record::at_checked(&volume.region, offset) };
    let flags = record.flags_of_lap(seen.lap())?;
    let (lengths, generation) = record.lengths_and_generation();
    if lengths.key != key.len() as u64 || !lengths.fit_into(room) {
        return None;
    }
    // SAFETY: the record is pinned, and its key lies before its ring's end.
    let found = unsafe { std::slice::from_raw_parts(volume.region.address(record.body()), key.len()) };
    (found == key).then_some(Checked { record, lengths, generation, flags })
}

/// The phase of a pinned entry. `None` if a purge may have been forgotten between the looks at the slot and at the
/// notes. In that case the sweep had dropped the entry, or made it stale, before.
#[inline]
fn phase_of_pinned(volume: &Volume, record: Record<'_>, slot: &AtomicU64, seen: Slot) -> Option<Phase> {
    let is_current = u64::from(record.epoch()) == volume.purges().epoch();
    // SAFETY: the record is pinned, and `check` has found that it ends before its ring does.
    let verdict = if is_current { Verdict::Untouched } else { unsafe { purge_verdict(volume, record) } };
    let is_well_judged = is_current || Slot(slot.load(Acquire)).same_record(seen);
    is_well_judged.then(|| phase(volume, verdict, record.times(), || record.created_ms()))
}

/// The phase of an entry, including the effect of purges.
#[inline]
fn phase(volume: &Volume, verdict: Verdict, times: Times, created: impl FnOnce() -> u64) -> Phase {
    if verdict == Verdict::Untouched && times.is_ever() {
        return Phase::Fresh;
    }
    let times = if verdict == Verdict::Soft { times.staled() } else { times };
    if verdict == Verdict::Hard { Phase::Over } else { times.phase(created(), || volume.now_ms()) }
}

/// Does the same for a copy. `None` if purges were forgotten since `retired` was loaded, before the copy's slot. The
/// sweep may then have changed the entry after it was copied.
fn phase_of_copy(volume: &Volume, copied: &Copied, retired: u64) -> Option<Phase> {
    let Copied { header, body } = copied;
    let (key, rest) = body.split_at(header.lengths.key as usize);
    let metadata = &rest[..header.lengths.metadata as usize];
    let current = u64::from(header.epoch) == volume.purges().epoch();
    let verdict = if current {
        Verdict::Untouched
    } else {
        purge::judge(volume, &Subject { epoch: header.epoch, flags: header.flags, key, metadata })
    };
    (volume.purges().retired() == retired).then(|| phase(volume, verdict, header.times, || header.created_ms))
}

/// A hit as a heap copy, made under the thread's transient pin.
#[cold]
fn get_copy<'a>(
    volume: &'a Volume,
    thread: Thread<'a>,
    place: &Place,
    key: &[u8],
    usage: Use,
    wanted: Wanted,
) -> Option<Hit<'a>> {
    if thread.is_nth(Counter::Copies, LOOKS_EVERY) && must_copy(volume, place.stripe) {
        judge_pinned_again(volume, place.stripe);
    }
    let found = find(volume, place, key, wanted, thread.transient_pin());
    count(thread, place.hash, usage, found.as_ref());
    let found = found?;
    if usage == Use::Counts {
        thread.count(Counter::Copies);
    }
    let copied = copy(volume, found.record, found.lengths);
    protocol::unpin(found.pin);
    Some(Hit::copied(volume, copied, found.phase))
}

fn copy(volume: &Volume, record: Record<'_>, lengths: Lengths) -> Copied {
    let bytes = (lengths.key + lengths.metadata + lengths.value) as usize;
    let mut body = vec![0; bytes].into_boxed_slice();
    let from = volume.region.pointer(record.body(), bytes);
    // SAFETY: the source lies inside the region. Without a pin it may change during the copy; the copied bytes are
    // only used after the slot and the checksum have been checked.
    unsafe { std::ptr::copy_nonoverlapping(from, body.as_mut_ptr(), bytes) };
    Copied { header: Header { lengths, ..record.header() }, body }
}

/// For processes that can't pin: makes a copy, then checks the slot again and the copy's checksum.
#[cold]
fn get_unpinned<'a>(volume: &'a Volume, place: &Place, key: &[u8], wanted: Wanted) -> Result<Option<Hit<'a>>> {
    let start = std::time::Instant::now();
    for attempt in 0..COPY_TRIES {
        match try_unpinned(volume, place, key, wanted) {
            Attempt::Hit(copied, phase) => return Ok(Some(Hit::copied(volume, copied, phase))),
            Attempt::Miss => return Ok(None),
            Attempt::Changed if attempt % 8 == 7 => std::thread::yield_now(),
            Attempt::Changed => {}
        }
    }
    Err(Error::Busy { what: "an entry that writers keep changing", waited: start.elapsed() })
}

enum Attempt {
    Hit(Copied, Phase),
    Miss,
    Changed,
}

fn try_unpinned(volume: &Volume, place: &Place, key: &[u8], wanted: Wanted) -> Attempt {
    let retired = volume.purges().retired();
    let buckets = volume.buckets(place.stripe);
    for which in 0..2 {
        for slot in volume.bucket(place, which, buckets) {
            let seen = Slot(slot.load(Acquire));
            if !seen.may_hold(place) {
                continue;
            }
            let copied = copy_unpinned(volume, place.stripe, seen);
            std::sync::atomic::fence(SeqCst);
            if !is_still_named(volume, place, seen, slot, buckets) {
                return Attempt::Changed;
            }
            let Some(copied) = copied.filter(|copied| is_genuine(volume, place, seen, copied)) else { continue };
            if copied.body.get(..copied.header.lengths.key as usize) == Some(key) {
                let Some(phase) = phase_of_copy(volume, &copied, retired) else { return Attempt::Changed };
                if wanted.takes(phase, copied.header.flags) {
                    return Attempt::Hit(copied, phase);
                }
            }
        }
    }
    if volume.has_still(place.stripe, buckets) { Attempt::Miss } else { Attempt::Changed }
}

/// Whether the key's slot still names the same record, so that nobody else used its bytes in between. That may be the
/// slot that was seen, or the one that a step has put in its place.
fn is_still_named(volume: &Volume, place: &Place, seen: Slot, slot: &AtomicU64, buckets: Buckets) -> bool {
    let is_it = |slot: &AtomicU64| Slot(slot.load(SeqCst)).same_record(seen);
    if is_it(slot) && volume.has_still(place.stripe, buckets) {
        return true;
    }
    for _ in 0..COPY_TRIES {
        let buckets = volume.buckets(place.stripe);
        let is_there = (0..2).any(|which| volume.bucket(place, which, buckets).iter().any(is_it));
        if volume.has_still(place.stripe, buckets) {
            return is_there;
        }
    }
    false
}

/// A copy of what a slot names. It is torn if the slot has changed meanwhile.
pub(crate) fn copy_unpinned(volume: &Volume, stripe: usize, seen: Slot) -> Option<Copied> {
    let (record, lengths, _) = entry_at(volume, stripe, seen.position())?;
    // A torn header might ask for gigabytes.
    if lengths.record_bytes() > volume.layout.entry_bytes_max {
        return None;
    }
    Some(copy(volume, record, lengths))
}

/// Whether a copy is complete, and this volume wrote its entry at that position.
pub(crate) fn is_genuine(volume: &Volume, place: &Place, seen: Slot, copied: &Copied) -> bool {
    let header = &copied.header;
    let mac = crate::stripe::expected_mac(volume, place.stripe, seen.position(), place.hash, header);
    mac == header.mac && checksum(&copied.body) == header.checksum && header.flags.lap() == seen.lap()
}

/// A slot, given by its bucket. It exists as long as the bucket does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SlotAt {
    pub(crate) stripe: usize,
    pub(crate) bucket: u64,
    pub(crate) number: usize,
}

impl SlotAt {
    /// The slot and the present buckets; `None` if its bucket was merged.
    pub(crate) fn load<'a>(&self, volume: &'a Volume) -> Option<(&'a AtomicU64, Buckets)> {
        let buckets = volume.buckets(self.stripe);
        let slot = (self.bucket < buckets.count()).then(|| &volume.bucket_line(self.stripe, self.bucket)[self.number]);
        slot.map(|slot| (slot, buckets))
    }
}

/// The valid entry that a slot names, whatever its key is.
pub(crate) fn hit_of_slot(volume: &Volume, at: SlotAt, wanted: Wanted) -> Option<Hit<'_>> {
    let stripe = at.stripe;
    let pin = Thread::current(volume).and_then(Thread::free_pin).filter(|_| !must_copy(volume, stripe));
    let Some(pin) = pin else { return copy_of_slot(volume, at, wanted) };
    loop {
        let (slot, buckets) = at.load(volume)?;
        let seen = Slot(slot.load(Acquire));
        if !seen.is_live() {
            return None;
        }
        let claim = Volume::pin_word(stripe, seen.position());
        if !protocol::pin(slot, seen.0, pin, claim, |now, then| Slot(now).same_record(Slot(then))) {
            continue;
        }
        if !volume.has_still(stripe, buckets) {
            protocol::unpin(pin);
            continue;
        }
        let found = entry_at(volume, stripe, seen.position()).and_then(|(record, _, _)| {
            let spot = locate(volume, stripe, seen.position())?;
            // SAFETY: the record is pinned.
            let key = unsafe { record.key() };
            let place = volume.place(key);
            (place.stripe == stripe && seen.may_hold(&place)).then(|| check(volume, &place, key, seen, spot))?
        });
        let found = found.map(|found: Checked<'_>| (phase_of_pinned(volume, found.record, slot, seen), found));
        match found {
            Some((Some(phase), Checked { record, lengths, flags, .. })) if wanted.takes(phase, flags) => {
                // SAFETY: the claim is validated and belongs to this hit alone; the lengths were checked.
                return Some(unsafe { Hit::pinned(volume, record, lengths, phase, pin) });
            }
            Some((None, _)) => protocol::unpin(pin),
            _ => {
                protocol::unpin(pin);
                return None;
            }
        }
    }
}

fn copy_of_slot(volume: &Volume, at: SlotAt, wanted: Wanted) -> Option<Hit<'_>> {
    let stripe = at.stripe;
    for _ in 0..COPY_TRIES {
        let retired = volume.purges().retired();
        let (slot, buckets) = at.load(volume)?;
        let seen = Slot(slot.load(Acquire));
        if !seen.is_live() {
            return None;
        }
        let copied = copy_unpinned(volume, stripe, seen);
        std::sync::atomic::fence(SeqCst);
        let place = copied.as_ref().and_then(|copied| {
            Some(volume.place(copied.body.get(..copied.header.lengths.key as usize)?)).filter(|it| it.stripe == stripe)
        });
        let is_still = match &place {
            Some(place) => is_still_named(volume, place, seen, slot, buckets),
            None => Slot(slot.load(SeqCst)).same_record(seen) && volume.has_still(stripe, buckets),
        };
        if !is_still {
            continue;
        }
        let (copied, place) = (copied?, place?);
        if !is_genuine(volume, &place, seen, &copied) {
            return None;
        }
        let Some(phase) = phase_of_copy(volume, &copied, retired) else { continue };
        return wanted.takes(phase, copied.header.flags).then(|| Hit::copied(volume, copied, phase));
    }
    None
}
