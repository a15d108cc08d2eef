//! Thread slots: where a thread publishes its pins and counts its hits.
//!
//! A slot is three cache lines: owner; eight pins; eight counters. Only the thread that holds a slot sets
//! pins in it, so that finding a free pin needs no atomic exchange; anybody who drops a hit clears its pin.
//! The first pin is **transient**: no guard keeps it, so that a copy can always be made.

use std::cell::{Cell, RefCell};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use eyewall_region::fork;

use crate::format::layout::THREAD_BYTES;
use crate::format::superblock::Attachment;
use crate::seam;
use crate::volume::{Volume, with_volume};

/// Each so many misses, a thread looks whether the volume's header is still there: one that was overwritten makes everything a miss.
const MISSES_A_LOOK: u64 = 64;

const PINS: usize = 64;
const COUNTERS: usize = 128;
/// The pin that no guard keeps.
const TRANSIENT: usize = 0;

/// What a thread counts.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Counter {
    Hits,
    Misses,
    Copies,
    Busy,
}

/// A thread slot that the calling thread holds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Thread<'a> {
    volume: &'a Volume,
    lines: &'a Lines,
}

/// A thread slot as it lies in the volume.
#[derive(Debug)]
#[repr(C)]
struct Lines {
    owner: [AtomicU64; 8],
    pins: [AtomicU64; 8],
    counters: [AtomicU64; 8],
}
const _: () = assert!(size_of::<Lines>() == THREAD_BYTES as usize);

#[derive(Clone, Copy)]
struct Held {
    volume: u64,
    fork: u32,
    thread: u32,
    /// Valid as long as that volume is open.
    lines: *const Lines,
}

/// What a thread gives back when it ends.
struct HeldAll(Vec<Held>);

const NOBODYS: Held = Held { volume: 0, fork: 0, thread: 0, lines: std::ptr::null() };

thread_local! {
    static CURRENT: Cell<Held> = const { Cell::new(NOBODYS) };
    /// What was in [`CURRENT`] before it, of another volume: whoever has a tier uses two volumes by turns.
    static PREVIOUS: Cell<Held> = const { Cell::new(NOBODYS) };
    static ALL: RefCell<HeldAll> = const { RefCell::new(HeldAll(Vec::new())) };
}

impl Drop for HeldAll {
    fn drop(&mut self) {
        // Thread-locals of the user may be dropped later, and look something up: they find no slot then.
        CURRENT.set(NOBODYS);
        PREVIOUS.set(NOBODYS);
        let _gate = fork::gate();
        for held in self.0.drain(..).filter(|held| held.fork == fork::generation()) {
            with_volume(held.volume, |volume| give_back(volume, held.thread));
        }
    }
}

impl<'a> Thread<'a> {
    /// The calling thread's slot; None where the table is full or this process isn't registered.
    #[inline]
    pub(crate) fn current(volume: &'a Volume) -> Option<Self> {
        let held = CURRENT.get();
        if is_current(volume, held) {
            return Some(Self::of(volume, held));
        }
        let held = PREVIOUS.get();
        if is_current(volume, held) { Some(Self::of(volume, held)) } else { Self::find(volume) }
    }

    #[inline]
    fn of(volume: &'a Volume, held: Held) -> Self {
        debug_assert!(is_current(volume, held));
        // SAFETY: the lines belong to the volume of that number, which is this one, and it is open.
        Self { volume, lines: unsafe { &*held.lines } }
    }

    #[cold]
    fn find(volume: &'a Volume) -> Option<Self> {
        let known = ALL
            .try_with(|all| {
                let all = all.borrow();
                all.0.iter().find(|held| is_current(volume, **held)).copied()
            })
            .ok()?;
        match known {
            Some(held) => {
                make_current(held);
                Some(Self::of(volume, held))
            }
            None => Self::another(volume, volume.layout.threads),
        }
    }

    /// Takes one more slot for this thread, while the process holds fewer than `limit`.
    fn another(volume: &'a Volume, limit: u64) -> Option<Self> {
        let mut gate = fork::gate();
        if !volume.membership.is_own() {
            return None;
        }
        let spare = volume.membership.spare_threads.lock().ok()?.pop();
        let thread = match spare {
            Some(thread) => thread,
            None if volume.membership.threads_held.load(Relaxed) >= limit => return None,
            None => {
                if let Some(thread) = claim(volume) {
                    thread
                } else {
                    // Threads of dead processes may hold the rest. Burying them takes the gate itself.
                    drop(gate);
                    if !volume.membership.bury_now_and_then(&volume.region, &volume.layout) {
                        return None;
                    }
                    gate = fork::gate();
                    claim(volume)?
                }
            }
        };
        let lines = volume.region.pointer(volume.layout.thread_at(thread), THREAD_BYTES as usize).cast();
        let held = Held { volume: volume.id, fork: fork::generation(), thread, lines };
        ALL.try_with(|all| {
            let mut all = all.borrow_mut();
            all.0.retain(|held| {
                let mut open = false;
                with_volume(held.volume, |_| open = true);
                open && held.fork == fork::generation()
            });
            all.0.push(held);
        })
        .ok()?;
        drop(gate);
        make_current(held);
        Some(Self::of(volume, held))
    }

    /// A free pin that a guard may keep; None where all are in use and no more can be had.
    #[inline]
    pub(crate) fn free_pin(self) -> Option<&'a AtomicU64> {
        // Acquire: another thread may have read and dropped the hit; the next claim vouches for it, too.
        match self.lines.pins[TRANSIENT + 1..].iter().find(|pin| pin.load(Acquire) == 0) {
            Some(pin) => Some(pin),
            None => self.free_pin_elsewhere(),
        }
    }

    /// Looks through this thread's other slots, then asks for one more. Half the table is left to others.
    #[cold]
    fn free_pin_elsewhere(self) -> Option<&'a AtomicU64> {
        let volume = self.volume;
        let held = ALL
            .try_with(|all| {
                let all = all.borrow();
                let roomy = |held: &&Held| is_current(volume, **held) && Self::of(volume, **held).has_free_pin();
                all.0.iter().rev().find(roomy).copied()
            })
            .ok()?;
        let thread = match held {
            Some(held) => {
                make_current(held);
                Self::of(volume, held)
            }
            None => Self::another(volume, volume.layout.threads / 2)?,
        };
        thread.lines.pins[TRANSIENT + 1..].iter().find(|pin| pin.load(Acquire) == 0)
    }

    fn has_free_pin(self) -> bool {
        self.lines.pins[TRANSIENT + 1..].iter().any(|pin| pin.load(Relaxed) == 0)
    }

    /// The pin for copies; free whenever the thread isn't in the middle of one.
    pub(crate) fn transient_pin(self) -> &'a AtomicU64 {
        &self.lines.pins[TRANSIENT]
    }

    /// Whether the counter of this slot stands at a multiple of `every`.
    pub(crate) fn is_nth(self, counter: Counter, every: u64) -> bool {
        self.lines.counters[counter as usize].load(Relaxed).is_multiple_of(every)
    }

    /// Counts one. Only this thread writes the counter: no exchange is needed.
    #[inline]
    pub(crate) fn count(self, counter: Counter) {
        let word = &self.lines.counters[counter as usize];
        word.store(word.load(Relaxed).wrapping_add(1), Relaxed);
    }
}

impl Thread<'_> {
    /// Counts a look-up that found nothing.
    #[inline]
    pub(crate) fn count_miss(self) {
        self.count(Counter::Misses);
        if self.is_nth(Counter::Misses, MISSES_A_LOOK) {
            self.volume.look_at_header();
        }
    }
}

/// Of one volume, at most one slot is in the two cells.
fn make_current(held: Held) {
    let before = CURRENT.replace(held);
    if before.volume != held.volume {
        PREVIOUS.set(before);
    }
}

#[inline]
fn is_current(volume: &Volume, held: Held) -> bool {
    held.volume == volume.id && held.fork == fork::generation()
}

fn claim(volume: &Volume) -> Option<u32> {
    let owner = volume.membership.owner_word();
    for thread in 0..volume.layout.threads as u32 {
        let word = volume.region.half(volume.layout.thread_at(thread));
        if word.load(Relaxed) == 0 && word.compare_exchange(0, owner, AcqRel, Relaxed).is_ok() {
            seam::kill_point();
            Attachment(&volume.region).raise_threads_used(u64::from(thread) + 1);
            volume.membership.threads_held.fetch_add(1, Relaxed);
            return Some(thread);
        }
    }
    None
}

/// Frees a slot whose thread has ended, or keeps it for another thread while hits still use its pins.
fn give_back(volume: &Volume, thread: u32) {
    let offset = volume.layout.thread_at(thread);
    let in_use = volume.region.line(offset + PINS).iter().any(|pin| pin.load(Acquire) != 0);
    if in_use {
        if let Ok(mut spare) = volume.membership.spare_threads.lock() {
            spare.push(thread);
        }
    } else {
        release(volume, thread);
    }
}

fn release(volume: &Volume, thread: u32) {
    volume.region.half(volume.layout.thread_at(thread)).store(0, Release);
    volume.membership.threads_held.fetch_sub(1, Relaxed);
}

/// Frees all thread slots of this process: nothing can hold a pin any more.
pub(crate) fn release_all(volume: &Volume) {
    let owner = volume.membership.owner_word();
    for thread in 0..Attachment(&volume.region).threads_used().min(volume.layout.threads) as u32 {
        let offset = volume.layout.thread_at(thread);
        if owner != 0 && volume.region.half(offset).load(Relaxed) == owner {
            for pin in volume.region.line(offset + PINS) {
                pin.store(0, Release);
            }
            release(volume, thread);
        }
    }
}

/// All pins of the volume, with the thread slot that each stands in.
pub(crate) fn pins(volume: &Volume) -> impl Iterator<Item = (u32, &AtomicU64)> {
    let used = Attachment(&volume.region).threads_used().min(volume.layout.threads) as u32;
    (0..used).flat_map(move |thread| {
        volume.region.line(volume.layout.thread_at(thread) + PINS).iter().map(move |pin| (thread, pin))
    })
}

/// The owner word of a thread slot; 0: free.
pub(crate) fn owner_word(volume: &Volume, thread: u32) -> u32 {
    volume.region.half(volume.layout.thread_at(thread)).load(Acquire)
}

/// One counter of a thread slot; it goes on from one holder to the next.
pub(crate) fn count_of(volume: &Volume, thread: u32, counter: Counter) -> u64 {
    volume.region.line(volume.layout.thread_at(thread) + COUNTERS)[counter as usize].load(Relaxed)
}

/// One counter, summed over all thread slots: those of dead and departed threads keep counting.
pub(crate) fn sum(volume: &Volume, counter: Counter) -> u64 {
    (0..volume.layout.threads as u32).map(|thread| count_of(volume, thread, counter)).fold(0, u64::wrapping_add)
}
