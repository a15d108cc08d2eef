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
use crate::format::purges::{PAGE_WORDS, Purges};
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
    /// Every volume lives in an `Arc`; this refers to it.
    pub(crate) this: Weak<Self>,
    pub(crate) region: Region,
    pub(crate) layout: Layout,
    /// For each stripe, where its first bucket is, and roughly how many buckets it has.
    pub(crate) indexes: [StripeIndex; STRIPES_MAX as usize],
    pub(crate) secret: Secret,
    /// The part of the superblock that never changes, as this process read it when it opened the volume.
    pub(crate) header: Static,
    /// The volume's time when a put of this process last checked the superblock.
    pub(crate) looked_ms: AtomicU64,
    /// Unique in this process. Thread-local state refers to a volume by it, not by address.
    pub(crate) id: u64,
    /// The id of the first volume in the chain of those that replaced one another in this process.
    pub(crate) lineage: u64,
    pub(crate) read_only: bool,
    /// The options it was opened with, for the volume that replaces it.
    pub(crate) options: Options,
    /// The volume that replaced it when it was resized, once this process has found it.
    pub(crate) successor: OnceLock<Arc<Self>>,
    /// Whether dead entries are overwritten with zeros.
    pub(crate) erases: bool,
    pub(crate) lock_deadline: Duration,
    /// The pages that this process has mapped for writing.
    pub(crate) mapped: Mapped,
    /// For tiling: what slots named when this process first tiled.
    pub(crate) named: Named,
    pub(crate) membership: Membership,
    /// The attachment of this process. Records that were verified in it are trusted.
    pub(crate) generation: AtomicU16,
    /// The same for look-ups, or [`TRUSTS_NONE`] if each hit must be verified.
    pub(crate) trusted: AtomicU32,
    /// The volume's time at the start of the machine.
    pub(crate) time_base: AtomicU64,
    /// Whether this process has marked the volume as written to.
    pub(crate) marked_unclean: std::sync::atomic::AtomicBool,
    /// Heap bytes that hits of this process hold as copies, because too much was pinned.
    pub(crate) copied_bytes: AtomicU64,
    /// Pins of owned hits, so that owned hits of one entry share one. Locked only while the fork gate is held.
    pub(crate) shared_pins: Mutex<HashMap<SharedKey, Weak<SharedPin>>>,
    /// Created at its first use, since few callers need it.
    pub(crate) recently_resident: OnceLock<RecentlyResident>,
    /// For a tier: the volume behind it, which stays open as long as the tier does.
    pub(crate) front_of: Option<Arc<Self>>,
}

/// What a look-up needs to know about a stripe's index.
#[derive(Debug)]
pub(crate) struct StripeIndex {
    first_bucket_at: usize,
    /// The line of the stripe that each look-up reads.
    read_line_at: usize,
    /// The first byte of its rings.
    pub(crate) data_at: usize,
    /// See [`Buckets::bounded`].
    mask: AtomicU32,
}

impl StripeIndex {
    pub(crate) fn all_of(layout: &Layout) -> [Self; STRIPES_MAX as usize] {
        std::array::from_fn(|stripe| {
            // The others name the first stripe: no key leads to them, and no offset may lie outside.
            let stripe = if (stripe as u64) < layout.stripes { stripe } else { 0 };
            Self {
                first_bucket_at: layout.bucket_at(stripe, 0),
                read_line_at: stripe::read_line_at(layout, stripe),
                data_at: layout.stripe_data_at(stripe) as usize,
                mask: AtomicU32::new(0),
            }
        })
    }
}

/// A generation that no record has.
const TRUSTS_NONE: u32 = u32::MAX;

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// The volumes of this process. Accessed only while the fork gate is held.
static VOLUMES: Mutex<Vec<Listed>> = Mutex::new(Vec::new());

struct Listed(*const Volume);

// SAFETY: the pointer is only followed while the fork gate is held, and `Volume::drop` takes the gate to remove it.
unsafe impl Send for Listed {}

/// The id for a new volume.
pub(crate) fn next_id() -> u64 {
    NEXT_ID.fetch_add(1, Relaxed)
}

/// Installs the fork hook. Called before anything is locked for a volume, so that children register from then on.
pub(crate) fn watch_forks() {
    fork::on_child(register_in_child);
}

/// Makes `volume` known to the fork hook and to ending threads.
pub(crate) fn list(volume: &Volume) {
    let _gate = fork::gate();
    VOLUMES.lock().unwrap_or_else(PoisonError::into_inner).push(Listed(volume));
}

/// Runs `f` with the volume of this id, if it is still open. The caller must hold the fork gate.
pub(crate) fn with_volume(id: u64, f: impl FnOnce(&Volume)) {
    let volumes = VOLUMES.lock().unwrap_or_else(PoisonError::into_inner);
    for listed in volumes.iter() {
        // SAFETY: listed volumes live until they have removed themselves, which needs the gate that our caller holds.
        let volume = unsafe { &*listed.0 };
        if volume.id == id {
            return f(volume);
        }
    }
}

/// Registers every volume again in a forked child. Runs right after `fork`, while the child still has the rights to
/// do so.
fn register_in_child() {
    let volumes = VOLUMES.lock().unwrap_or_else(PoisonError::into_inner);
    for listed in volumes.iter() {
        // SAFETY: as in `with_volume`.
        let volume = unsafe { &*listed.0 };
        volume.membership.forget_inherited();
        if !volume.read_only && !volume.has_failed() {
            // If that fails, the child has no owner word: it reads copies, and its writes are refused.
            let _ = crate::attach::join(volume);
        }
    }
}

impl Volume {
    #[inline]
    pub(crate) fn place(&self, key: &[u8]) -> Place {
        hash::place(&self.layout, hash::key_hash(&self.secret, key))
    }

    #[inline]
    pub(crate) fn index(&self, stripe: usize) -> &StripeIndex {
        &self.indexes[stripe % STRIPES_MAX as usize]
    }

    /// The line of a stripe that each look-up reads.
    #[inline]
    pub(crate) fn read_line(&self, stripe: usize) -> &[AtomicU64; 8] {
        // SAFETY: as in `bucket_line`.
        unsafe { &*self.region.address(self.index(stripe).read_line_at).cast::<[AtomicU64; 8]>() }
    }

    /// The present buckets of a stripe.
    #[inline]
    pub(crate) fn buckets(&self, stripe: usize) -> Buckets {
        self.buckets_of_word(stripe, stripe::buckets_word(self, stripe).load(Acquire))
    }

    /// The same from their word.
    #[inline]
    pub(crate) fn buckets_of_word(&self, stripe: usize, word: u64) -> Buckets {
        Buckets::bounded(word, &self.layout, &self.index(stripe).mask)
    }

    /// Whether no step was made since `buckets` was loaded, so that what was read as a slot is one. Asked after the
    /// last look at the slot.
    #[inline]
    pub(crate) fn has_still(&self, stripe: usize, buckets: Buckets) -> bool {
        protocol::is_same_step(stripe::buckets_word(self, stripe), buckets.word)
    }

    /// One of a key's two buckets.
    #[inline]
    pub(crate) fn bucket(&self, place: &Place, which: usize, buckets: Buckets) -> &[AtomicU64; 8] {
        self.bucket_line(place.stripe, buckets.of(place.picks[which]))
    }

    /// A bucket of a stripe. Its number must be one that the stripe can have.
    #[inline]
    pub(crate) fn bucket_line(&self, stripe: usize, bucket: u64) -> &[AtomicU64; 8] {
        debug_assert!(bucket < self.layout.buckets_max && (stripe as u64) < self.layout.stripes);
        let at = self.index(stripe).first_bucket_at - (bucket * BUCKET_BYTES) as usize;
        // SAFETY: the layout reaches this far, and was checked against the region at open. Lines are aligned and only
        // ever accessed atomically.
        unsafe { &*self.region.address(at).cast::<[AtomicU64; 8]>() }
    }

    /// Prefetches both buckets of a key.
    #[inline]
    pub(crate) fn prefetch_buckets(&self, place: &Place) {
        let buckets = self.buckets(place.stripe);
        for pick in place.picks {
            self.region.prefetch(self.layout.bucket_at(place.stripe, buckets.of(pick)));
        }
    }

    /// The volume's time in milliseconds. It starts from the wall clock at the first attachment of this boot, and
    /// continues by the clock since boot. Setting the wall clock doesn't change it. No boot starts earlier than the
    /// last time that was noted.
    #[inline]
    pub(crate) fn now_ms(&self) -> u64 {
        self.time_base.load(Relaxed) + clock::since_boot_ms()
    }

    /// Notes the present time for later boots.
    pub(crate) fn see_time(&self) {
        Attachment(&self.region).see_time(self.now_ms());
    }

    /// A number that no other volume has, since the part of the superblock that never changes has its secret.
    pub(crate) fn identity(&self) -> u64 {
        let bytes: Vec<u8> = self.header.iter().flat_map(|word| word.to_le_bytes()).collect();
        xxhash_rust::xxh3::xxh3_64(&bytes)
    }

    /// The volume's name for messages.
    pub(crate) fn name(&self) -> &std::path::Path {
        self.membership.path().unwrap_or_else(|| "the volume".as_ref())
    }

    #[inline]
    pub(crate) fn purges(&self) -> Purges<'_> {
        // SAFETY: a volume has more than a page, which was checked at open, and it begins at an aligned address. Its
        // words are only ever accessed atomically.
        Purges::of(unsafe { &*self.region.address(0).cast::<[AtomicU64; PAGE_WORDS]>() })
    }

    /// A bucket of the table of purged tags: floors and seven cells.
    pub(crate) fn tag_line(&self, line: u64) -> &[AtomicU64; 8] {
        self.region.line(self.layout.tag_line_at(line))
    }

    /// A Bloom filter for each bucket. If it lacks a bit of a tag, the tag is in none of the cells, and no floor
    /// covers it.
    #[inline]
    pub(crate) fn tag_filters(&self) -> &[AtomicU32] {
        self.region.halves(self.layout.tag_filters_at as usize, self.layout.tag_lines as usize)
    }

    fn storage_error(&self, error: std::io::Error) -> Error {
        Error::io("syncing", self.membership.path().unwrap_or_else(|| "the volume".as_ref()), error)
    }

    /// Writes the superblock's page to storage.
    pub(crate) fn sync_superblock(&self) -> Result<()> {
        Attachment(&self.region).sync().map_err(|error| self.storage_error(error))
    }

    /// Writes everything so far to storage.
    pub(crate) fn sync_all(&self) -> Result<()> {
        self.region.sync(0, self.region.len()).map_err(|error| self.storage_error(error))
    }

    #[inline]
    pub(crate) fn generation(&self) -> u16 {
        self.generation.load(Relaxed)
    }

    /// Takes over the generation of the attachment that this process has joined.
    pub(crate) fn set_generation(&self, generation: u16) {
        self.generation.store(generation, Relaxed);
        let trusted = if self.options.verify_hits { TRUSTS_NONE } else { u32::from(generation) };
        self.trusted.store(trusted, Relaxed);
    }

    /// Whether a look-up accepts a record of this generation without verifying it.
    #[inline]
    pub(crate) fn trusts(&self, generation: u16) -> bool {
        u32::from(generation) == self.trusted.load(Relaxed)
    }

    /// Returns an error if this process may not write.
    pub(crate) fn check_writable(&self) -> Result<()> {
        if self.read_only {
            let path = self.membership.path().unwrap_or_else(|| "the volume".as_ref()).to_owned();
            return Err(Error::ReadOnly { path, advice: "this cache was opened read-only; open it for writing" });
        }
        if self.membership.owner_word() == 0 {
            return Err(Error::TooManyProcesses { max: self.layout.processes });
        }
        Ok(())
    }

    /// Called before the first write after an attach. Marks the volume as not clean, and writes that to storage
    /// before any changed byte can reach it.
    #[inline]
    pub(crate) fn mark_unclean(&self) -> Result<()> {
        if self.marked_unclean.load(Relaxed) {
            return Ok(());
        }
        self.mark_unclean_now()
    }

    #[cold]
    fn mark_unclean_now(&self) -> Result<()> {
        // Each process syncs, whatever the word says: another process may have cleared it and not synced it yet.
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

    /// The content of a pin for the record at `position` of `stripe`; never zero.
    #[inline]
    pub(crate) fn pin_word(stripe: usize, position: u64) -> u64 {
        (1 << 63) | ((stripe as u64) << 40) | position
    }

    /// Splits a pin word; `None` for a word that this volume can't have written.
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
