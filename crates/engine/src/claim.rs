//! Claims: a process's right to change one key while user code runs.
//!
//! A claim lies in the volume's table and needs no stripe lock while it is held. It contains the key's hash and a
//! futex word that names its holder. The claim of a dead holder is void. A put or remove of the same key voids a
//! claim on it, so that what the holder stores later doesn't undo it.
//!
//! A process that fills an entry by a [`crate::Writer`] publishes its progress in the claim's line, for followers
//! ([`Line::fill`]).

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::time::{Duration, Instant};

use eyewall_region::{fork, futex};

use crate::error::{Error, Result};
use crate::format::hash::Place;
use crate::format::owner::Owner;
use crate::protocol::{Progress, WAITERS};
use crate::seam;
use crate::stripe::Stripe;
use crate::volume::Volume;

const HASH: usize = 0;
const HOLDER: usize = 8;
const VOIDED: usize = 12;
const ROOM: usize = 16;
const PROGRESS: usize = 24;
const PROMISE: usize = 32;
const SIGNAL: usize = 40;
/// How often a waiting process checks whether the process that it waits for is alive.
pub(crate) const PROBE_EVERY: Duration = Duration::from_millis(5);

/// A held claim. Dropping it releases the claim.
#[derive(Debug)]
pub(crate) struct Claim<'a> {
    volume: &'a Volume,
    line: Line,
}

/// The place of a held claim. Its owner must release the claim.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line {
    at: usize,
    fork: u32,
}

/// The state of the claim on one key, seen while its stripe is locked.
enum Look {
    /// A living process holds it: wait on this word while it has this value.
    Held(usize, u32),
    Free(usize),
    TableFull,
}

/// The result of an attempt to take a claim.
pub(crate) enum Attempt<'a> {
    Got(Claim<'a>),
    Held(Holder),
    /// Too many other keys of the stripe are claimed.
    TableFull,
}

/// Another holder's claim on a key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Holder {
    at: usize,
    hash: u64,
    word: u32,
}

impl<'a> Claim<'a> {
    /// Waits for the key's claim and takes it.
    pub(crate) fn acquire(volume: &'a Volume, place: &Place) -> Result<Self> {
        let start = Instant::now();
        loop {
            let attempt = Self::attempt(volume, place)?;
            if let Attempt::Got(claim) = attempt {
                return Ok(claim);
            }
            let waited = start.elapsed();
            let Some(left) = volume.lock_deadline.checked_sub(waited).filter(|left| !left.is_zero()) else {
                volume.count_busy();
                return Err(Error::Busy { what: "another update of the same key", waited });
            };
            attempt.wait(volume, left);
        }
    }

    /// Takes the key's claim if no living process has it.
    pub(crate) fn attempt(volume: &'a Volume, place: &Place) -> Result<Attempt<'a>> {
        let stripe = Stripe::lock(volume, place.stripe)?;
        let at = match look(&stripe, place.hash) {
            Look::Free(at) => at,
            Look::Held(at, word) => return Ok(Attempt::Held(Holder { at, hash: place.hash, word })),
            Look::TableFull => return Ok(Attempt::TableFull),
        };
        seam::kill_point();
        // Before anything else, so that followers of a former holder don't take the new fill for that one.
        for word in [ROOM, PROMISE, PROGRESS] {
            volume.region.word(at + word).store(0, Release);
        }
        volume.region.word(at + HASH).store(place.hash, Relaxed);
        volume.region.half(at + VOIDED).store(0, Relaxed);
        seam::kill_point();
        volume.region.half(at + HOLDER).store(volume.membership.owner_word(), Release);
        seam::kill_point();
        stripe.claims_hint().store(1, Relaxed);
        Ok(Attempt::Got(Self { volume, line: Line { at, fork: fork::generation() } }))
    }

    /// Whether the entry was changed since the claim was taken. Clears that mark, so that the caller can look at the
    /// entry again.
    pub(crate) fn renew(&self) -> bool {
        self.volume.region.half(self.line.at + VOIDED).swap(0, AcqRel) != 0
    }

    pub(crate) fn line(&self) -> Line {
        self.line
    }

    /// Keeps the claim beyond this guard; the caller must release it.
    pub(crate) fn into_line(self) -> Line {
        std::mem::ManuallyDrop::new(self).line
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.line.release(self.volume);
    }
}

impl Attempt<'_> {
    /// Waits for a short time, up to `limit`, until another attempt may succeed.
    pub(crate) fn wait(&self, volume: &Volume, limit: Duration) {
        match self {
            Self::Got(_) => {}
            Self::Held(holder) => holder.wait(volume, limit),
            Self::TableFull => std::thread::sleep(Duration::from_millis(1).min(limit)),
        }
    }
}

impl Holder {
    /// Sleeps until the claim is released, for up to `limit`, and not longer than until the next check whether its
    /// holder is alive.
    pub(crate) fn wait(self, volume: &Volume, limit: Duration) {
        let holder = volume.region.half(self.at + HOLDER);
        let asleep = self.word | WAITERS;
        if self.word == asleep || holder.compare_exchange(self.word, asleep, Relaxed, Relaxed).is_ok() {
            futex::wait(holder, asleep, PROBE_EVERY.min(limit));
        }
    }

    /// Whether this holder no longer holds the claim.
    pub(crate) fn is_gone(self, volume: &Volume) -> bool {
        let now = volume.region.half(self.at + HOLDER).load(Acquire);
        now & !WAITERS != self.word & !WAITERS
            || volume.region.word(self.at + HASH).load(Relaxed) != self.hash
            || !is_held(volume, now)
    }
}

impl Line {
    /// Whether a put, remove or clear came in between, or this is a child that was forked with the claim. Called
    /// under the stripe's lock.
    pub(crate) fn is_void(self, stripe: &Stripe<'_>) -> bool {
        !self.is_own() || stripe.volume.region.half(self.at + VOIDED).load(Acquire) != 0
    }

    /// Whether this process took the claim, and not one that it was forked from.
    pub(crate) fn is_own(self) -> bool {
        self.fork == fork::generation()
    }

    pub(crate) fn release(self, volume: &Volume) {
        if !self.is_own() {
            return;
        }
        seam::kill_point();
        let holder = volume.region.half(self.at + HOLDER);
        if holder.swap(0, Release) & WAITERS != 0 {
            futex::wake(holder, u32::MAX >> 1);
        }
    }

    /// The progress of the claim's holder in filling the key's entry.
    ///
    /// The holder writes these words. The holder of the stripe's lock may store zero in the first one
    /// ([`forget_rooms`]). Any process may read them, by the steps of [`crate::protocol::follow`].
    pub(crate) fn fill(self, volume: &Volume) -> Progress<'_, AtomicU64, AtomicU32> {
        let word = |at| volume.region.word(self.at + at);
        Progress {
            room: word(ROOM),
            bytes: word(PROGRESS),
            promise: word(PROMISE),
            signal: volume.region.half(self.at + SIGNAL),
        }
    }

    /// Whether any living process holds the claim.
    pub(crate) fn is_held(self, volume: &Volume) -> bool {
        is_held(volume, volume.region.half(self.at + HOLDER).load(Acquire))
    }
}

/// The claims of a stripe that may be on `hash`. Needs no lock, so the caller must check them.
pub(crate) fn of_key(volume: &Volume, place: &Place) -> impl Iterator<Item = Line> {
    let (stripe, hash) = (place.stripe, place.hash);
    (0..volume.layout.claims).filter_map(move |claim| {
        let at = volume.layout.claim_at(stripe, claim);
        let taken = volume.region.half(at + HOLDER).load(Acquire) != 0;
        (taken && volume.region.word(at + HASH).load(Relaxed) == hash).then(|| Line { at, fork: fork::generation() })
    })
}

/// Makes all claims of the stripe forget rooms at positions that `wanted` accepts. Called before others get these
/// bytes.
pub(crate) fn forget_rooms(stripe: &Stripe<'_>, wanted: impl Fn(u64) -> bool) {
    let volume = stripe.volume;
    for claim in 0..volume.layout.claims {
        let room = volume.region.word(volume.layout.claim_at(stripe.number, claim) + ROOM);
        if Volume::pinned(room.load(Acquire)).is_some_and(|(at, position)| at == stripe.number && wanted(position)) {
            seam::kill_point();
            room.store(0, Release);
        }
    }
}

fn look(stripe: &Stripe<'_>, hash: u64) -> Look {
    let volume = stripe.volume;
    let mut free = None;
    for claim in 0..volume.layout.claims {
        let at = volume.layout.claim_at(stripe.number, claim);
        let word = volume.region.half(at + HOLDER).load(Acquire);
        let ours = volume.region.word(at + HASH).load(Relaxed) == hash;
        if word == 0 {
            free = free.or(Some(at));
        } else if (ours || free.is_none()) && !is_held(volume, word) {
            volume.region.half(at + HOLDER).store(0, Release);
            free = free.or(Some(at));
        } else if ours {
            return Look::Held(at, word);
        }
    }
    free.map_or(Look::TableFull, Look::Free)
}

fn is_held(volume: &Volume, word: u32) -> bool {
    Owner::from_word(word & !WAITERS)
        .is_some_and(|owner| volume.membership.is_alive(&volume.region, &volume.layout, owner))
}

/// Voids the claim on `hash`, or all claims of the stripe. Costs one load if there are none.
pub(crate) fn void(stripe: &Stripe<'_>, hash: Option<u64>) {
    if stripe.claims_hint().load(Relaxed) == 0 {
        return;
    }
    let volume = stripe.volume;
    let mut any = false;
    for claim in 0..volume.layout.claims {
        let at = volume.layout.claim_at(stripe.number, claim);
        if volume.region.half(at + HOLDER).load(Acquire) == 0 {
            continue;
        }
        any = true;
        if hash.is_none_or(|hash| volume.region.word(at + HASH).load(Relaxed) == hash) {
            volume.region.half(at + VOIDED).store(1, Release);
        }
    }
    if !any {
        stripe.claims_hint().store(0, Relaxed);
    }
}
