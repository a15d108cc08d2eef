//! Scrubbing: comparing every entry with its checksum, in small steps, while the volume is in use.
//!
//! A scrub pins the entry that it reads, as a reader does, and holds no lock meanwhile. Only an entry that fails is
//! checked again under its stripe's lock, and dropped there.

use std::io;

use eyewall_region::fork;
use eyewall_region::liveness::Alive;
use serde::Serialize;

use crate::cache::Cache;
use crate::error::{Error, Result};
use crate::format::layout::{BUCKET_BYTES, BUCKET_SLOTS};
use crate::read::SlotAt;
use crate::stripe::{Judged, Stripe, judge};
use crate::volume::Volume;

/// About how many bytes of entries a step reads.
const STEP_BYTES: u64 = 256 << 10;
/// How many buckets a step looks through at most.
const STEP_BUCKETS: u64 = 1024;
const PAGE_BYTES: usize = 4096;

/// A pass over a volume ([`Cache::scrub`]): its settings, its progress and its findings.
#[derive(Debug, Default)]
pub struct Scrub {
    only_resident: bool,
    /// The volume that the pass is over, once it has begun.
    volume: Option<u64>,
    /// The first bucket of the pass, counted over all stripes in a row. It is random, so that even passes that never
    /// finish cover the whole volume in time.
    start: u64,
    done: u64,
    buckets: u64,
    /// How many buckets each stripe had when the pass began.
    counts: Vec<u64>,
    found: Scrubbed,
}

/// What a pass has done so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Scrubbed {
    /// Entries that were compared with their checksum.
    pub entries_read: u64,
    /// Their bytes.
    pub bytes_read: u64,
    /// Entries that were skipped because not all of their bytes were in memory ([`Scrub::only_resident`]). Entries
    /// whose slots were not in memory aren't counted.
    pub entries_skipped: u64,
    /// Entries that were dropped, because they failed their checksum or their slot didn't name an entry of its key.
    /// [`crate::Stats::evictions_damaged`] counts them, too.
    pub entries_dropped: u64,
}

impl Scrub {
    /// A new pass over all entries.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether to read only what is in memory, so that the pass never waits for storage. Default false.
    pub fn only_resident(mut self, yes: bool) -> Self {
        self.only_resident = yes;
        self
    }

    /// What the pass has done so far.
    pub fn found(&self) -> Scrubbed {
        self.found
    }

    /// The progress of the pass: 0 before it begins, 1 at its end.
    pub fn progress(&self) -> f64 {
        if self.buckets == 0 { 0.0 } else { self.done as f64 / self.buckets as f64 }
    }

    /// Begins the pass, or begins it again if the volume was resized meanwhile.
    fn begin(&mut self, volume: &Volume) -> Result<()> {
        if self.volume == Some(volume.id) {
            return Ok(());
        }
        let mut random = [0; 8];
        getrandom::fill(&mut random)
            .map_err(|error| Error::io("choosing where to start scrubbing", volume.name(), io::Error::other(error)))?;
        self.volume = Some(volume.id);
        self.counts = (0..volume.layout.stripes as usize).map(|stripe| volume.buckets(stripe).count()).collect();
        self.buckets = self.counts.iter().sum();
        self.start = u64::from_le_bytes(random) % self.buckets;
        self.done = 0;
        Ok(())
    }

    fn step(&mut self, volume: &Volume) -> Result<bool> {
        self.begin(volume)?;
        let enough = self.found.bytes_read + STEP_BYTES;
        let last = self.buckets.min(self.done + STEP_BUCKETS);
        let mut is_known = false;
        while self.done < last && self.found.bytes_read < enough {
            let (number, bucket) = self.bucket((self.start + self.done) % self.buckets);
            if bucket >= volume.buckets(number).count() {
                self.done += 1;
                continue;
            }
            let offset = volume.layout.bucket_at(number, bucket);
            if self.only_resident && (!is_known || offset.is_multiple_of(PAGE_BYTES)) {
                is_known = is_resident(volume, offset)?;
                if !is_known {
                    self.done += 1;
                    continue;
                }
            }
            self.read_bucket(volume, number, bucket)?;
            self.done += 1;
        }
        Ok(self.done < self.buckets)
    }

    /// Turns a number among all buckets into a stripe and a bucket of it.
    fn bucket(&self, mut at: u64) -> (usize, u64) {
        for (stripe, count) in self.counts.iter().enumerate() {
            if at < *count {
                return (stripe, at);
            }
            at -= count;
        }
        (0, 0)
    }

    fn read_bucket(&mut self, volume: &Volume, stripe: usize, bucket: u64) -> Result<()> {
        for number in 0..BUCKET_SLOTS as usize {
            let at = SlotAt { stripe, bucket, number };
            match judge(volume, at, self.only_resident)? {
                Judged::Nothing => {}
                Judged::Cold => self.found.entries_skipped += 1,
                Judged::Whole(bytes) => {
                    self.found.entries_read += 1;
                    self.found.bytes_read += bytes;
                }
                Judged::Damaged => {
                    volume.mark_unclean()?;
                    let stripe = Stripe::lock(volume, stripe)?;
                    let slot = at.load(volume).map(|(slot, _)| slot);
                    if slot.is_some_and(|slot| stripe.drop_damaged(bucket, slot)) {
                        self.found.entries_dropped += 1;
                    }
                }
            }
        }
        Ok(())
    }
}

fn is_resident(volume: &Volume, offset: usize) -> Result<bool> {
    let failed = |error| Error::io("checking what is in memory of", volume.name(), error);
    volume.region.is_resident(offset, BUCKET_BYTES as usize).map_err(failed)
}

/// The turn to scrub a volume in the background, which one process has at a time ([`Cache::scrub_turn`]). When it is
/// dropped or its process ends, the next process that asks gets it.
#[derive(Debug)]
pub struct ScrubTurn {
    /// `None` if no other process can exist.
    alive: Option<Alive>,
    fork: u32,
}

impl Drop for ScrubTurn {
    fn drop(&mut self) {
        if self.fork != fork::generation()
            && let Some(alive) = self.alive.take()
        {
            alive.forget_inherited();
        }
    }
}

impl Cache {
    /// Continues a pass over the volume. Compares about 256 KiB of entries with their checksums, and drops those that
    /// are damaged. Returns true while there is more to do, and false at the end of the pass.
    ///
    /// A scrub holds no lock while it reads an entry, so writers don't wait for it. It reads an entry that fails once
    /// more under its stripe's lock before it drops it. It changes no frequency and no counter, except
    /// [`crate::Stats::evictions_damaged`]. It may skip what is put, moved or resized during the pass. It doesn't
    /// look for damage of the logs' own records; [`Cache::verify_with`] does.
    ///
    /// ```
    /// use eyewall::{Options, Scrub};
    ///
    /// let cache = Options::new().heap()?;
    /// cache.put("key", "value")?;
    /// let mut pass = Scrub::new();
    /// while cache.scrub(&mut pass)? {
    ///     // Sleep here, to leave time for the rest of the program.
    /// }
    /// assert_eq!((pass.found().entries_read, pass.found().entries_dropped), (1, 0));
    /// # Ok::<(), eyewall::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ReadOnly`](Error::ReadOnly), [`Busy`](Error::Busy), [`Failed`](Error::Failed), [`Io`](Error::Io). The caller
    /// can continue the pass later.
    pub fn scrub(&self, pass: &mut Scrub) -> Result<bool> {
        self.vouched(|volume| {
            volume.check_writable()?;
            pass.step(volume)
        })
    }

    /// For programs that scrub in the background all the time. Returns the turn to scrub, or `None` if another
    /// process has it. A scrub on demand needs no turn.
    ///
    /// # Errors
    /// [`Io`](Error::Io), [`Failed`](Error::Failed), [`ReadOnly`](Error::ReadOnly).
    pub fn scrub_turn(&self) -> Result<Option<ScrubTurn>> {
        self.vouched(|volume| {
            volume.check_writable()?;
            let fork = fork::generation();
            let Some(door) = volume.membership.door() else { return Ok(Some(ScrubTurn { alive: None, fork })) };
            let held =
                door.lock_scrub().map_err(|error| Error::io("taking the turn to scrub", volume.name(), error))?;
            Ok(held.map(|alive| ScrubTurn { alive: Some(alive), fork }))
        })
    }
}
