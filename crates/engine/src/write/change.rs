//! Changes of what is there: removing, counting, prolonging.

use super::{Condition, Draft, Outcome, allows, check_key, is_value, phase, put};
use crate::claim;
use crate::error::{Error, Result};
use crate::format::record::Flags;
use crate::format::times::{Phase, Times};
use crate::hit::Hit;
use crate::put::{Counter, PutOptions, Touch};
use crate::read::{self, Use, Wanted};
use crate::stripe::{Count, Stripe};
use crate::volume::Volume;

/// Drops the entry of `key` if `condition` holds. True: there was a valid one; `None`: the condition didn't hold.
pub(crate) fn remove(volume: &Volume, key: &[u8], condition: Condition) -> Result<Option<bool>> {
    check_key(volume, key)?;
    volume.check_writable()?;
    volume.mark_unclean()?;
    let place = volume.place(key);
    let stripe = Stripe::lock(volume, place.stripe)?;
    if !allows(&stripe, condition, stripe.find(&place, key).as_ref()) {
        return Ok(None);
    }
    let mut was_there = false;
    while let Some(found) = stripe.find(&place, key) {
        was_there |= is_value(volume, &found);
        stripe.unlink(&found);
    }
    if !matches!(condition, Condition::Claimed(_)) {
        claim::void(&stripe, Some(place.hash));
    }
    if was_there {
        stripe.tally(Count::Removes, 1);
    }
    Ok(Some(was_there))
}

/// Drops every entry. Returns how many there were, expired ones included.
pub(crate) fn clear(volume: &Volume) -> Result<u64> {
    volume.check_writable()?;
    volume.mark_unclean()?;
    let mut dropped = 0;
    for number in 0..volume.layout.stripes as usize {
        let stripe = Stripe::lock(volume, number)?;
        let count = stripe.unlink_all(|_| true);
        claim::void(&stripe, None);
        stripe.tally(Count::Removes, count);
        dropped += count;
    }
    Ok(dropped)
}

/// Adds to a counter; returns what it is then.
///
/// Reads, adds, and stores if nobody else has meanwhile: another turn means that somebody else's addition was made.
pub(crate) fn increment(volume: &Volume, key: &[u8], by: i64, counter: &Counter<'_>) -> Result<i64> {
    volume.check_writable()?;
    loop {
        let epoch = volume.purges().epoch() as u32;
        let hit = read::get(volume, key, Use::Counts, Wanted::Fresh)?;
        let seen = hit.as_ref().map_or(Condition::Absent, |hit| Condition::Serial(hit.serial()));
        // What is stored anew gets a checksum of its own: a damaged counter begins anew.
        let Some(hit) = hit.filter(Hit::is_whole) else {
            let value = counter.sum(counter.start, by);
            let bytes = value.to_le_bytes();
            let draft = Draft::new(volume, key, &bytes, &counter.options)?.begun_in(epoch);
            match put(volume, &draft, seen)? {
                Outcome::Stored(_) | Outcome::Superseded(_) => return Ok(value),
                Outcome::Unmet => continue,
            }
        };
        let Ok(bytes) = <[u8; 8]>::try_from(hit.value()) else {
            return Err(Error::NotACounter { bytes: hit.value().len() });
        };
        let value = counter.sum(i64::from_le_bytes(bytes), by);
        let bytes = value.to_le_bytes();
        let tags: Vec<&str> = hit.tags().collect();
        let options = PutOptions::new().metadata(hit.metadata()).tags(&tags);
        let header = hit.header();
        let draft =
            Draft::new(volume, key, &bytes, &options)?.begun_in(epoch).with_age(header.created_ms, header.times);
        if put(volume, &draft, seen)? != Outcome::Unmet {
            return Ok(value);
        }
    }
}

/// Changes times and metadata of the usable entry of `key`; false: there is none that the touch means.
pub(crate) fn touch(volume: &Volume, key: &[u8], touch: &Touch<'_>) -> Result<bool> {
    check_key(volume, key)?;
    volume.check_writable()?;
    volume.mark_unclean()?;
    loop {
        if touch.metadata.is_none() {
            match touch_in_place(volume, key, touch)? {
                InPlace::Done => return Ok(true),
                InPlace::Absent => return Ok(false),
                InPlace::Refused => {}
            }
        }
        let epoch = volume.purges().epoch() as u32;
        let hit = read::get(volume, key, Use::Peeks, Wanted::Any)?.filter(|hit| touch.means(hit.serial()));
        // What is stored anew gets a checksum of its own.
        let Some(hit) = hit.filter(Hit::is_whole) else { return Ok(false) };
        let header = hit.header();
        let tags: Vec<&str> = hit.tags().collect();
        let metadata = touch.metadata.unwrap_or(hit.metadata());
        let options = PutOptions { begun: touch.begun, ..PutOptions::new().metadata(metadata).tags(&tags) };
        let times = new_times(volume, touch, header.created_ms, header.times);
        let mut draft =
            Draft::new(volume, key, hit.value(), &options)?.begun_in(epoch).with_age(header.created_ms, times);
        if header.flags.has(Flags::NEGATIVE) {
            draft = draft.negative();
        }
        if put(volume, &draft, Condition::Serial(hit.serial()))? != Outcome::Unmet {
            return Ok(true);
        }
    }
}

enum InPlace {
    Done,
    Absent,
    Refused,
}

/// The times of a live entry are one word, and change in place; but only to later ones. A copy of the entry elsewhere (a
/// tier) then ends too early at worst.
fn touch_in_place(volume: &Volume, key: &[u8], touch: &Touch<'_>) -> Result<InPlace> {
    let place = volume.place(key);
    let stripe = Stripe::lock(volume, place.stripe)?;
    // Before it is judged: what is purged from here on means the entry, however it is touched.
    let epoch = volume.purges().epoch() as u32;
    // What came since is looked at as the entry is stored anew.
    if touch.begun.is_some_and(|begun| begun.of(volume) != epoch) {
        return Ok(InPlace::Refused);
    }
    let found =
        stripe.find(&place, key).filter(|found| phase(volume, found) != Phase::Over && touch.means(found.serial));
    let Some(found) = found else { return Ok(InPlace::Absent) };
    let record = found.record;
    let times = new_times(volume, touch, record.created_ms(), record.times());
    if !times.outlasts(record.times()) {
        return Ok(InPlace::Refused);
    }
    // The times first: a reader in between finds what the purge has left of it.
    record.set_times(times);
    record.set_epoch(epoch);
    Ok(InPlace::Done)
}

/// An entry's times count from its creation; those of a touch count from now.
fn new_times(volume: &Volume, touch: &Touch<'_>, created_ms: u64, old: Times) -> Times {
    match touch.times {
        None => old,
        Some((ttl, stale)) => Times::new(ttl, stale).later(volume.now_ms().saturating_sub(created_ms)),
    }
}
