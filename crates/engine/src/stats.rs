//! Numbers about a volume.

use std::path::PathBuf;

use serde::Serialize;

use crate::error::Result;
use crate::format::layout::BUCKET_SLOTS;
use crate::format::purges::PurgeCount;
use crate::format::superblock::Attachment;
use crate::stripe::{Count, RingId, Stripe, Word, count};
use crate::thread::{self, Counter, pins};
use crate::volume::Volume;

/// Numbers about a volume: sizes now, and counts since it was created, over all processes.
///
/// Taken stripe by stripe: each stripe's numbers fit together, those of different stripes may be moments
/// apart. Bytes count whole records: header, key, metadata, value and padding.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Stats {
    /// The file: the hard cap.
    pub size_bytes: u64,
    /// What entries can use: both rings of all stripes.
    pub data_bytes: u64,
    /// Superblock, tables and index.
    pub overhead_bytes: u64,
    /// Independent parts of the volume.
    pub stripes: u64,
    /// The largest entry that is accepted.
    pub entry_bytes_max: u64,
    /// Entries that can be found, expired ones included until they are evicted.
    pub entries: u64,
    /// Their records.
    pub live_bytes: u64,
    /// Neither used nor waiting to be freed.
    pub free_bytes: u64,
    /// Lost at ring ends and beside entries that were held in place, until the hand passes.
    pub filler_bytes: u64,
    /// Overwritten, removed or unpublished records, until the hand passes.
    pub dead_bytes: u64,
    /// Left by power loss, or in a copy, and not gone through yet: puts do so, and [`crate::Cache::verify`]. Until then the
    /// live, the dead and the lost among them aren't told apart, and [`Stats::entries`] is an estimate.
    pub untiled_bytes: u64,
    /// Slots of the index.
    pub index_slots: u64,
    /// Slots of live entries.
    pub index_live: u64,
    /// Slots that remember evicted entries.
    pub index_ghosts: u64,
    /// Slots that the index should have, by what the entries need; each put makes a step towards them.
    pub index_slots_wanted: u64,
    /// Steps that the index has made, of eight slots more or eight fewer.
    pub index_steps: u64,
    /// Look-ups that found a valid entry. Not counted, as misses aren't: those of read-only openers, and of threads beyond
    /// the volume's thread slots.
    pub hits: u64,
    /// Look-ups that did not.
    pub misses: u64,
    /// Hits that were given as heap copies.
    pub copies: u64,
    /// Entries stored.
    pub puts: u64,
    /// Entries removed or cleared.
    pub removes: u64,
    /// Evicted because nobody had asked for them often enough.
    pub evictions_cold: u64,
    /// Evicted after they had expired.
    pub evictions_expired: u64,
    /// Evicted because their index buckets were full: some always are, more while the index follows entries that become smaller.
    pub evictions_index: u64,
    /// Dropped because they failed their checksum, or were no entry at all: by a scrub ([`crate::Cache::scrub`]), by a look-up that verifies
    /// ([`crate::Options::verify_hits`]), by a repair, or as room was made.
    pub evictions_damaged: u64,
    /// Dropped because they were purged.
    pub evictions_purged: u64,
    /// Entries that moved from the small ring to main because they were hit.
    pub promotions: u64,
    /// Entries that main kept because they were hit.
    pub reinsertions: u64,
    /// Entries that moved from small to main because main had room.
    pub moved: u64,
    /// Records written by puts.
    pub bytes_written: u64,
    /// Records copied by the three kinds of moves above.
    pub bytes_copied: u64,
    /// Pins held now: hits, and large puts under way.
    pub pins: u64,
    /// Processes attached for writing.
    pub processes: u64,
    /// Thread slots in use.
    pub threads: u64,
    /// Stripes that were repaired after their lock's holder had died.
    pub repairs: u64,
    /// Rings that were emptied because their log was damaged.
    pub resets: u64,
    /// Puts refused because readers held too much.
    pub pinned_refusals: u64,
    /// Operations that gave up at the lock deadline.
    pub busy: u64,
    /// How old the entry was that was evicted last, in milliseconds: the largest over all stripes.
    pub eviction_age_ms: u64,
    /// Purges of tags, of prefixes and of everything.
    pub purges: u64,
    /// How often more was purged than asked for, because tables were full: of tags, of prefixes, of epochs.
    pub purge_overflows: u64,
    /// How often the volume was attached while no process was.
    pub attachments: u64,
    /// How often it was emptied at attach: because what tells its age was damaged, or because [`crate::Unclean::Clear`] was
    /// asked for and it had not been left in order.
    pub unclean_drops: u64,
    /// The tier that this process uses; `None`: none.
    pub tier: Option<TierStats>,
}

/// How much was put into a volume since it was created, over all processes ([`crate::Cache::written`]).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Written {
    /// Entries stored: [`Stats::puts`].
    pub puts: u64,
    /// Bytes of their records: [`Stats::bytes_written`].
    pub bytes: u64,
}

/// Numbers about a tier ([`crate::Options::tier`]): over all processes that have used it since it was made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TierStats {
    /// The most memory that it takes.
    pub size_bytes: u64,
    /// What its copies can use now; memory that it hasn't taken yet, or has given back, is missing.
    pub present_bytes: u64,
    /// Copies that can be found, void ones included until they are evicted.
    pub entries: u64,
    /// Their records.
    pub live_bytes: u64,
    /// Look-ups that were answered by the tier. They count among those of the volume, too.
    pub hits: u64,
    /// Look-ups that found a copy of what was overwritten, moved, removed or purged since, and were answered by the volume.
    pub voids: u64,
    /// Copies made.
    pub fills: u64,
    /// Their records.
    pub bytes_filled: u64,
    /// Copies that made way for others.
    pub evictions: u64,
    /// Pins held now.
    pub pins: u64,
    /// Processes that use it.
    pub processes: u64,
}

/// A tier that was found by [`crate::Cache::tier_in`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FoundTier {
    /// Its file.
    pub path: PathBuf,
    /// Its numbers. Where no process uses it, those that did were killed: it is left over.
    pub stats: TierStats,
}

/// Numbers about the tier `volume`.
pub(crate) fn collect_tier(volume: &Volume) -> Result<TierStats> {
    let of_volume = collect(volume)?;
    let stripes = (0..volume.layout.stripes as usize).map(|number| Stripe::unlocked(volume, number));
    Ok(TierStats {
        size_bytes: of_volume.size_bytes,
        present_bytes: stripes.map(|stripe| stripe.present()).sum(),
        entries: of_volume.entries,
        live_bytes: of_volume.live_bytes,
        hits: of_volume.hits,
        voids: of_volume.misses,
        fills: of_volume.puts,
        bytes_filled: of_volume.bytes_written,
        evictions: [of_volume.evictions_cold, of_volume.evictions_expired, of_volume.evictions_index]
            .into_iter()
            .fold(0, u64::wrapping_add),
        pins: of_volume.pins,
        processes: of_volume.processes,
    })
}

pub(crate) fn written(volume: &Volume) -> Written {
    (0..volume.layout.stripes as usize).fold(Written::default(), |sum, stripe| Written {
        puts: sum.puts.wrapping_add(count(volume, stripe, Count::Puts)),
        bytes: sum.bytes.wrapping_add(count(volume, stripe, Count::BytesWritten)),
    })
}

pub(crate) fn collect(volume: &Volume) -> Result<Stats> {
    let layout = &volume.layout;
    let mut stats = Stats {
        size_bytes: layout.size,
        stripes: layout.stripes,
        entry_bytes_max: layout.entry_bytes_max,
        attachments: Attachment(&volume.region).attachments(),
        unclean_drops: Attachment(&volume.region).unclean_drops(),
        purges: volume.purges().count(PurgeCount::Purges),
        purge_overflows: [PurgeCount::TagOverflows, PurgeCount::RuleOverflows, PurgeCount::EpochsEnded]
            .into_iter()
            .fold(0, |sum, count| sum.wrapping_add(volume.purges().count(count))),
        ..Stats::default()
    };
    if volume.check_writable().is_err() {
        stats.processes = volume.membership.count_alive(&volume.region, layout);
    } else {
        stats.processes = volume.membership.bury_all(&volume.region, layout);
    }
    for number in 0..layout.stripes as usize {
        add_stripe(&mut stats, volume, number)?;
    }
    stats.overhead_bytes = layout.size - stats.data_bytes;
    add_threads(&mut stats, volume);
    Ok(stats)
}

fn add_stripe(stats: &mut Stats, volume: &Volume, number: usize) -> Result<()> {
    // Who may not write can't lock either; the numbers may then be moments apart within a stripe, too.
    let may_lock = volume.check_writable().is_ok();
    let stripe = if may_lock { Stripe::lock(volume, number)? } else { Stripe::unlocked(volume, number) };
    if may_lock {
        stripe.recount_if_needed();
    }
    let (mut used, mut free, mut untiled) = (0, 0, 0);
    for id in RingId::BOTH {
        let ring = stripe.ring(id);
        let used_here = ring.used().min(ring.most);
        used += used_here;
        free += ring.most - used_here;
        untiled += stripe.untiled_bytes(id);
    }
    let (slots, live, ghosts) = stripe.index_load();
    let (live_bytes, filler) = (stripe.get(Word::LiveBytes), stripe.get(Word::FillerBytes));
    // A damaged file may have counted anything.
    stats.entries = stats.entries.saturating_add(if untiled > 0 { live } else { stripe.get(Word::Entries) });
    stats.live_bytes = stats.live_bytes.saturating_add(live_bytes);
    stats.filler_bytes = stats.filler_bytes.saturating_add(filler);
    stats.free_bytes = stats.free_bytes.saturating_add(free);
    stats.dead_bytes += used.saturating_sub(live_bytes.saturating_add(filler).saturating_add(untiled));
    stats.untiled_bytes += untiled;
    stats.data_bytes += used + free;
    stats.index_slots += slots;
    stats.index_slots_wanted += stripe.goal() * BUCKET_SLOTS;
    stats.index_steps += stripe.buckets().steps();
    stats.index_live += live;
    stats.index_ghosts += ghosts;
    drop(stripe);
    let counts: [(&mut u64, Count); 15] = [
        (&mut stats.puts, Count::Puts),
        (&mut stats.removes, Count::Removes),
        (&mut stats.evictions_cold, Count::EvictionsCold),
        (&mut stats.evictions_expired, Count::EvictionsExpired),
        (&mut stats.evictions_index, Count::EvictionsIndex),
        (&mut stats.evictions_damaged, Count::EvictionsDamaged),
        (&mut stats.evictions_purged, Count::EvictionsPurged),
        (&mut stats.promotions, Count::Promotions),
        (&mut stats.reinsertions, Count::Reinsertions),
        (&mut stats.moved, Count::Moved),
        (&mut stats.bytes_written, Count::BytesWritten),
        (&mut stats.bytes_copied, Count::BytesCopied),
        (&mut stats.repairs, Count::Repairs),
        (&mut stats.resets, Count::Resets),
        (&mut stats.pinned_refusals, Count::PinnedRefusals),
    ];
    for (sum, which) in counts {
        *sum = sum.wrapping_add(count(volume, number, which));
    }
    stats.eviction_age_ms = stats.eviction_age_ms.max(count(volume, number, Count::EvictionAge));
    Ok(())
}

fn add_threads(stats: &mut Stats, volume: &Volume) {
    stats.pins = pins(volume).filter(|(_, pin)| pin.load(std::sync::atomic::Ordering::Relaxed) != 0).count() as u64;
    stats.threads =
        (0..volume.layout.threads as u32).filter(|thread| thread::owner_word(volume, *thread) != 0).count() as u64;
    stats.hits = thread::sum(volume, Counter::Hits);
    stats.misses = thread::sum(volume, Counter::Misses);
    stats.copies = thread::sum(volume, Counter::Copies);
    stats.busy = thread::sum(volume, Counter::Busy);
}
