//! Making copies. A process copies an entry of the volume that it hits often. It waits for nothing: what can't be
//! done at once is left to the next hit.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use eyewall_region::clock;

use super::{SLOTS, Tier, file};
use crate::format::hash::Place;
use crate::format::origin::{ORIGIN_BYTES, Origin};
use crate::format::record::{Lengths, METADATA_BYTES_MAX};
use crate::format::times::Phase;
use crate::purge::{self, Subject, Verdict};
use crate::read::Pinned;
use crate::stripe::{Found, RingId, Stripe};
use crate::volume::Volume;
use crate::write::{self, Draft};

/// An entry is copied once its [`crate::format::slot::Slot::frequency`] reaches this.
const FREQUENCY_MIN: u64 = 2;
/// If less than this fraction of a stripe's main ring is free, a new copy evicts others.
const ROOMY: u64 = 8;
/// In that case only one copy in this many is made. An entry that is hit often is offered again soon; the others
/// would only be copied in and out.
const MADE_OF_OFFERED: u64 = 4;
/// The process that holds a busy lock is probed at most this often.
const PROBE_EVERY_MS: u64 = 10;

impl Tier {
    /// Copies an entry that was just hit, if it is worth it. `renews`: the tier has a copy of it that is void.
    #[inline]
    pub(super) fn consider(&self, volume: &Volume, place: &Place, found: &Pinned<'_>, renews: bool) {
        // The frequency in `seen` doesn't include the present hit.
        let often = found.seen.frequency() + 1 >= FREQUENCY_MIN && found.phase == Phase::Fresh;
        if often && (renews || self.may_evict(self.place(place).stripe)) {
            self.fill(volume, place, found);
        }
    }

    /// Whether a new copy may evict others.
    fn may_evict(&self, stripe: usize) -> bool {
        let main = Stripe::unlocked(&self.volume, stripe).ring(RingId::Main);
        main.free() > main.size / ROOMY || self.offers.fetch_add(1, Relaxed).is_multiple_of(MADE_OF_OFFERED)
    }

    #[cold]
    fn fill(&self, volume: &Volume, place: &Place, found: &Pinned<'_>) {
        let [key, metadata, value] = found.parts();
        let lengths = Lengths { key: key.len() as u64, metadata: metadata.len() as u64, value: value.len() as u64 };
        let fits = lengths.record_bytes() + ORIGIN_BYTES as u64 <= self.volume.layout.entry_bytes_max
            && metadata.len() + ORIGIN_BYTES <= METADATA_BYTES_MAX;
        self.look_at_memory();
        if !fits || self.pressure.is_pressed() {
            return;
        }
        let own = self.place(place);
        let Some(stripe) = Stripe::try_lock(&self.volume, own.stripe, self.may_probe()) else { return };
        // Checked under the lock: a lost lock word reads as free, and if somebody resized the tier, its pages are
        // gone.
        if !self.is_usable() || !self.has_pages(&stripe) {
            return;
        }
        let Some(origin) = origin_of(volume, place, found) else { return };
        let header = found.record.header();
        // The copy gets a checksum of its own, which must not make damaged bytes valid.
        if !found.is_whole(&header) {
            return;
        }
        // If several readers hit one entry, only one copies it. After a touch, the copy has other times and is
        // replaced.
        let is_same = |copy: Found<'_>| copy.origin() == Some(origin) && copy.record.times() == header.times;
        if stripe.find(&own, key).is_some_and(is_same) {
            return;
        }
        let draft = Draft::copy_of(&self.volume, &header, [key, metadata, value], &origin);
        // If readers hold too much of the tier, the put is refused, and there is no copy.
        let _ = write::put_locked(stripe, &own, &draft);
    }

    /// Whether a stripe may be written. A stripe that lacks pages gets some more if there is memory.
    fn has_pages(&self, stripe: &Stripe<'_>) -> bool {
        // A stripe that is giving its pages back would start with new ones, and forget the rest of the old ones.
        if stripe.is_leaving() {
            return false;
        }
        let missing = stripe.missing();
        if missing == 0 {
            return true;
        }
        if !self.pressure.has_room(missing) {
            return false;
        }
        // If this step failed or wasn't the last one, the next hit continues.
        stripe.grow().map_or_else(|_| self.pressure.ran_out(), |bytes| self.pressure.took(bytes));
        stripe.missing() == 0
    }

    /// Checks the memory if it is time to. Gives some back if needed, or continues to give back a stripe.
    pub(super) fn look_at_memory(&self) {
        if self.pressure.demands_pages() {
            self.give_way(false);
        } else if self.leaves.load(Relaxed) {
            self.give_way(true);
        }
    }

    /// Gives pages of one stripe back, with their content. Takes a stripe where that was begun; otherwise the
    /// largest, or the next one if readers hold bytes in it. A large stripe takes several calls. `begins_none`: only
    /// continue with a stripe that was begun.
    #[cold]
    fn give_way(&self, begins_none: bool) {
        let stripes = (0..self.volume.layout.stripes as usize).map(|number| Stripe::unlocked(&self.volume, number));
        let mut present: Vec<(bool, u64, usize)> = stripes
            .filter(|stripe| stripe.is_leaving() || (stripe.has_pages() && !begins_none))
            .map(|stripe| (stripe.is_leaving(), stripe.present(), stripe.number))
            .collect();
        present.sort_unstable();
        let was_begun = present.last().is_some_and(|(is_leaving, ..)| *is_leaving);
        let step = |(.., number): (bool, u64, usize)| {
            let mut stripe = Stripe::try_lock(&self.volume, number, self.may_probe())?;
            stripe.give_back().ok()
        };
        let was_last = present.into_iter().rev().find_map(step);
        self.leaves.store(was_last.map_or(was_begun, |last| !last), Relaxed);
    }

    /// Gives back all pages that nobody holds, and the name of the file, because the volume has another tier now.
    pub(super) fn retire(&self) {
        file::retire(&self.volume);
        for number in 0..self.volume.layout.stripes as usize {
            if let Some(mut stripe) = Stripe::try_lock(&self.volume, number, true) {
                let _ = stripe.give_all_back();
            }
        }
    }

    fn may_probe(&self) -> bool {
        let (now, probed) = (clock::since_boot_ms(), self.probed_ms.load(Relaxed));
        let due = now.abs_diff(probed) >= PROBE_EVERY_MS;
        due && self.probed_ms.compare_exchange(probed, now, Relaxed, Relaxed).is_ok()
    }
}

/// The origin of a copy of this pinned entry, or `None` if a purge covers the entry by now.
///
/// Loads the retired epoch first. A purge that is forgotten later makes the copy void. One that was forgotten before
/// has already changed the entry, whose header is read after this load.
fn origin_of(volume: &Volume, place: &Place, found: &Pinned<'_>) -> Option<Origin> {
    let retired = volume.purges().retired() as u32;
    let epoch = found.record.epoch();
    if u64::from(epoch) != volume.purges().epoch() {
        let [key, metadata, _] = found.parts();
        let subject = Subject { epoch, flags: found.record.flags(), key, metadata };
        if purge::judge(volume, &subject) != Verdict::Untouched {
            return None;
        }
    }
    let position = found.seen.position();
    let ring = Stripe::unlocked(volume, place.stripe).ring(RingId::of(volume, position));
    Some(Origin {
        slot: found.seen.with_frequency(0),
        offset: ring.offset(position),
        epoch,
        retired,
        at: slot_number(volume, place, found.slot)?,
    })
}

fn slot_number(volume: &Volume, place: &Place, slot: &AtomicU64) -> Option<u8> {
    let buckets = volume.buckets(place.stripe);
    let slots = (0..2).flat_map(|which| volume.bucket(place, which, buckets));
    slots.zip(0..2 * SLOTS).find(|(other, _)| std::ptr::eq(*other, slot)).map(|(_, number)| number)
}
