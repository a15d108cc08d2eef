//! The few steps on shared words on which everything else rests, separate from the code around them.
//!
//! They are written for the traits [`Word`] and [`HalfWord`], so that `tests/model_*.rs` run this same code under
//! loom, in every interleaving. `docs/invariants.md` says who may do what.

use std::sync::atomic::Ordering::{self, Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicU32, AtomicU64};

/// A shared 64-bit word.
pub trait Word {
    /// Loads.
    fn load(&self, order: Ordering) -> u64;
    /// Stores.
    fn store(&self, value: u64, order: Ordering);
    /// Stores `new` if the word holds `current`; otherwise returns what it holds.
    fn compare_exchange(&self, current: u64, new: u64) -> Result<u64, u64>;
    /// Stores (Release), followed by a full fence: no later load of this thread is ordered before the store.
    fn store_fenced(&self, value: u64);
    /// A full fence.
    fn fence();
}

/// A shared 32-bit word.
pub trait HalfWord {
    /// Loads (Acquire).
    fn load(&self) -> u32;
    /// Stores `new` if the word holds `current`; otherwise returns what it holds (Acquire).
    fn compare_exchange(&self, current: u32, new: u32) -> Result<u32, u32>;
    /// Stores, and returns the former value (Release).
    fn swap(&self, new: u32) -> u32;
}

impl Word for AtomicU64 {
    #[inline]
    fn load(&self, order: Ordering) -> u64 {
        self.load(order)
    }

    #[inline]
    fn store(&self, value: u64, order: Ordering) {
        self.store(value, order);
    }

    #[inline]
    fn compare_exchange(&self, current: u64, new: u64) -> Result<u64, u64> {
        self.compare_exchange(current, new, SeqCst, Acquire)
    }

    #[inline]
    fn store_fenced(&self, value: u64) {
        if cfg!(target_arch = "x86_64") {
            // One locked exchange is both the store and the fence; an mfence costs several times as much. In the
            // language's model, the swap, the slot's second load, the hand's compare-exchange and its loads of the
            // pins are all SeqCst. Their single total order leaves no other outcome.
            self.swap(value, SeqCst);
        } else {
            // Release: a thread that finds this claim takes the last record of this pin as read.
            self.store(value, Release);
            std::sync::atomic::fence(SeqCst);
        }
    }

    #[inline]
    fn fence() {
        std::sync::atomic::fence(SeqCst);
    }
}

impl HalfWord for AtomicU32 {
    #[inline]
    fn load(&self) -> u32 {
        self.load(Acquire)
    }

    #[inline]
    fn compare_exchange(&self, current: u32, new: u32) -> Result<u32, u32> {
        self.compare_exchange(current, new, Acquire, Acquire)
    }

    #[inline]
    fn swap(&self, new: u32) -> u32 {
        self.swap(new, Release)
    }
}

/// Makes a reader's claim: publishes `claim` in `pin`, then looks at the slot again.
///
/// True: the slot still names what `seen` named, and the record stays where it is until [`unpin`]. (`same` compares,
/// so that a raised frequency doesn't count.) False: the pin is withdrawn; look up again.
#[inline]
pub fn pin<W: Word>(slot: &W, seen: u64, pin: &W, claim: u64, same: impl Fn(u64, u64) -> bool) -> bool {
    pin.store_fenced(claim);
    if same(slot.load(SeqCst), seen) {
        return true;
    }
    unpin(pin);
    false
}

/// Publishes a step of an index. `to` is a word that it never had before. The caller may then store to bytes that
/// were slots until now: a thread that doesn't see the step doesn't see these stores.
#[inline]
pub fn make_step<W: Word>(steps: &W, to: u64) {
    steps.store(to, Release);
    W::fence();
}

/// Whether the word that counts an index's steps is unchanged since the slot's place was computed from it. Asked
/// after the last look at the slot. If so, that was a slot.
#[inline]
pub fn is_same_step<W: Word>(steps: &W, seen: u64) -> bool {
    steps.load(SeqCst) == seen
}

/// Releases a claim. The reads under it happen before any reuse of the bytes.
#[inline]
pub fn unpin<W: Word>(pin: &W) {
    pin.store(0, Release);
}

/// Replaces the content of a slot. Only the holder of the stripe's lock calls this.
///
/// A failed exchange means that a reader raised the frequency; then `new` is called again with the present word.
/// Returns the word that was replaced.
#[inline]
pub fn replace<W: Word>(slot: &W, mut new: impl FnMut(u64) -> u64) -> u64 {
    let mut current = slot.load(Relaxed);
    loop {
        match slot.compare_exchange(current, new(current)) {
            Ok(replaced) => return replaced,
            Err(changed) => current = changed,
        }
    }
}

/// Collects the claims in `pins` for `wanted`, after [`replace`] has removed records from the index.
///
/// A record whose claim isn't among them may be overwritten: any reader that publishes its claim later finds the slot
/// changed.
#[inline]
pub fn collect_pins<'a, W: Word + 'a>(pins: impl Iterator<Item = &'a W>, mut wanted: impl FnMut(u64)) {
    W::fence();
    for pin in pins {
        let claim = pin.load(SeqCst);
        if claim != 0 {
            wanted(claim);
        }
    }
}

/// Set in a lock word while somebody may sleep on it.
pub const WAITERS: u32 = 1 << 31;

/// Takes a free lock for `me`. Otherwise returns the present word.
#[inline]
pub fn try_lock<H: HalfWord>(lock: &H, me: u32) -> Result<(), u32> {
    lock.compare_exchange(0, me).map(drop)
}

/// Takes a lock whose holder, named by the word `dead`, is known to be dead. True: the lock is `me`'s now, and the
/// stripe must be repaired before anything else.
///
/// If several try, one of them succeeds. None does if the word has changed since it was probed.
#[inline]
pub fn take_over<H: HalfWord>(lock: &H, dead: u32, me: u32) -> bool {
    lock.compare_exchange(dead, me | WAITERS).is_ok()
}

/// Releases a lock. True: somebody may be waiting for it and must be woken.
#[inline]
pub fn unlock<H: HalfWord>(lock: &H) -> bool {
    lock.swap(0) & WAITERS != 0
}

/// The progress of a fill: words that one writer changes and any number of followers read.
///
/// The writer stores the promise before the first room. It stores a room before it counts bytes that only this room
/// holds. It clears the room before it gives up its pin on it. A process that frees the room of a dead writer also
/// clears it first, before scanning the pins.
#[derive(Debug)]
pub struct Progress<'a, W, H> {
    /// The content of a pin of the room; 0 if there is none.
    pub room: &'a W,
    /// How many bytes of the value are in the room.
    pub bytes: &'a W,
    /// The first word of the entry that the room is to become. No other fill has the same.
    pub promise: &'a W,
    /// Changes with each step of the writer. A thread that sleeps on it has set [`WAITERS`].
    pub signal: &'a H,
}

impl<W, H> Clone for Progress<'_, W, H> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W, H> Copy for Progress<'_, W, H> {}

/// What a follower sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Glimpse {
    /// This room, which the follower's pin now holds, and the number of bytes in it.
    Room(u64, u64),
    /// The writer has moved to another room: look again. The pin is free.
    Moved,
    /// The followed fill is over, successful or not. The pin holds what it held before, or something that isn't
    /// needed.
    Over,
}

/// A follower's look at the fill with this `promise`. `held` is what its pin already holds from an earlier look, or
/// 0.
///
/// It loads the byte count first, so a room that is named afterwards holds at least as many bytes. It loads the
/// promise last, which shows whether all this belongs to the right fill.
pub fn follow<W: Word, H>(fill: &Progress<'_, W, H>, promise: u64, pin: &W, held: u64) -> Glimpse {
    let bytes = fill.bytes.load(Acquire);
    let room = fill.room.load(Acquire);
    if room == 0 {
        return Glimpse::Over;
    }
    if room != held && !self::pin(fill.room, room, pin, room, |now, then| now == then) {
        return Glimpse::Moved;
    }
    if fill.promise.load(Acquire) == promise { Glimpse::Room(room, bytes) } else { Glimpse::Over }
}

/// Signals that the writer has changed something. True: somebody may be sleeping and must be woken.
pub fn signal<H: HalfWord>(signal: &H) -> bool {
    let next = signal.load().wrapping_add(1) & !WAITERS;
    signal.swap(next) & WAITERS != 0
}

/// Prepares a follower to sleep if nothing changed since `signal` held `seen`. Returns the value to sleep on; `None`:
/// look again.
pub fn fall_asleep<H: HalfWord>(signal: &H, seen: u32) -> Option<u32> {
    let asleep = seen | WAITERS;
    (seen == asleep || signal.compare_exchange(seen, asleep).is_ok()).then_some(asleep)
}
