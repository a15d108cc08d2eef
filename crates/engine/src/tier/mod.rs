//! The tier: a volume in shared memory in front of a volume on a disk, for entries that are read often.
//!
//! A tier is a volume of the same design: it has the same format, stripes, hand and pins. All processes that open the
//! volume with a tier share one. It holds copies of entries. A hit of a copy is compared with the entry that it was
//! made from ([`is_valid`]). So processes need no messages about removals, overwrites, evictions and purges.
//!
//! ```text
//!  get --> the tier's index --> copy, pinned --> its origin: is the volume's slot as it was?  yes: hit
//!             | none                                              | no: the copy is void
//!             v                                                   v
//!          the volume's index --> hit --> asked for often: copied into the tier
//! ```
//!
//! | file | what it holds |
//! |---|---|
//! | `mod.rs` | look-ups, and when a copy is valid |
//! | `fill.rs` | making copies, and giving memory back |
//! | `file.rs` | finding, creating and removing the file |
//! | `pressure.rs` | how much memory there is |

mod file;
mod fill;
mod pressure;

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, OnceLock};

use self::pressure::Pressure;
use crate::error::{Error, Result};
use crate::format::hash::{self, Place};
use crate::format::origin::Origin;
use crate::format::slot::Slot;
use crate::format::times::Phase;
use crate::hit::Hit;
use crate::options::Options;
use crate::process::Door;
use crate::purge::{self, Subject, Verdict};
use crate::read::{self, Pinned, Use, Wanted};
use crate::stats::{self, FoundTier, TierStats};
use crate::stripe::{RingId, Stripe};
use crate::thread::{Counter, Thread};
use crate::volume::Volume;

pub(crate) use file::access_of;

/// A thread checks the memory once in this many hits.
const LOOKS_EVERY: u64 = 1024;
/// Slots of a bucket.
const SLOTS: u8 = 8;

/// The tier of a volume, followed by the tiers of the volumes that replaced it ([`crate::resize`]). All clones of a
/// [`crate::Cache`] share it. All of them live as long as the cache, since hits may belong to any of them. But the
/// memory of former tiers is given back, except what somebody holds.
#[derive(Debug)]
pub(crate) struct Tiers {
    /// The [`Volume::id`] of the tier's volume.
    of: u64,
    /// `None` if that volume could not get a tier.
    tier: Option<Tier>,
    next: OnceLock<Box<Self>>,
}

/// A tier as one process sees it.
#[derive(Debug)]
pub(crate) struct Tier {
    pub(crate) volume: Arc<Volume>,
    pressure: Pressure,
    /// This process has given back a part of a stripe. It continues with the rest at its next call.
    leaves: AtomicBool,
    /// When this process last probed the holder of a busy lock.
    probed_ms: AtomicU64,
    /// How many copies could have been made while there was no room.
    offers: AtomicU64,
}

/// What a tier has for a key.
enum Copy<'a> {
    Valid(Hit<'a>),
    /// A copy of an entry that has changed since.
    Void,
    Absent,
}

/// Opens the tier that `options` ask for.
pub(crate) fn open(options: &Options, volume: &Arc<Volume>) -> Result<Option<Arc<Tiers>>> {
    let tier = Tier::open(options, volume)?;
    Ok(tier.map(|tier| Arc::new(Tiers { of: volume.id, tier: Some(tier), next: OnceLock::new() })))
}

/// Looks in `folder` for the tier that others use in front of `volume`.
pub(crate) fn look(folder: &Path, volume: &Volume) -> Result<Option<FoundTier>> {
    file::look(folder, volume)
}

/// Refuses a tier for a volume that can't have one.
pub(crate) fn refuse(options: &Options, name: &str) -> Result<()> {
    match options.tier {
        None => Ok(()),
        Some(_) => Err(Error::NoTier { path: PathBuf::from(name), why: "it has no file" }),
    }
}

/// Checks, under its attach lock, that a volume may be joined. Only a tier can be refused.
///
/// # Errors
/// `NotFound` if the process that left last has removed the tier. `TooManyProcesses` in a forked child that is not
/// registered in the volume behind the tier. A process in the tier would otherwise keep that volume from being put in
/// order.
pub(crate) fn check_joining(volume: &Volume) -> Result<()> {
    let Some(behind) = &volume.front_of else { return Ok(()) };
    if !behind.membership.is_own() {
        return Err(Error::TooManyProcesses { max: behind.layout.processes });
    }
    if !volume.membership.door().is_some_and(Door::has_its_name) {
        return Err(Error::NotFound { path: volume.name().to_owned() });
    }
    Ok(())
}

/// For a tier: the time base of the volume behind it, by which its copies were made.
pub(crate) fn time_base(volume: &Volume) -> Option<u64> {
    volume.front_of.as_ref().map(|behind| behind.time_base.load(Relaxed))
}

/// Called under the attach lock, after this process has left a tier.
pub(crate) fn after_leaving(tier: &Volume, door: &Door) {
    file::after_leaving(tier, door);
}

impl Tiers {
    /// The tier of `volume`, which is the volume that the first tier was opened for, or a successor of it.
    #[inline]
    pub(crate) fn of(&self, volume: &Volume) -> Option<&Tier> {
        if self.of == volume.id { self.tier.as_ref() } else { self.of_successor(volume) }
    }

    #[cold]
    fn of_successor(&self, volume: &Volume) -> Option<&Tier> {
        let mut last = self;
        while last.of != volume.id {
            last = match last.next.get() {
                Some(next) => next,
                // A volume that was itself replaced needs no tier.
                None if volume.purges().moved() != 0 => return None,
                None => last.follow(volume),
            };
        }
        last.tier.as_ref()
    }

    /// Opens the tier of `volume` and links it behind this one.
    fn follow(&self, volume: &Volume) -> &Self {
        // Opened before the cell is asked to take it. Otherwise a child that is forked meanwhile would wait for the
        // cell forever.
        let volume = volume.this.upgrade();
        let opened = volume.as_ref().and_then(|volume| Tier::open(&volume.options, volume).ok().flatten());
        let of = volume.map_or(0, |volume| volume.id);
        // Another thread may have been faster; its tier is as good.
        let next = self.next.get_or_init(|| Box::new(Self { of, tier: opened, next: OnceLock::new() }));
        if let Some(tier) = &self.tier {
            tier.retire();
        }
        next
    }
}

impl Tier {
    fn open(options: &Options, volume: &Arc<Volume>) -> Result<Option<Self>> {
        let Some(bytes) = options.tier else { return Ok(None) };
        Ok(Some(Self {
            volume: file::open(options, bytes, volume)?,
            pressure: Pressure::new(),
            leaves: AtomicBool::new(false),
            probed_ms: AtomicU64::new(0),
            offers: AtomicU64::new(0),
        }))
    }

    /// Whether the file is still what it was: neither truncated nor resized as if it were a volume.
    fn is_usable(&self) -> bool {
        self.volume.check_intact().and_then(|()| self.volume.check_present()).is_ok()
    }

    /// `None` once the tier can no longer be used.
    pub(crate) fn stats(&self) -> Result<Option<TierStats>> {
        let stats = stats::collect_tier(&self.volume);
        if self.is_usable() { stats.map(Some) } else { Ok(None) }
    }

    /// Like [`read::get_at`], for the volume behind this tier.
    #[inline]
    pub(crate) fn get<'a>(
        &'a self,
        volume: &'a Volume,
        place: &Place,
        key: &[u8],
        wanted: Wanted,
    ) -> Result<Option<Hit<'a>>> {
        // These buckets are needed in any case: to check a copy against its origin, or because there is no copy.
        volume.prefetch_buckets(place);
        let renews = match self.get_copy(volume, place, key, wanted) {
            Copy::Valid(hit) => return Ok(Some(hit)),
            Copy::Void => true,
            Copy::Absent => false,
        };
        let consider = |found: &Pinned<'_>| self.consider(volume, place, found, renews);
        read::get_watched(volume, place, key, Use::Counts, wanted, consider)
    }

    /// Prefetches the cache lines of a key.
    pub(crate) fn prefetch(&self, place: &Place) {
        self.volume.prefetch_buckets(&self.place(place));
    }

    /// The place in the tier of a key with this place in the volume. Both follow from the same hash.
    #[inline]
    fn place(&self, place: &Place) -> Place {
        hash::place(&self.volume.layout, place.hash)
    }

    #[inline]
    fn get_copy<'a>(&'a self, volume: &'a Volume, place: &Place, key: &[u8], wanted: Wanted) -> Copy<'a> {
        let tier = &*self.volume;
        let own = self.place(place);
        // A forked child that could not register has no owner word.
        if tier.membership.owner_word() == 0 || tier.has_failed() {
            return Copy::Absent;
        }
        let Some(thread) = Thread::current(tier) else { return Copy::Absent };
        let pin = thread.free_pin().filter(|_| !read::must_copy(tier, own.stripe));
        let Some(found) = pin.and_then(|pin| read::find(tier, &own, key, wanted, pin)) else { return Copy::Absent };
        let valid = is_valid(volume, place, &found);
        // The copy, and what was compared with the volume, may have been lost bytes that read as zeros.
        if tier.has_failed() {
            found.release();
            return Copy::Absent;
        }
        let Some((slot, seen)) = valid else {
            found.release();
            thread.count(Counter::Misses);
            return Copy::Void;
        };
        read::count_hit(thread, Use::Counts, &found);
        read::raise(slot, seen);
        if let Some(thread) = Thread::current(volume) {
            thread.count(Counter::Hits);
        }
        if thread.is_nth(Counter::Hits, LOOKS_EVERY) {
            self.look_at_memory();
        }
        Copy::Valid(found.into_hit())
    }
}

/// Whether a copy, pinned in a tier, is as good as the entry of `volume` that it was made from. Returns the slot of
/// that entry with its frequency, or `None` if the copy is void.
///
/// The order of the checks matters:
///
/// - The purges come first. Which purges may have been forgotten is known before any note goes.
/// - Then comes the slot. What a purge drops is dropped before its note goes, so a reader that misses the note finds
///   the slot changed.
/// - The tail comes last. If it hasn't passed the entry at this point, it hadn't when the slot was loaded, so no
///   other record can be where the slot points.
#[inline]
fn is_valid<'a>(volume: &'a Volume, place: &Place, copy: &Pinned<'_>) -> Option<(&'a AtomicU64, Slot)> {
    // The times of a live entry may become later in place, so an entry that isn't fresh in the tier may still be
    // fresh in the volume.
    if copy.phase != Phase::Fresh {
        return None;
    }
    let [key, metadata, _] = copy.parts();
    let (origin, metadata) = Origin::read(metadata)?;
    let purges = volume.purges();
    if u64::from(origin.epoch) != purges.epoch() {
        let subject = Subject { epoch: origin.epoch, flags: copy.record.flags(), key, metadata };
        if purge::judge(volume, &subject) != Verdict::Untouched || purges.retired() != u64::from(origin.retired) {
            return None;
        }
    }
    let buckets = volume.buckets(place.stripe);
    let slot = volume.bucket(place, usize::from(origin.at / SLOTS), buckets).get(usize::from(origin.at % SLOTS))?;
    let seen = Slot(slot.load(SeqCst));
    if !seen.same_record(origin.slot) || !seen.may_hold(place) || !volume.has_still(place.stripe, buckets) {
        return None;
    }
    let ring = Stripe::unlocked(volume, place.stripe).ring(RingId::of(volume, seen.position()));
    ring.reaches(origin.offset).then_some((slot, seen))
}
