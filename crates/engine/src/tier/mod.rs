//! The tier: a volume in shared memory in front of a volume on a disk, for what is asked for often.
//!
//! A tier is a volume, not a second design: it has the same format, stripes, hand and pins, and is shared by all processes
//! that open the volume with one. What it holds are copies of entries. Each hit of one is held against the entry that it was
//! made of ([`Tier::is_valid`]), so that removals, overwrites, evictions and purges, of whomever, need no message.
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

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use self::pressure::Pressure;
use crate::error::{Error, Result};
use crate::format::hash::{self, Place};
use crate::format::origin::Origin;
use crate::format::record::Flags;
use crate::format::slot::Slot;
use crate::format::times::Phase;
use crate::hit::Hit;
use crate::options::Options;
use crate::process::Door;
use crate::purge::{self, Subject, Verdict};
use crate::read::{self, Pinned, Use, Wanted};
use crate::stripe::{RingId, Stripe};
use crate::thread::{Counter, Thread};
use crate::volume::Volume;

pub(crate) use file::access_of;

/// Each so many hits of a thread, the memory is looked at.
const LOOKS_EVERY: u64 = 1024;
/// Slots of a bucket.
const SLOTS: u8 = 8;

/// The tier as one process sees it. Shared by all clones of a [`crate::Cache`].
#[derive(Debug)]
pub(crate) struct Tier {
    pub(crate) volume: Arc<Volume>,
    pressure: Pressure,
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
pub(crate) fn open(options: &Options, volume: &Arc<Volume>) -> Result<Option<Arc<Tier>>> {
    let Some(bytes) = options.tier else { return Ok(None) };
    let volume = file::open(options, bytes, volume)?;
    Ok(Some(Arc::new(Tier {
        volume,
        pressure: Pressure::new(),
        probed_ms: AtomicU64::new(0),
        offers: AtomicU64::new(0),
    })))
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

impl Tier {
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
        if tier.membership.owner_word() == 0 {
            // A forked child that could not register.
            return Copy::Absent;
        }
        let Some(thread) = Thread::current(tier) else { return Copy::Absent };
        let pin = thread.free_pin().filter(|_| !read::must_copy(tier, own.stripe));
        let Some(found) = pin.and_then(|pin| read::find(tier, &own, key, wanted, pin)) else { return Copy::Absent };
        let Some((slot, seen)) = is_valid(volume, place, &found) else {
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
/// The slot first, then the tail: a tail that hasn't passed the entry by then hadn't when the slot was loaded, so that no
/// other record can stand where the slot points. Then the purges, and last whether one was forgotten, which is known before
/// any note of it goes.
#[inline]
fn is_valid<'a>(volume: &'a Volume, place: &Place, copy: &Pinned<'_>) -> Option<(&'a AtomicU64, Slot)> {
    // Times of a live entry become later in place: one that isn't fresh here may still be so there.
    if copy.phase != Phase::Fresh {
        return None;
    }
    let [key, metadata, _] = copy.parts();
    let flags = copy.record.flags();
    let (origin, metadata) = Origin::read(metadata).filter(|_| flags.has(Flags::COPY))?;
    let slot = volume.bucket(place, usize::from(origin.at / SLOTS)).get(usize::from(origin.at % SLOTS))?;
    let seen = Slot(slot.load(SeqCst));
    if !seen.same_record(origin.slot) || !seen.may_hold(place) {
        return None;
    }
    let ring = Stripe::unlocked(volume, place.stripe).ring(RingId::of(volume, seen.position()));
    if ring.tail() > origin.offset {
        return None;
    }
    let purges = volume.purges();
    if u64::from(origin.epoch) != purges.epoch() {
        let subject = Subject { epoch: origin.epoch, flags, key, metadata };
        if purge::judge(volume, &subject) != Verdict::Untouched || purges.retired() != u64::from(origin.retired) {
            return None;
        }
    }
    Some((slot, seen))
}
