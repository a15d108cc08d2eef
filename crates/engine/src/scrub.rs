//! Scrubbing: holding every entry against its checksum, in small steps, while the volume is in use.
//!
//! An entry is pinned while it is read, as a reader pins it: no lock is held for it. Only what fails is looked at again under its
//! stripe's lock, and dropped there.

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

/// So many bytes of entries are read in a step, about.
const STEP_BYTES: u64 = 256 << 10;
/// So many buckets are looked through in a step, at most.
const STEP_BUCKETS: u64 = 1024;
const PAGE_BYTES: usize = 4096;

/// A pass over a volume ([`Cache::scrub`]): how it is done, how far it is, and what it has found.
#[derive(Debug, Default)]
pub struct Scrub {
    only_resident: bool,
    /// The volume that the pass is over, once it has begun.
    volume: Option<u64>,
    /// The bucket it began at, of all stripes' in a row. By chance, so that passes that never end look at all of it in time.
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
    /// Entries that were held against their checksum.
    pub entries_read: u64,
    /// Their bytes.
    pub bytes_read: u64,
    /// Entries that were left out because not all of their bytes were in memory ([`Scrub::only_resident`]). Those whose slots were not
    /// in memory aren't counted.
    pub entries_skipped: u64,
    /// Entries that were dropped: they failed their checksum, or their slot named no entry of its key. They count in
    /// [`crate::Stats::evictions_damaged`], too.
    pub entries_dropped: u64,
}

impl Scrub {
    /// A pass over all entries that hasn't begun.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether only what is in memory is read, so that the pass never waits for storage. Default false.
    pub fn only_resident(mut self, yes: bool) -> Self {
        self.only_resident = yes;
        self
    }

    /// What it has done so far.
    pub fn found(&self) -> Scrubbed {
        self.found
    }

    /// How far it is: 0 before it began, 1 when it is over.
    pub fn progress(&self) -> f64 {
        if self.buckets == 0 { 0.0 } else { self.done as f64 / self.buckets as f64 }
    }

    /// Begins, unless it has; anew where the volume was resized meanwhile.
    fn begin(&mut self, volume: &Volume) -> Result<()> {
        if self.volume == Some(volume.id) {
            return Ok(());
        }
        let mut random = [0; 8];
        getrandom::fill(&mut random)
            .map_err(|error| Error::io("choosing where to scrub", volume.name(), io::Error::other(error)))?;
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

    /// The stripe and the bucket of a number among all.
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
    let failed = |error| Error::io("asking what is in memory of", volume.name(), error);
    volume.region.is_resident(offset, BUCKET_BYTES as usize).map_err(failed)
}

/// The turn to scrub a volume in the background, which one process has at a time ([`Cache::scrub_turn`]). Dropping it, or the end of
/// the process, gives it to whoever asks next.
#[derive(Debug)]
pub struct ScrubTurn {
    /// None: there can be no other process.
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
    /// Goes on with a pass over the volume: holds some entries against their checksums, about 256 KiB of them, and drops what is damaged.
    /// True: there is more to do. False: the pass is over.
    ///
    /// No lock is held while an entry is read, so that writers don't wait for it; an entry that fails is read once more under its
    /// stripe's lock before it is dropped. It leaves no trace in frequencies and counters but [`crate::Stats::evictions_damaged`]. What
    /// is put, moved or resized during the pass may be left out. Damage of the logs' own records isn't looked for:
    /// [`Cache::verify_with`] does that.
    ///
    /// ```
    /// use eyewall::{Options, Scrub};
    ///
    /// let cache = Options::new().heap()?;
    /// cache.put("key", "value")?;
    /// let mut pass = Scrub::new();
    /// while cache.scrub(&mut pass)? {
    ///     // Sleep here for as long as the rest of the program is worth.
    /// }
    /// assert_eq!((pass.found().entries_read, pass.found().entries_dropped), (1, 0));
    /// # Ok::<(), eyewall::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ReadOnly`](Error::ReadOnly), [`Busy`](Error::Busy), [`Failed`](Error::Failed), [`Io`](Error::Io). The pass can go on later.
    pub fn scrub(&self, pass: &mut Scrub) -> Result<bool> {
        self.vouched(|volume| {
            volume.check_writable()?;
            pass.step(volume)
        })
    }

    /// For who scrubs in the background, for ever: the turn to do so, if no other process has it. Scrubs on demand need none.
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
