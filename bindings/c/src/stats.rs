//! Numbers.

use std::ffi::c_void;
use std::mem::MaybeUninit;

use crate::open::Cache;
use crate::pointers::{give, needed};
use crate::status::{Failure, Status, guard};

/// Numbers about a volume: sizes now, and counts since it was created, over all processes. Bytes count whole records.
#[repr(C)]
#[derive(Clone, Copy)]
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
    /// Left by power loss, or in a copy, and not gone through yet: puts do so, and eyewall verify. Until then the
    /// live, the dead and the lost among them aren't told apart, and entries is an estimate.
    pub untiled_bytes: u64,
    /// Slots of the index.
    pub index_slots: u64,
    /// Slots of live entries.
    pub index_live: u64,
    /// Slots that remember evicted entries.
    pub index_ghosts: u64,
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
    /// Evicted because they failed their checksum.
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
    /// How often it was emptied at attach: because what tells its age was damaged, or because EYEWALL_CLEAR_UNCLEAN was
    /// asked for and it had not been left in order.
    pub unclean_drops: u64,
    /// Look-ups that were answered by the tier of this process, where it has one.
    pub tier_hits: u64,
    /// The memory that the tier takes at most.
    pub tier_size_bytes: u64,
    /// Slots that the index should have, by what the entries need; each put makes a step towards them.
    pub index_slots_wanted: u64,
    /// Steps that the index has made, of eight slots more or eight fewer.
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

/// Fills `stats`, of which the caller knows `stats_size` bytes: sizeof(eyewall_stats). A later library has more numbers, behind
/// these. Looks at the whole index, one stripe after the other.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eyewall_stats_read(cache: Option<&Cache>, stats: *mut Stats, stats_size: usize) -> Status {
    guard(|| {
        if stats.is_null() || !stats_size.is_multiple_of(size_of::<u64>()) {
            return Err(Failure::Argument("the numbers have no place, or its size isn't that of an eyewall_stats"));
        }
        // SAFETY: the caller's memory has so many bytes.
        unsafe { stats.cast::<c_void>().write_bytes(0, stats_size) };
        let read = Stats::of(&needed(cache)?.0.stats()?);
        let known = stats_size.min(size_of::<Stats>());
        // SAFETY: as above; of those that this library has no numbers for nothing is written.
        unsafe {
            std::ptr::copy_nonoverlapping(std::ptr::from_ref(&read).cast::<u8>(), stats.cast::<u8>(), known);
        }
        Ok(Status::Ok)
    })
}

/// How many entries were put into the volume since it was created or resized, and the bytes of their records, by all processes.
/// Takes no lock and reads two words a stripe, so that it can be asked before each put: the volume's entries have grown by no
/// more than that. `puts` or `bytes` may be NULL.
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
