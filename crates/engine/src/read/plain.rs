//! The fast path of a get: without a loop, and without anything that most look-ups don't need.
//!
//! It takes the same steps as [`super::find`], in the same order. Where something is unusual (a slot has changed, a
//! fingerprint belongs to another key, the entry isn't fresh), it releases the pin, and the general way starts again.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Acquire;

use super::{Checked, Pinned, Use, Wanted, count_hit, count_miss, entry_of, get_watched, phase_of_pinned, raise};
use crate::error::Result;
use crate::format::hash;
use crate::format::record::{Flags, Record};
use crate::format::slot::Slot;
use crate::format::times::Phase;
use crate::hit::Hit;
use crate::paging;
use crate::protocol;
use crate::seam;
use crate::stripe::{locate_beside, wants_copies};
use crate::thread::{Counter, Thread};
use crate::volume::Volume;
use crate::write::check_key;

/// What the fast path has found.
enum Short<'a> {
    Hit(Thread<'a>, Pinned<'a>),
    /// With the hash of the key.
    Miss(Thread<'a>, u64),
    /// The general way must look.
    Unusual,
}

/// Looks up `key` for the caller of a cache: a plain hit or miss of a volume that is in its place and in order.
/// `otherwise` does everything else. The hit is built where the caller wants it, since moving one costs as much as a
/// warm look-up.
#[inline]
pub(crate) fn get_plain<'a>(
    volume: &'a Volume,
    key: &[u8],
    usage: Use,
    otherwise: impl FnOnce() -> Result<Option<Hit<'a>>>,
) -> Result<Option<Hit<'a>>> {
    match find(volume, key) {
        Short::Hit(thread, found) => {
            count_hit(thread, usage, &found);
            Ok(Some(found.into_hit()))
        }
        Short::Miss(thread, hash) => {
            count_miss(thread, hash, usage);
            Ok(None)
        }
        Short::Unusual => otherwise(),
    }
}

/// Like [`get_plain`], for a valid value that `takes` accepts. Any other outcome leaves no trace.
pub(crate) fn get_plain_if<'a>(
    volume: &'a Volume,
    key: &[u8],
    takes: impl Fn(&Hit<'a>) -> bool,
    otherwise: impl FnOnce() -> Result<Option<Hit<'a>>>,
) -> Result<Option<Hit<'a>>> {
    match find(volume, key) {
        Short::Hit(thread, found) => {
            let (slot, seen) = (found.slot, found.seen);
            let hit = found.into_hit();
            if !takes(&hit) {
                return Ok(None);
            }
            thread.count(Counter::Hits);
            raise(slot, seen);
            Ok(Some(hit))
        }
        Short::Miss(..) => Ok(None),
        Short::Unusual => get_unusual_if(volume, key, takes, otherwise),
    }
}

/// The same by the general way, for a volume that is in its place and in order.
#[inline(never)]
fn get_unusual_if<'a>(
    volume: &'a Volume,
    key: &[u8],
    takes: impl Fn(&Hit<'a>) -> bool,
    otherwise: impl FnOnce() -> Result<Option<Hit<'a>>>,
) -> Result<Option<Hit<'a>>> {
    let mut used = None;
    let watch = |found: &Pinned<'a>| used = Some((found.slot, found.seen));
    let Some(thread) = Thread::current(volume) else { return otherwise() };
    let place = volume.place(key);
    let found = get_watched(volume, &place, key, Use::Peeks, Wanted::Fresh, watch)?;
    if !is_in_place(volume) || (found.is_none() && check_key(volume, key).is_err()) {
        return otherwise();
    }
    let Some(hit) = found.filter(takes) else { return Ok(None) };
    thread.count(Counter::Hits);
    if let Some((slot, seen)) = used {
        raise(slot, seen);
    }
    Ok(Some(hit))
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "otherwise its result goes through memory in pieces")]
fn find<'a>(volume: &'a Volume, key: &[u8]) -> Short<'a> {
    let Some(thread) = Thread::latest(volume) else { return Short::Unusual };
    let hash = hash::key_hash(&volume.secret, key);
    let stripe = hash::stripe(&volume.layout, hash);
    if wants_copies(volume, stripe) || paging::is_paging(volume) {
        return Short::Unusual;
    }
    let Some(pin) = thread.first_pin() else { return Short::Unusual };
    let buckets = volume.buckets(stripe);
    let fingerprint = hash::fingerprint(hash);
    let mut which = 0;
    let slot = loop {
        let line = volume.bucket_line(stripe, buckets.of(hash::pick(hash, which)));
        let matches = Slot::hints(line, fingerprint);
        if matches != 0 {
            break &line[matches.trailing_zeros() as usize & 7];
        }
        which += 1;
        if which == 2 {
            let is_plain = volume.has_still(stripe, buckets) && is_in_place(volume) && check_key(volume, key).is_ok();
            return if is_plain { Short::Miss(thread, hash) } else { Short::Unusual };
        }
    };
    let seen = Slot(slot.load(Acquire));
    if !seen.has_name_of(fingerprint) {
        return Short::Unusual;
    }
    let Some(spot) = locate_beside(volume, stripe, seen.position(), buckets) else { return Short::Unusual };
    // The pin below first drains the CPU's stores, which takes as long as fetching the record.
    volume.region.prefetch(spot.0);
    volume.region.prefetch(spot.0 + 64);
    seam::before_pin();
    let claim = Volume::pin_word(stripe, seen.position());
    if !protocol::pin(slot, seen.0, pin, claim, |now, then| Slot(now).same_record(Slot(then))) {
        return Short::Unusual;
    }
    if volume.has_still(stripe, buckets)
        && let Some(found) = fresh_entry(volume, key, slot, seen, pin, spot)
        && is_in_place(volume)
    {
        return Short::Hit(thread, found);
    }
    protocol::unpin(pin);
    Short::Unusual
}

/// The pinned record, if it is the fresh entry of `key`.
#[inline(always)]
#[expect(clippy::inline_always, reason = "as for `find`")]
fn fresh_entry<'a>(
    volume: &'a Volume,
    key: &[u8],
    slot: &'a AtomicU64,
    seen: Slot,
    pin: &'a AtomicU64,
    spot: (usize, u64),
) -> Option<Pinned<'a>> {
    let Checked { record, lengths, generation, flags } = entry_of(volume, key, seen, spot)?;
    if !volume.trusts(generation) || flags.has(Flags::NEGATIVE) {
        return None;
    }
    let is_fresh = u64::from(record.epoch()) == volume.purges().epoch() && record.times().is_ever();
    let found = Pinned { volume, record, lengths, phase: Phase::Fresh, pin, slot, seen };
    (is_fresh || is_judged_fresh(volume, record, slot, seen)).then_some(found)
}

/// Whether purges and time leave a pinned entry fresh.
#[inline(never)]
fn is_judged_fresh(volume: &Volume, record: Record<'_>, slot: &AtomicU64, seen: Slot) -> bool {
    phase_of_pinned(volume, record, slot, seen) == Some(Phase::Fresh)
}

/// Whether the volume has not been replaced, and has lost no bytes. Asked after the look-up: the entry may have been
/// lost, or belong to a volume that was replaced meanwhile.
#[inline(always)]
#[expect(clippy::inline_always, reason = "as for `find`")]
fn is_in_place(volume: &Volume) -> bool {
    volume.purges().moved() == 0 && !volume.has_failed()
}
