//! The tier: a volume in shared memory in front of a volume on a disk, for what is asked for often.
//!
//! A tier is a volume, not a second design: it has the same format, stripes, hand and pins, and is shared by all processes
//! that open the volume with one. What it holds are copies of entries. Each hit of one is held against the entry that it was
//! made of ([`is_valid`]), so that removals, overwrites, evictions and purges, of whomever, need no message.
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
//! | `mod.rs` | looking up, and what makes a copy valid |
//! | `fill.rs` | making copies, and giving memory back |
//! | `file.rs` | the file: finding, making, removing it |
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

/// Each so many hits of a thread, the memory is looked at.
const LOOKS_EVERY: u64 = 1024;
/// Slots of a bucket.
const SLOTS: u8 = 8;

/// The tier of a volume, and behind it those of the volumes that took its place ([`crate::resize`]). Shared by all clones of a
/// [`crate::Cache`]. None of them goes before the cache does, since hits may be of each; but all that nobody holds of the
/// former ones is given back.
#[derive(Debug)]
pub(crate) struct Tiers {
    /// Of which volume: [`Volume::id`].
    of: u64,
    /// `None`: it could not be had for that volume.
    tier: Option<Tier>,
    next: OnceLock<Box<Self>>,
}

/// A tier as one process sees it.
#[derive(Debug)]
pub(crate) struct Tier {
    pub(crate) volume: Arc<Volume>,
    pressure: Pressure,
    /// This process has given back a part of a stripe, and goes on with the rest as soon as it is asked for something.
    leaves: AtomicBool,
    /// When the holder of a busy lock was asked for last.
    probed_ms: AtomicU64,
    /// Copies that could have been made where there was no room left.
    offers: AtomicU64,
}

/// What a tier has of a key.
enum Copy<'a> {
    Valid(Hit<'a>),
    /// A copy of what is no more as it was.
    Void,
    Absent,
}

/// Opens the tier that `options` ask for.
pub(crate) fn open(options: &Options, volume: &Arc<Volume>) -> Result<Option<Arc<Tiers>>> {
    let tier = Tier::open(options, volume)?;
    Ok(tier.map(|tier| Arc::new(Tiers { of: volume.id, tier: Some(tier), next: OnceLock::new() })))
}

/// Looks at the tier that others use before `volume`, in `folder`.
pub(crate) fn look(folder: &Path, volume: &Volume) -> Result<Option<FoundTier>> {
    file::look(folder, volume)
}

/// For volumes that can't have a tier.
pub(crate) fn refuse(options: &Options, name: &str) -> Result<()> {
    match options.tier {
        None => Ok(()),
        Some(_) => Err(Error::NoTier { path: PathBuf::from(name), why: "it has no file" }),
    }
}

/// Under the attach lock of a tier that is about to be joined, and of any other volume.
///
/// # Errors
/// `NotFound` when whoever left last has removed the tier. `TooManyProcesses` in a forked child that isn't one of the
/// processes of the volume behind the tier: who is in the tier keeps that volume from being put in order.
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

/// Of a tier: the time of the volume that it stands in front of, by which its copies were made.
pub(crate) fn time_base(volume: &Volume) -> Option<u64> {
    volume.front_of.as_ref().map(|behind| behind.time_base.load(Relaxed))
}

/// Under the attach lock, after this process has left a tier.
pub(crate) fn after_leaving(tier: &Volume, door: &Door) {
    file::after_leaving(tier, door);
}

impl Tiers {
    /// The tier of a volume that the first one was opened for, or that has taken its place.
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
                // One that has been replaced again needs none.
                None if volume.purges().moved() != 0 => return None,
                None => last.follow(volume),
            };
        }
        last.tier.as_ref()
    }

    /// Puts the tier of `volume` behind this one.
    fn follow(&self, volume: &Volume) -> &Self {
        // Opened before the cell is asked to take it: children forked meanwhile would wait for the cell for ever.
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

    /// Whether its file is what it was: not truncated, nor resized by somebody as a volume.
    fn is_usable(&self) -> bool {
        self.volume.check_intact().and_then(|()| self.volume.check_present()).is_ok()
    }

    /// `None` once the tier can't be used any more.
    pub(crate) fn stats(&self) -> Result<Option<TierStats>> {
        let stats = stats::collect_tier(&self.volume);
        if self.is_usable() { stats.map(Some) } else { Ok(None) }
    }

    /// As [`read::get_at`], of a volume that this is the tier of.
    #[inline]
    pub(crate) fn get<'a>(
        &'a self,
        volume: &'a Volume,
        place: &Place,
        key: &[u8],
        wanted: Wanted,
    ) -> Result<Option<Hit<'a>>> {
        // They are looked at in any case: to hold a copy against its origin, or because there is none.
        volume.prefetch_buckets(place);
        let renews = match self.get_copy(volume, place, key, wanted) {
            Copy::Valid(hit) => return Ok(Some(hit)),
            Copy::Void => true,
            Copy::Absent => false,
        };
        let consider = |found: &Pinned<'_>| self.consider(volume, place, found, renews);
        read::get_watched(volume, place, key, Use::Counts, wanted, consider)
    }

    /// Asks for the cache lines of a key, ahead of their use.
    pub(crate) fn prefetch(&self, place: &Place) {
        self.volume.prefetch_buckets(&self.place(place));
    }

    /// Where the key of another volume's place is in the tier: both take it from the same hash.
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
        // What was found, and held against the volume, may have been zeros.
        if tier.has_failed() {
            found.release();
            return Copy::Absent;
        }
        let Some((slot, seen)) = valid else {
            found.release();
            thread.count(Counter::Misses);
            return Copy::Void;
        };
        read::count(thread, Use::Counts, Some(&found));
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

/// Whether a copy, pinned in a tier, is as good as the entry of `volume` that it was made of: the slot of that entry, with its
/// frequency, or `None` for a void one.
///
/// First the purges: which might have been forgotten is known before any note goes. Then the slot: what is dropped for a purge,
/// is dropped before its note goes, so that whoever misses the note finds the slot changed. Last the tail: one that hasn't
/// passed the entry by then hadn't when the slot was loaded, so that no other record can stand where the slot points.
#[inline]
fn is_valid<'a>(volume: &'a Volume, place: &Place, copy: &Pinned<'_>) -> Option<(&'a AtomicU64, Slot)> {
    // Times of a live entry become later in place: one that isn't fresh here may still be so there.
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
