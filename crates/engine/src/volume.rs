//! A mapped volume as one process sees it.

use std::collections::HashMap;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use eyewall_region::{Region, clock, fork};

use crate::error::{Error, Result};
use crate::format::buckets::Buckets;
use crate::format::hash::{self, Place, Secret};
use crate::format::layout::{BUCKET_BYTES, Layout, STRIPES_MAX};
use crate::format::purges::Purges;
use crate::format::superblock::{Attachment, Static};
use crate::hit::{SharedKey, SharedPin};
use crate::mapped::Mapped;
use crate::options::Options;
use crate::process::Membership;
use crate::protocol;
use crate::recently_resident::RecentlyResident;
use crate::stripe::{self, Named};
use crate::thread::{self, Counter, Thread};

/// A volume, mapped and attached. Shared by all clones of a [`crate::Cache`].
#[derive(Debug)]
pub(crate) struct Volume {
    /// Every volume lives in an `Arc`; this is it.
    pub(crate) this: Weak<Self>,
    pub(crate) region: Region,
    pub(crate) layout: Layout,
    /// Of each stripe, where its first bucket is and how many buckets it has, nearly.
    pub(crate) indexes: [StripeIndex; STRIPES_MAX as usize],
    pub(crate) secret: Secret,
    /// What the superblock has that never changes, as it was when this process opened the volume.
    pub(crate) header: Static,
    /// The volume's time when a put of this process looked at the superblock last.
    pub(crate) looked_ms: AtomicU64,
    /// Unique in this process: thread-local state is found by it, not by address.
    pub(crate) id: u64,
    /// The number of the first of the volumes that took each other's place in this process.
    pub(crate) lineage: u64,
    pub(crate) read_only: bool,
    /// How it was opened, for the volume that takes its place.
    pub(crate) options: Options,
    /// The volume that took its place when it was resized, once this process has found it.
    pub(crate) successor: OnceLock<Arc<Self>>,
    /// Whether what dies is overwritten with zeros.
    pub(crate) erases: bool,
    pub(crate) lock_deadline: Duration,
    /// What this process has mapped to write to.
    pub(crate) mapped: Mapped,
    /// For tiling: what slots named when this process first came to it.
    pub(crate) named: Named,
    pub(crate) membership: Membership,
    /// The attachment that this process is part of; records verified in it are trusted.
    pub(crate) generation: AtomicU16,
    /// The same for look-ups; where each hit is to be verified, [`TRUSTS_NONE`].
    pub(crate) trusted: AtomicU32,
    /// The volume's time when the machine was started.
    pub(crate) time_base: AtomicU64,
    /// Whether this process has seen the volume marked as written to.
    pub(crate) marked_unclean: std::sync::atomic::AtomicBool,
    /// Heap bytes that hits of this process hold as copies, because too much was pinned.
    pub(crate) copied_bytes: AtomicU64,
    /// Pins held by owned hits, so that holders of one entry share one. Locked only with the fork gate held.
    pub(crate) shared_pins: Mutex<HashMap<SharedKey, Weak<SharedPin>>>,
    /// Made when it is first asked, which few do.
    pub(crate) recently_resident: OnceLock<RecentlyResident>,
    /// Of a tier: the volume that it stands in front of, which stays open as long as the tier does.
    pub(crate) front_of: Option<Arc<Self>>,
}

/// What a look-up wants to know of a stripe's index.
#[derive(Debug)]
pub(crate) struct StripeIndex {
    first_bucket_at: usize,
    /// See [`Buckets::bounded`].
    mask: AtomicU32,
}

impl StripeIndex {
    pub(crate) fn all_of(layout: &Layout) -> [Self; STRIPES_MAX as usize] {
        std::array::from_fn(|stripe| {
            let first_bucket_at = if (stripe as u64) < layout.stripes { layout.bucket_at(stripe, 0) } else { 0 };
            Self { first_bucket_at, mask: AtomicU32::new(0) }
        })
    }
}

/// The generation of no record.
const TRUSTS_NONE: u32 = u32::MAX;

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// The volumes of this process. Only touched with the fork gate held.
static VOLUMES: Mutex<Vec<Listed>> = Mutex::new(Vec::new());

struct Listed(*const Volume);

// SAFETY: the pointer is only followed with the fork gate held, which `Volume::drop` takes to remove it.
unsafe impl Send for Listed {}

/// A number for a new volume.
pub(crate) fn next_id() -> u64 {
    NEXT_ID.fetch_add(1, Relaxed)
}

/// Before anything is locked for a volume: from now on, forked children are seen to.
pub(crate) fn watch_forks() {
    fork::on_child(register_in_child);
}

/// Makes `volume` known to the fork hook and to ending threads.
pub(crate) fn list(volume: &Volume) {
    let _gate = fork::gate();
    VOLUMES.lock().unwrap_or_else(PoisonError::into_inner).push(Listed(volume));
}

/// Runs `f` with the volume of that number, if it is still open. The fork gate must be held.
pub(crate) fn with_volume(id: u64, f: impl FnOnce(&Volume)) {
    let volumes = VOLUMES.lock().unwrap_or_else(PoisonError::into_inner);
    for listed in volumes.iter() {
        // SAFETY: listed volumes live until they have removed themselves, which needs the gate that our
        // caller holds.
        let volume = unsafe { &*listed.0 };
        if volume.id == id {
            return f(volume);
        }
    }
}

/// In a forked child, right after `fork`: every volume registers anew, while there still are the rights to.
fn register_in_child() {
    let volumes = VOLUMES.lock().unwrap_or_else(PoisonError::into_inner);
    for listed in volumes.iter() {
        // SAFETY: as in `with_volume`.
        let volume = unsafe { &*listed.0 };
        volume.membership.forget_inherited();
        if !volume.read_only && !volume.has_failed() {
            // On failure the child has no owner word: it reads copies, and its writes are refused.
            let _ = crate::attach::join(volume);
        }
    }
}

impl Volume {
    #[inline]
    pub(crate) fn place(&self, key: &[u8]) -> Place {
        hash::place(&self.layout, hash::key_hash(&self.secret, key))
    }

    /// The buckets that a stripe has now.
    #[inline]
    pub(crate) fn buckets(&self, stripe: usize) -> Buckets {
        let index = &self.indexes[stripe % STRIPES_MAX as usize];
        Buckets::bounded(stripe::buckets_word(self, stripe).load(Acquire), &self.layout, &index.mask)
    }

    /// Whether no step was made since, so that what was taken for a slot is one. Asked behind the last look at it.
    #[inline]
    pub(crate) fn has_still(&self, stripe: usize, buckets: Buckets) -> bool {
        protocol::is_same_step(stripe::buckets_word(self, stripe), buckets.word)
    }

    /// One of the two buckets of a key, of those that its stripe has.
    #[inline]
    pub(crate) fn bucket(&self, place: &Place, which: usize, buckets: Buckets) -> &[AtomicU64; 8] {
        self.bucket_line(place.stripe, buckets.of(place.picks[which]))
    }

    /// A bucket of a stripe; its number is that of one which the stripe can have.
    #[inline]
    pub(crate) fn bucket_line(&self, stripe: usize, bucket: u64) -> &[AtomicU64; 8] {
        debug_assert!(bucket < self.layout.buckets_max && (stripe as u64) < self.layout.stripes);
        let at = self.indexes[stripe % STRIPES_MAX as usize].first_bucket_at - (bucket * BUCKET_BYTES) as usize;
        // SAFETY: so far the layout reaches, which was checked against the region at open. Lines are aligned, and only ever
        // accessed atomically.
        unsafe { &*self.region.address(at).cast::<[AtomicU64; 8]>() }
    }

    /// Asks for both buckets of a key, ahead of their use.
    #[inline]
    pub(crate) fn prefetch_buckets(&self, place: &Place) {
        let buckets = self.buckets(place.stripe);
        for pick in place.picks {
            self.region.prefetch(self.layout.bucket_at(place.stripe, buckets.of(pick)));
        }
    }

    /// The volume's time in milliseconds. It is the wall clock's as of this boot's first attachment, and runs on by the
    /// clock since boot: setting the wall clock doesn't change it, and no boot begins earlier than the last one was seen.
    #[inline]
    pub(crate) fn now_ms(&self) -> u64 {
        self.time_base.load(Relaxed) + clock::since_boot_ms()
    }

    /// Notes the present time for later boots.
    pub(crate) fn see_time(&self) {
        Attachment(&self.region).see_time(self.now_ms());
    }

    /// What messages call it.
    pub(crate) fn name(&self) -> &std::path::Path {
        self.membership.path().unwrap_or_else(|| "the volume".as_ref())
    }

    #[inline]
    pub(crate) fn purges(&self) -> Purges<'_> {
        Purges::of(&self.region)
    }

    /// A bucket of the table of purged tags: floors and seven cells.
    pub(crate) fn tag_line(&self, line: u64) -> &[AtomicU64; 8] {
        self.region.line(self.layout.tag_line_at(line))
    }

    /// A Bloom filter for each bucket: a tag whose bits aren't all set is in none of the cells, and no floor means it.
    #[inline]
    pub(crate) fn tag_filters(&self) -> &[AtomicU32] {
        self.region.halves(self.layout.tag_filters_at as usize, self.layout.tag_lines as usize)
    }

    fn storage_error(&self, error: std::io::Error) -> Error {
        Error::io("syncing", self.membership.path().unwrap_or_else(|| "the volume".as_ref()), error)
    }

    /// Brings the superblock's page to storage.
    pub(crate) fn sync_superblock(&self) -> Result<()> {
        Attachment(&self.region).sync().map_err(|error| self.storage_error(error))
    }

    /// Brings all that was written so far to storage.
    pub(crate) fn sync_all(&self) -> Result<()> {
        self.region.sync(0, self.region.len()).map_err(|error| self.storage_error(error))
    }

    #[inline]
    pub(crate) fn generation(&self) -> u16 {
        self.generation.load(Relaxed)
    }

    /// Takes over the attachment that this process has become part of.
    pub(crate) fn set_generation(&self, generation: u16) {
        self.generation.store(generation, Relaxed);
        let trusted = if self.options.verify_hits { TRUSTS_NONE } else { u32::from(generation) };
        self.trusted.store(trusted, Relaxed);
    }

    /// Whether a look-up takes a record of this generation without verifying it.
    #[inline]
    pub(crate) fn trusts(&self, generation: u16) -> bool {
        u32::from(generation) == self.trusted.load(Relaxed)
    }

    /// Refuses when this process may not write.
    pub(crate) fn check_writable(&self) -> Result<()> {
        if self.read_only {
            let path = self.membership.path().unwrap_or_else(|| "the volume".as_ref()).to_owned();
            return Err(Error::ReadOnly { path, advice: "it was opened read-only" });
        }
        if self.membership.owner_word() == 0 {
            return Err(Error::TooManyProcesses { max: self.layout.processes });
        }
        Ok(())
    }

    /// Before the first write after an attach: the volume isn't clean any more, and storage knows it before
    /// any changed byte can reach it.
    #[inline]
    pub(crate) fn mark_unclean(&self) -> Result<()> {
        if self.marked_unclean.load(Relaxed) {
            return Ok(());
        }
        self.mark_unclean_now()
    }

    #[cold]
    fn mark_unclean_now(&self) -> Result<()> {
        // Synced by each process, whatever the word says: another may have cleared it and not synced it yet.
        Attachment(&self.region).set_clean(false);
        self.sync_superblock()?;
        self.marked_unclean.store(true, Relaxed);
        Ok(())
    }

    pub(crate) fn count_busy(&self) {
        if let Some(thread) = Thread::current(self) {
            thread.count(Counter::Busy);
        }
    }

    /// What a pin of the record at `position` of `stripe` holds: never zero.
    #[inline]
    pub(crate) fn pin_word(stripe: usize, position: u64) -> u64 {
        (1 << 63) | ((stripe as u64) << 40) | position
    }

    /// Splits a pin word; None for what this volume can't have written.
    pub(crate) fn pinned(word: u64) -> Option<(usize, u64)> {
        (word >> 63 == 1).then_some((((word >> 40) & 0xff) as usize, word & ((1 << 40) - 1)))
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        {
            let _gate = fork::gate();
            let this: *const Self = self;
            VOLUMES.lock().unwrap_or_else(PoisonError::into_inner).retain(|listed| !std::ptr::eq(listed.0, this));
        }
        if self.membership.is_own() {
            thread::release_all(self);
            crate::attach::leave(self);
        } else {
            self.membership.forget_inherited();
        }
    }
}
