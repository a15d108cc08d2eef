//! Statistics of a volume.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::format::layout::BUCKET_SLOTS;
use crate::format::purges::PurgeCount;
use crate::format::superblock::Attachment;
use crate::stripe::{Count, RingId, Stripe, Word, count};
use crate::thread::{self, Counter, pins};
use crate::volume::Volume;

/// Statistics of a volume: its current sizes, and counts over all processes since it was created.
///
/// The numbers of one stripe are consistent with each other; those of different stripes may be taken moments apart.
/// Bytes count whole records: header, key, metadata, value and padding.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Stats {
    /// Size of the file, the hard cap.
    pub size_bytes: u64,
    /// Bytes that entries can use: both rings of all stripes.
    pub data_bytes: u64,
    /// Superblock, tables and index.
    pub overhead_bytes: u64,
    /// Number of stripes, the independent parts of the volume.
    pub stripes: u64,
    /// The largest entry that is accepted.
    pub entry_bytes_max: u64,
    /// Entries that can be found. Expired ones count until they are evicted.
    pub entries: u64,
    /// Bytes of their records.
    pub live_bytes: u64,
    /// Bytes that are neither used nor waiting to be freed.
    pub free_bytes: u64,
    /// Bytes lost at ring ends and beside entries that were held in place, until the hand passes.
    pub filler_bytes: u64,
    /// Bytes of overwritten, removed or unpublished records, until the hand passes.
    pub dead_bytes: u64,
    /// Bytes that power loss or copying the file left unchecked. Puts and [`crate::Cache::verify`] go through them.
    /// Until then, live, dead and lost bytes among them aren't told apart, and [`Stats::entries`] is an estimate.
    pub untiled_bytes: u64,
    /// Slots of the index.
    pub index_slots: u64,
    /// Slots of live entries.
    pub index_live: u64,
    /// Slots that remember evicted entries.
    pub index_ghosts: u64,
    /// Slots that the index should have for its entries. Each put makes a step towards them.
    pub index_slots_wanted: u64,
    /// Steps that the index has made; each adds or removes eight slots.
    pub index_steps: u64,
    /// Look-ups that found a valid entry. Hits and misses of read-only openers aren't counted, nor those of threads
    /// beyond the volume's thread slots.
    pub hits: u64,
    /// Look-ups that found none.
    pub misses: u64,
    /// Hits that were returned as heap copies.
    pub copies: u64,
    /// Entries stored.
    pub puts: u64,
    /// Entries removed or cleared.
    pub removes: u64,
    /// Evictions of entries that were not used often enough.
    pub evictions_cold: u64,
    /// Evictions of expired entries.
    pub evictions_expired: u64,
    /// Evictions because both index buckets of a key were full. A few always occur; more occur while the index adapts
    /// to entries that become smaller.
    pub evictions_index: u64,
    /// Entries that were dropped because they failed their checksum or were no entry at all. A scrub
    /// ([`crate::Cache::scrub`]), a verifying look-up ([`crate::Options::verify_hits`]), a repair, or a put that
    /// makes room drops them.
    pub evictions_damaged: u64,
    /// Entries that were dropped because they were purged.
    pub evictions_purged: u64,
    /// Entries that moved from the small ring to main because they had hits.
    pub promotions: u64,
    /// Entries that stayed in main because they had hits.
    pub reinsertions: u64,
    /// Entries that moved from small to main because main had room.
    pub moved: u64,
    /// Bytes of the records that puts wrote.
    pub bytes_written: u64,
    /// Bytes of the records that promotions, reinsertions and other moves copied.
    pub bytes_copied: u64,
    /// Pins held now, by hits and by large puts under way.
    pub pins: u64,
    /// Processes attached for writing.
    pub processes: u64,
    /// Thread slots in use.
    pub threads: u64,
    /// Stripes that were repaired after the holder of their lock died.
    pub repairs: u64,
    /// Rings that were emptied because their log was damaged.
    pub resets: u64,
    /// Puts that were refused because readers held too much.
    pub pinned_refusals: u64,
    /// Operations that gave up at the lock deadline.
    pub busy: u64,
    /// Age of the entry that was evicted last, in milliseconds: the largest over all stripes.
    pub eviction_age_ms: u64,
    /// Purges of tags, of prefixes and of everything.
    pub purges: u64,
    /// How often a purge removed more than was asked for because a table was full (of tags, prefixes or epochs).
    pub purge_overflows: u64,
    /// How often a process attached the volume while no other had it open.
    pub attachments: u64,
    /// How often the volume was emptied when it was attached: because the record of its age was damaged, or because
    /// it had not been left in order and [`crate::Unclean::Clear`] was set.
    pub unclean_drops: u64,
    /// The tier that this process uses, if any.
    pub tier: Option<TierStats>,
}

/// How much all processes have put into a volume since it was created ([`crate::Cache::written`]).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Written {
    /// Entries stored: [`Stats::puts`].
    pub puts: u64,
    /// Bytes of their records: [`Stats::bytes_written`].
    pub bytes: u64,
}

/// Statistics of a tier ([`crate::Options::tier`]), over all processes that have used it since it was created.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct TierStats {
    /// The most memory that the tier takes.
    pub size_bytes: u64,
    /// Bytes that its copies can use now. Memory that it hasn't taken yet, or has given back, doesn't count.
    pub present_bytes: u64,
    /// Copies that can be found. Void ones count until they are evicted.
    pub entries: u64,
    /// Bytes of their records.
    pub live_bytes: u64,
    /// Look-ups that the tier answered. They count as hits of the volume, too.
    pub hits: u64,
    /// Look-ups that found an outdated copy (its entry was overwritten, moved, removed or purged since) and that the
    /// volume answered.
    pub voids: u64,
    /// Copies made.
    pub fills: u64,
    /// Bytes of their records.
    pub bytes_filled: u64,
    /// Copies that were evicted for others.
    pub evictions: u64,
    /// Pins held now.
    pub pins: u64,
    /// Processes that use it.
    pub processes: u64,
}

/// A tier that [`crate::Cache::tier_in`] found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FoundTier {
    /// Its file.
    pub path: PathBuf,
    /// Its statistics. If no process uses it, its processes were killed and left it behind.
    pub stats: TierStats,
}

/// The statistics of the tier `volume`.
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
    // A process without write access can't lock. Its numbers may be moments apart even within a stripe.
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
    // The counts of a damaged file may be any number.
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
