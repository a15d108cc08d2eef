//! Statistics.

use std::ffi::c_void;
use std::mem::MaybeUninit;

use crate::open::Cache;
use crate::pointers::{give, needed};
use crate::status::{Failure, Status, guard};

/// Statistics of a volume: present sizes, and counts since its creation over all processes. Byte counts are of
/// whole records.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Stats {
    /// Size of the file: the hard cap.
    pub size_bytes: u64,
    /// Bytes that entries can use: both rings of all stripes.
    pub data_bytes: u64,
    /// Bytes of the superblock, the tables and the index.
    pub overhead_bytes: u64,
    /// Number of stripes, which are independent parts of the volume.
    pub stripes: u64,
    /// The largest accepted entry in bytes.
    pub entry_bytes_max: u64,
    /// Entries that can be found, including expired ones that aren't evicted yet.
    pub entries: u64,
    /// Bytes of their records.
    pub live_bytes: u64,
    /// Bytes that are neither used nor waiting to be freed.
    pub free_bytes: u64,
    /// Unused bytes at the ends of rings and beside held entries, until the eviction hand passes.
    pub filler_bytes: u64,
    /// Bytes of overwritten, removed or unpublished records, until the eviction hand passes.
    pub dead_bytes: u64,
    /// Bytes that power loss, or copying the file, left unchecked. Puts and `eyewall verify` check them.
    /// Until then they may be live, dead or lost, and `entries` is an estimate.
    pub untiled_bytes: u64,
    /// Slots of the index.
    pub index_slots: u64,
    /// Slots of live entries.
    pub index_live: u64,
    /// Slots that remember evicted entries.
    pub index_ghosts: u64,
    /// Look-ups that found a valid entry. Neither hits nor misses count look-ups of read-only openers, or of
    /// threads that found no free thread slot.
    pub hits: u64,
    /// Look-ups that found no valid entry.
    pub misses: u64,
    /// Hits that were copied to the heap.
    pub copies: u64,
    /// Entries stored.
    pub puts: u64,
    /// Entries removed or cleared.
    pub removes: u64,
    /// Evicted because they were seldom asked for.
    pub evictions_cold: u64,
    /// Evicted after they had expired.
    pub evictions_expired: u64,
    /// Evicted because their index buckets were full. A few always are; more are while entries become smaller
    /// and the index grows after them.
    pub evictions_index: u64,
    /// Evicted because they failed their checksum.
    pub evictions_damaged: u64,
    /// Dropped because they were purged.
    pub evictions_purged: u64,
    /// Entries promoted from the small ring to main because they were hit.
    pub promotions: u64,
    /// Entries reinserted into main because they were hit.
    pub reinsertions: u64,
    /// Entries that moved from small to main because main had room.
    pub moved: u64,
    /// Bytes of the records that puts wrote.
    pub bytes_written: u64,
    /// Bytes of the records that the three kinds of moves above copied.
    pub bytes_copied: u64,
    /// Present pins: of hits, and of large puts in progress.
    pub pins: u64,
    /// Processes attached for writing.
    pub processes: u64,
    /// Thread slots in use.
    pub threads: u64,
    /// Stripes that were repaired after the process that held their lock died.
    pub repairs: u64,
    /// Rings that were emptied because their log was damaged.
    pub resets: u64,
    /// Puts refused because readers held too much.
    pub pinned_refusals: u64,
    /// Operations that failed at the lock deadline.
    pub busy: u64,
    /// Age of the most recently evicted entry, in milliseconds: the largest over all stripes.
    pub eviction_age_ms: u64,
    /// Purges of tags, of prefixes and of everything.
    pub purges: u64,
    /// Purges that removed more than they named because a table was full: of tags, of prefixes, of epochs.
    pub purge_overflows: u64,
    /// How often a process attached to the volume while no other process was attached.
    pub attachments: u64,
    /// How often attaching emptied the volume: because the record of its age was damaged, or because the
    /// caller set EYEWALL_CLEAR_UNCLEAN and the volume had not been closed in order.
    pub unclean_drops: u64,
    /// Look-ups that this process's tier answered, if it has one.
    pub tier_hits: u64,
    /// The tier's maximum size in bytes.
    pub tier_size_bytes: u64,
    /// Slots that the index should have for its entries. Each put makes one step towards that number.
    pub index_slots_wanted: u64,
    /// Steps that the index has made; each adds or removes eight slots.
    pub index_steps: u64,
}

impl Stats {
    fn of(stats: &eyewall::Stats) -> Self {
        let tier = stats.tier.clone().unwrap_or_default();
        Self {
            size_bytes: stats.size_bytes,
            data_bytes: stats.data_bytes,
            overhead_bytes: stats.overhead_bytes,
            stripes: stats.stripes,
            entry_bytes_max: stats.entry_bytes_max,
            entries: stats.entries,
            live_bytes: stats.live_bytes,
            free_bytes: stats.free_bytes,
            filler_bytes: stats.filler_bytes,
            dead_bytes: stats.dead_bytes,
            untiled_bytes: stats.untiled_bytes,
            index_slots: stats.index_slots,
            index_live: stats.index_live,
            index_ghosts: stats.index_ghosts,
            hits: stats.hits,
            misses: stats.misses,
            copies: stats.copies,
            puts: stats.puts,
            removes: stats.removes,
            evictions_cold: stats.evictions_cold,
            evictions_expired: stats.evictions_expired,
            evictions_index: stats.evictions_index,
            evictions_damaged: stats.evictions_damaged,
            evictions_purged: stats.evictions_purged,
            promotions: stats.promotions,
            reinsertions: stats.reinsertions,
            moved: stats.moved,
            bytes_written: stats.bytes_written,
            bytes_copied: stats.bytes_copied,
            pins: stats.pins,
            processes: stats.processes,
            threads: stats.threads,
            repairs: stats.repairs,
            resets: stats.resets,
            pinned_refusals: stats.pinned_refusals,
            busy: stats.busy,
            eviction_age_ms: stats.eviction_age_ms,
            purges: stats.purges,
            purge_overflows: stats.purge_overflows,
            attachments: stats.attachments,
            unclean_drops: stats.unclean_drops,
            tier_hits: tier.hits,
            tier_size_bytes: tier.size_bytes,
            index_slots_wanted: stats.index_slots_wanted,
            index_steps: stats.index_steps,
        }
    }
}

/// Fills `stats`. `stats_size` is the number of bytes that the caller knows: sizeof(eyewall_stats). Later
/// versions of the library append fields. The call scans the whole index, one stripe after the other.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eyewall_stats_read(cache: Option<&Cache>, stats: *mut Stats, stats_size: usize) -> Status {
    guard(|| {
        if stats.is_null() || !stats_size.is_multiple_of(size_of::<u64>()) {
            return Err(Failure::Argument("stats is NULL, or stats_size is not sizeof(eyewall_stats)"));
        }
        // SAFETY: the caller's memory has so many bytes.
        unsafe { stats.cast::<c_void>().write_bytes(0, stats_size) };
        let read = Stats::of(&needed(cache)?.0.stats()?);
        let known = stats_size.min(size_of::<Stats>());
        // SAFETY: as above; fields that this library doesn't know stay zero.
        unsafe {
            std::ptr::copy_nonoverlapping(std::ptr::from_ref(&read).cast::<u8>(), stats.cast::<u8>(), known);
        }
        Ok(Status::Ok)
    })
}

/// How many entries all processes have put since the volume was created or resized, and the bytes of their
/// records. The volume's entries have grown by no more than that. The call takes no lock and reads two words per
/// stripe, so a caller can afford it before each put. `puts` or `bytes` may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn eyewall_written(
    cache: Option<&Cache>,
    puts: Option<&mut MaybeUninit<u64>>,
    bytes: Option<&mut MaybeUninit<u64>>,
) -> Status {
    guard(|| {
        let written = needed(cache)?.0.written()?;
        give(puts, written.puts);
        give(bytes, written.bytes);
        Ok(Status::Ok)
    })
}
