//! Statistics of the parts of a volume: stripes, processes, sizes of entries, and hot entries.

use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serialize;

use crate::cache::Cache;
use crate::error::Result;
use crate::extents::RingKind;
use crate::format::layout::BUCKET_SLOTS;
use crate::format::owner::Owner;
use crate::format::slot::Slot;
use crate::read::{self, SlotAt, Wanted};
use crate::stripe::{Count, ExtentKind, RingId, Stripe, count};
use crate::thread::{self, Counter};
use crate::volume::Volume;

/// How many buckets, spread over the whole index, are searched for hot entries.
const BUCKETS_SAMPLED: u64 = 1 << 15;

/// Statistics of the parts of a volume; see [`Cache::details`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Details {
    /// Each stripe.
    pub stripes: Vec<StripeDetails>,
    /// Each process that is attached for writing.
    pub processes: Vec<ProcessDetails>,
    /// Live entries by the size of their records, in ascending order and without gaps.
    pub sizes: Vec<SizeClass>,
}

/// Statistics of one stripe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct StripeDetails {
    /// Number of the stripe.
    pub number: u64,
    /// Entries that can be found.
    pub entries: u64,
    /// The small ring, then main.
    pub rings: [RingDetails; 2],
    /// Slots of the stripe's part of the index.
    pub index_slots: u64,
    /// Slots that this part should have for its entries. Each put makes a step towards them.
    pub index_slots_wanted: u64,
    /// Steps made so far; each adds or removes eight slots.
    pub index_steps: u64,
    /// Slots of live entries.
    pub index_live: u64,
    /// Slots that remember evicted entries.
    pub index_ghosts: u64,
    /// Evictions of entries that were not used often enough.
    pub evictions_cold: u64,
    /// Evictions of expired entries.
    pub evictions_expired: u64,
    /// Evictions because the buckets of a key were full.
    pub evictions_index: u64,
    /// Entries dropped because they failed their checksum.
    pub evictions_damaged: u64,
    /// Entries dropped because they were purged.
    pub evictions_purged: u64,
    /// Age of the entry that was evicted last.
    pub eviction_age_ms: u64,
}

/// Statistics of one ring. Its bytes are the sum of the seven kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RingDetails {
    /// Which ring.
    pub ring: RingKind,
    /// Size of the ring.
    pub bytes: u64,
    /// Entries that can be found and that nobody holds.
    pub live_bytes: u64,
    /// Bytes that somebody holds.
    pub pinned_bytes: u64,
    /// Entries that can no longer be found.
    pub dead_bytes: u64,
    /// Filler, which holds no entry.
    pub filler_bytes: u64,
    /// Bytes that can be written.
    pub free_bytes: u64,
    /// Bytes that the index has taken.
    pub index_bytes: u64,
    /// Bytes whose log can't be read.
    pub unreadable_bytes: u64,
    /// How often the head has passed the end of the ring.
    pub head_laps: u64,
    /// How often the tail has.
    pub tail_laps: u64,
}

/// Statistics of one process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ProcessDetails {
    /// Its process ID, in its own PID namespace.
    pub pid: u32,
    /// When it joined, in seconds since 1970.
    pub since_seconds: u64,
    /// Thread slots that it holds.
    pub threads: u64,
    /// Pins that it holds now.
    pub pins: u64,
    /// Look-ups that found a valid entry, as counted in its thread slots. The count includes former holders of these
    /// slots; the difference of two calls is the process's own.
    pub hits: u64,
    /// Look-ups that found none, counted in the same way.
    pub misses: u64,
}

impl ProcessDetails {
    /// When it joined.
    pub fn since(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(self.since_seconds)
    }
}

/// Entries of similar size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SizeClass {
    /// A power of two. The records of this class have at least this many bytes, and less than twice as many.
    pub from_bytes: u64,
    /// Number of entries.
    pub entries: u64,
    /// Bytes of their records.
    pub bytes: u64,
}

/// An entry that was used often in recent time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Hot {
    /// Its key.
    pub key: Vec<u8>,
    /// How often it was hit recently, up to 7.
    pub frequency: u64,
    /// Bytes of its value.
    pub value_bytes: u64,
}

impl Cache {
    /// Returns statistics of each stripe and process, and the entries by size. Walks all rings, one stripe after the
    /// other, under the stripe's lock. A volume that was opened for reading only is walked without locks.
    ///
    /// # Errors
    /// [`Busy`](crate::Error::Busy).
    pub fn details(&self) -> Result<Details> {
        self.vouched(|volume| {
            let mut sizes = [(0, 0); u64::BITS as usize];
            let mut details = Details::default();
            for number in 0..volume.layout.stripes as usize {
                details.stripes.push(of_stripe(volume, number, &mut sizes)?);
            }
            details.processes = processes(volume);
            details.sizes = classes(&sizes);
            Ok(details)
        })
    }

    /// Returns the hottest entries of a sample of the index, hottest first. Takes no lock, and doesn't count as use.
    pub fn hottest(&self, limit: usize) -> Result<Vec<Hot>> {
        self.vouched(|volume| Ok(hottest(volume, limit)))
    }

    /// Returns the processes that are attached for writing.
    pub fn processes(&self) -> Result<Vec<ProcessDetails>> {
        self.vouched(|volume| Ok(processes(volume)))
    }
}

fn of_stripe(volume: &Volume, number: usize, sizes: &mut [(u64, u64)]) -> Result<StripeDetails> {
    let may_lock = volume.check_writable().is_ok();
    let stripe = if may_lock { Stripe::lock(volume, number)? } else { Stripe::unlocked(volume, number) };
    let named = stripe.landmarks();
    let rings = RingId::BOTH.map(|id| {
        let ring = stripe.ring(id);
        let mut bytes_of = [0; 7];
        stripe.survey(id, &named, |_, bytes, piece| bytes_of[piece as usize] += bytes);
        let of = |kind: ExtentKind| bytes_of[kind as usize];
        RingDetails {
            ring: id.into(),
            bytes: ring.size,
            live_bytes: of(ExtentKind::Live),
            pinned_bytes: of(ExtentKind::Pinned),
            dead_bytes: of(ExtentKind::Dead),
            filler_bytes: of(ExtentKind::Filler),
            free_bytes: of(ExtentKind::Free),
            index_bytes: of(ExtentKind::Index),
            unreadable_bytes: of(ExtentKind::Unreadable),
            head_laps: ring.lap(ring.head()),
            tail_laps: ring.lap(ring.tail()),
        }
    });
    let mut entries = 0;
    stripe.each_slot(|slot| {
        let entry = stripe.entry_at(slot.position()).filter(|_| slot.is_live());
        if let Some((_, lengths, _)) = entry {
            let bytes = lengths.record_bytes();
            let (count, sum) = &mut sizes[bytes.ilog2() as usize];
            *count += 1;
            *sum += bytes;
            entries += 1;
        }
    });
    let (index_slots, index_live, index_ghosts) = stripe.index_load();
    let of = |which| count(volume, number, which);
    Ok(StripeDetails {
        number: number as u64,
        entries,
        rings,
        index_slots,
        index_slots_wanted: stripe.goal() * BUCKET_SLOTS,
        index_steps: stripe.buckets().steps(),
        index_live,
        index_ghosts,
        evictions_cold: of(Count::EvictionsCold),
        evictions_expired: of(Count::EvictionsExpired),
        evictions_index: of(Count::EvictionsIndex),
        evictions_damaged: of(Count::EvictionsDamaged),
        evictions_purged: of(Count::EvictionsPurged),
        eviction_age_ms: of(Count::EvictionAge),
    })
}

/// All classes from the smallest with entries to the largest with entries.
fn classes(sizes: &[(u64, u64)]) -> Vec<SizeClass> {
    let class = |(power, (entries, bytes)): (usize, &(u64, u64))| SizeClass {
        from_bytes: 1 << power,
        entries: *entries,
        bytes: *bytes,
    };
    let all: Vec<_> = sizes.iter().enumerate().map(class).collect();
    let first = all.iter().position(|class| class.entries > 0).unwrap_or(all.len());
    let end = all.iter().rposition(|class| class.entries > 0).map_or(first, |last| last + 1);
    all[first..end].to_vec()
}

fn processes(volume: &Volume) -> Vec<ProcessDetails> {
    let alive = volume.membership.alive(&volume.region, &volume.layout);
    let mut processes: Vec<(Owner, ProcessDetails)> = alive
        .map(|(owner, pid, since_ms)| {
            let details =
                ProcessDetails { pid, since_seconds: since_ms / 1000, threads: 0, pins: 0, hits: 0, misses: 0 };
            (owner, details)
        })
        .collect();
    for thread in 0..volume.layout.threads as u32 {
        let owner = Owner::from_word(thread::owner_word(volume, thread));
        let Some((_, process)) = processes.iter_mut().find(|(alive, _)| Some(*alive) == owner) else { continue };
        process.threads += 1;
        process.hits = process.hits.wrapping_add(thread::count_of(volume, thread, Counter::Hits));
        process.misses = process.misses.wrapping_add(thread::count_of(volume, thread, Counter::Misses));
    }
    for (thread, _) in thread::pins(volume).filter(|(_, pin)| pin.load(Relaxed) != 0) {
        let owner = Owner::from_word(thread::owner_word(volume, thread));
        if let Some((_, process)) = processes.iter_mut().find(|(alive, _)| Some(*alive) == owner) {
            process.pins += 1;
        }
    }
    processes.into_iter().map(|(_, details)| details).collect()
}

fn hottest(volume: &Volume, limit: usize) -> Vec<Hot> {
    let stripes = 0..volume.layout.stripes as usize;
    let all: u64 = stripes.clone().map(|stripe| volume.buckets(stripe).count()).sum();
    let step = all.div_ceil(BUCKETS_SAMPLED).max(1);
    let mut found = Vec::new();
    for stripe in stripes {
        for bucket in (0..volume.buckets(stripe).count()).step_by(step as usize) {
            for (number, slot) in volume.bucket_line(stripe, bucket).iter().enumerate() {
                let seen = Slot(slot.load(Acquire));
                if seen.is_live() && seen.frequency() > 0 {
                    found.push((seen.frequency(), SlotAt { stripe, bucket, number }));
                }
            }
        }
    }
    // The sort is stable: entries of equal frequency keep their order from call to call.
    found.sort_by_key(|(frequency, _)| std::cmp::Reverse(*frequency));
    let hot = found.into_iter().filter_map(|(frequency, at)| {
        let hit = read::hit_of_slot(volume, at, Wanted::Fresh)?;
        Some(Hot { key: hit.key().to_owned(), frequency, value_bytes: hit.value().len() as u64 })
    });
    hot.take(limit).collect()
}
