//! Claims: one process's right to change one key while user code runs.
//!
//! A claim lives in the volume's table, not under the stripe's lock: it holds the key's hash and a futex
//! word that names its holder. A dead holder's claim is void. A put or remove of the same key voids a claim
//! that covers it, so that what the claim's holder stores later doesn't undo it.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::time::{Duration, Instant};

use eyewall_region::{fork, futex};

use crate::error::{Error, Result};
use crate::format::hash::Place;
use crate::format::owner::Owner;
use crate::protocol::WAITERS;
use crate::seam;
use crate::stripe::Stripe;
use crate::volume::Volume;

const HASH: usize = 0;
const HOLDER: usize = 8;
const VOIDED: usize = 12;
const PROBE_EVERY: Duration = Duration::from_millis(5);

/// A held claim; given back when dropped.
#[derive(Debug)]
pub(crate) struct Claim<'a> {
    volume: &'a Volume,
    at: usize,
    fork: u32,
}

/// The claim of one key, while its stripe is locked.
enum Look {
    /// Somebody living holds it: wait on this word while it holds this value.
    Held(usize, u32),
    Free(usize),
    TableFull,
}

impl<'a> Claim<'a> {
    /// Waits for the key's claim and takes it.
    pub(crate) fn acquire(volume: &'a Volume, place: &Place) -> Result<Self> {
        let start = Instant::now();
        loop {
            let stripe = Stripe::lock(volume, place.stripe)?;
            let look = look(&stripe, place.hash);
            if let Look::Free(at) = look {
                seam::kill_point();
                volume.region.word(at + HASH).store(place.hash, Relaxed);
                volume.region.half(at + VOIDED).store(0, Relaxed);
                seam::kill_point();
                volume.region.half(at + HOLDER).store(volume.membership.owner_word(), Release);
                seam::kill_point();
                stripe.claims_hint().store(1, Relaxed);
                return Ok(Self { volume, at, fork: fork::generation() });
            }
            drop(stripe);
            let waited = start.elapsed();
            let Some(left) = volume.lock_deadline.checked_sub(waited).filter(|left| !left.is_zero()) else {
                volume.count_busy();
                return Err(Error::Busy { what: "another update of the same key", waited });
            };
            match look {
                Look::Held(at, word) => {
                    let holder = volume.region.half(at + HOLDER);
                    let asleep = word | WAITERS;
                    if word == asleep || holder.compare_exchange(word, asleep, Relaxed, Relaxed).is_ok() {
                        futex::wait(holder, asleep, PROBE_EVERY.min(left));
                    }
                }
                Look::Free(_) | Look::TableFull => std::thread::sleep(Duration::from_millis(1).min(left)),
            }
        }
    }

    /// Starts over with a fresh look at the entry, if it was changed since the claim was taken.
    pub(crate) fn renew(&self) -> bool {
        self.volume.region.half(self.at + VOIDED).swap(0, AcqRel) != 0
    }

    /// Whether a put, remove or clear came in between, or this is a child that was forked with the claim. Decided
    /// under the stripe's lock.
    pub(crate) fn is_void(&self, _stripe: &Stripe<'_>) -> bool {
        self.fork != fork::generation() || self.volume.region.half(self.at + VOIDED).load(Acquire) != 0
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        if self.fork != fork::generation() {
            return;
        }
        seam::kill_point();
        let holder: &AtomicU32 = self.volume.region.half(self.at + HOLDER);
        if holder.swap(0, Release) & WAITERS != 0 {
            futex::wake(holder, u32::MAX >> 1);
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

/// Voids the claim on `hash`, or all claims of the stripe. Costs one load where there are none.
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
