//! Changes of existing entries: removing, counting, touching.

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

/// Removes the entry of `key` if `condition` holds. Returns whether there was a valid one, or `None` if the condition
/// didn't hold.
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

/// Removes every entry. Returns how many there were, including expired ones.
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

/// Adds to a counter and returns the new sum.
///
/// Reads the counter, adds, and stores the sum if the counter is unchanged. If the loop repeats, somebody else's
/// addition was made.
pub(crate) fn increment(volume: &Volume, key: &[u8], by: i64, counter: &Counter<'_>) -> Result<i64> {
    volume.check_writable()?;
    loop {
        let epoch = volume.purges().epoch() as u32;
        let hit = read::get(volume, key, Use::Counts, Wanted::Fresh)?;
        let seen = hit.as_ref().map_or(Condition::Absent, |hit| Condition::Serial(hit.serial()));
        // A rewritten entry gets a new checksum, so a damaged counter starts again.
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

/// Changes times and metadata of the usable entry of `key`. Returns false if there is none that the touch covers.
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
        // A rewritten entry gets a new checksum, so a damaged one must not be rewritten.
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

/// Changes the times of a live entry in place. They are one word, and may only become later: a copy of the entry in a
/// tier then ends too early at worst.
fn touch_in_place(volume: &Volume, key: &[u8], touch: &Touch<'_>) -> Result<InPlace> {
    let place = volume.place(key);
    let stripe = Stripe::lock(volume, place.stripe)?;
    // Loaded before the entry is judged: any later purge covers the entry, however it is touched.
    let epoch = volume.purges().epoch() as u32;
    // Purges since the touch began are applied when the entry is rewritten.
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
    // The times first: a reader between the two stores finds what the purge has left of the entry.
    record.set_times(times);
    record.set_epoch(epoch);
    Ok(InPlace::Done)
}

/// Times of an entry count from its creation; those of a touch count from now.
fn new_times(volume: &Volume, touch: &Touch<'_>, created_ms: u64, old: Times) -> Times {
    match touch.times {
        None => old,
        Some((ttl, stale)) => Times::new(ttl, stale).later(volume.now_ms().saturating_sub(created_ms)),
    }
}
