//! Copies the live entries of one volume into another.

use super::Resized;
use crate::error::{Error, Result};
use crate::format::purges::RESERVE;
use crate::format::record::{Flags, Record};
use crate::format::slot::Slot;
use crate::format::superblock::Attachment;
use crate::format::tags::Tags;
use crate::format::times::Phase;
use crate::purge::Verdict;
use crate::put::PutOptions;
use crate::stripe::{RingId, Stripe, purge_verdict, verify_entry};
use crate::volume::Volume;
use crate::write::{self, Condition, Draft};

/// Copies all usable entries, the coldest first. If they don't all fit, the hand of the new volume evicts cold ones
/// before the hot ones come.
pub(super) fn copy_all(old: &Volume, stripes: &[Stripe<'_>], new: &Volume) -> Result<Resized> {
    continue_epochs(old, new);
    for stripe in stripes {
        // After power loss, slots of one key may be of different ages.
        while stripe.tile_more() {}
    }
    continue_serials(stripes, new)?;
    let mut slots: Vec<(usize, Slot)> = Vec::new();
    for stripe in stripes {
        stripe.each_slot(|slot| {
            if slot.is_live() {
                slots.push((stripe.number, slot));
            }
        });
    }
    slots.sort_unstable_by_key(|(stripe, slot)| rank(&stripes[*stripe], *slot));
    let mut resized = Resized::default();
    for (stripe, slot) in slots {
        match copy(old, &stripes[stripe], slot, new) {
            Ok(true) => resized.copied += 1,
            Ok(false) => resized.dead += 1,
            Err(Error::EntryTooLarge { .. } | Error::KeyTooLong { .. }) => resized.too_large += 1,
            Err(error) => return Err(error),
        }
    }
    Ok(resized)
}

/// Cold entries before hot ones, those of small before those of main, old ones before young ones.
fn rank(stripe: &Stripe<'_>, slot: Slot) -> (u64, bool, u64) {
    let id = RingId::of(stripe.volume, slot.position());
    (slot.frequency(), id == RingId::Main, stripe.ring(id).age_rank(slot.position()))
}

/// Continues the purge epochs of the old volume. Entries begun in the present epoch can be stored in the new volume.
/// Entries begun before count as purged, since the notes aren't copied. The count of power losses goes on, too: it says which entries are older.
fn continue_epochs(old: &Volume, new: &Volume) {
    let (from, to) = (old.purges(), new.purges());
    to.set_reserved(from.epoch() + RESERVE);
    to.set_epoch(from.epoch());
    to.set_retired(from.last());
    Attachment(&new.region).set_crashes(Attachment(&old.region).crashes());
}

/// Makes all later puts get larger serials than all earlier ones, whether copied or not.
fn continue_serials(stripes: &[Stripe<'_>], new: &Volume) -> Result<()> {
    let last = stripes.iter().map(Stripe::last_serial).max().unwrap_or_default();
    for number in 0..new.layout.stripes as usize {
        Stripe::lock(new, number)?.keep_serial(last);
    }
    Ok(())
}

/// Copies the entry that a slot names. Returns false if it is dead.
fn copy(old: &Volume, stripe: &Stripe<'_>, slot: Slot, new: &Volume) -> Result<bool> {
    let Some((record, lengths, _)) = stripe.entry_at(slot.position()) else { return Ok(false) };
    // SAFETY: the entry is live, and we hold the lock, so nobody reclaims it.
    let key = unsafe { record.key() };
    let place = old.place(key);
    let sound = place.stripe == stripe.number
        && slot.may_hold(&place)
        // SAFETY: as above. Always verified, since the copy gets a checksum of its own.
        && unsafe { verify_entry(old, &place, slot.position(), record, lengths) };
    if !sound {
        return Ok(false);
    }
    // SAFETY: as above.
    let (metadata, value) = unsafe { (record.metadata(), record.value()) };
    put(old, record, key, metadata, value, slot.frequency(), new)
}

fn put(
    old: &Volume,
    record: Record<'_>,
    key: &[u8],
    metadata: &[u8],
    value: &[u8],
    frequency: u64,
    new: &Volume,
) -> Result<bool> {
    let header = record.header();
    // SAFETY: the entry is live and its stripe is locked.
    let times = match unsafe { purge_verdict(old, record) } {
        Verdict::Hard => return Ok(false),
        Verdict::Soft => header.times.staled(),
        Verdict::Untouched => header.times,
    };
    if times.phase(header.created_ms, || old.now_ms()) == Phase::Over {
        return Ok(false);
    }
    let tags = if header.flags.has(Flags::TAGGED) { Tags::read(metadata) } else { None };
    let names: Vec<&str> = tags.into_iter().flat_map(Tags::names).collect();
    let own = tags.map_or(metadata, |tags| &metadata[..tags.start]);
    // Each volume has its own time, but an age is the same in both.
    let age = old.now_ms().saturating_sub(header.created_ms);
    let mut draft = Draft::new(new, key, value, &PutOptions::new().metadata(own).tags(&names))?
        .begun_in(old.purges().epoch() as u32)
        .with_age(new.now_ms().saturating_sub(age), times)
        .with_standing(header.serial, frequency);
    if header.flags.has(Flags::NEGATIVE) {
        draft = draft.negative();
    }
    write::put(new, &draft, Condition::Always)?;
    Ok(true)
}
