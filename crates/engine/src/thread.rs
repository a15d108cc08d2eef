//! Thread slots, in which threads publish pins and count hits.
//!
//! A slot has three cache lines: its owner, eight pins, and eight counters. Only the thread that holds a slot sets
//! pins in it, so it finds a free pin without an atomic exchange. Any thread that drops a hit clears its pin. The
//! first pin is **transient**: no guard keeps it, so a copy can always be made.

use std::cell::{Cell, RefCell};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use eyewall_region::fork;

use crate::format::layout::THREAD_BYTES;
use crate::format::superblock::Attachment;
use crate::seam;
use crate::volume::{Volume, with_volume};

/// A thread checks the volume's header once in this many misses, since an overwritten header makes everything a miss.
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

/// The layout of a thread slot in the volume.
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

/// The slots that a thread gives back when it ends.
struct HeldAll(Vec<Held>);

const NOBODYS: Held = Held { volume: 0, fork: 0, thread: 0, lines: std::ptr::null() };

thread_local! {
    static CURRENT: Cell<Held> = const { Cell::new(NOBODYS) };
    /// The former content of [`CURRENT`], for another volume. With a tier, a thread uses two volumes in turn.
    static PREVIOUS: Cell<Held> = const { Cell::new(NOBODYS) };
    static ALL: RefCell<HeldAll> = const { RefCell::new(HeldAll(Vec::new())) };
}

impl Drop for HeldAll {
    fn drop(&mut self) {
        // Thread-locals of the user may be dropped later and look something up; they find no slot then.
        CURRENT.set(NOBODYS);
        PREVIOUS.set(NOBODYS);
        let _gate = fork::gate();
        for held in self.0.drain(..).filter(|held| held.fork == fork::generation()) {
            with_volume(held.volume, |volume| give_back(volume, held.thread));
        }
    }
}

impl<'a> Thread<'a> {
    /// The calling thread's slot; `None` if the table is full or this process isn't registered.
    #[inline]
    pub(crate) fn current(volume: &'a Volume) -> Option<Self> {
        let held = CURRENT.get();
        if is_current(volume, held) {
            return Some(Self::of(volume, held));
        }
        let held = PREVIOUS.get();
        if is_current(volume, held) { Some(Self::of(volume, held)) } else { Self::find(volume) }
    }

    /// The slot that the calling thread used last, if it is of this volume.
    #[inline]
    pub(crate) fn latest(volume: &'a Volume) -> Option<Self> {
        let held = CURRENT.get();
        is_current(volume, held).then(|| Self::of(volume, held))
    }

    /// The volume whose slot it is.
    pub(crate) fn volume(self) -> &'a Volume {
        self.volume
    }

    #[inline]
    fn of(volume: &'a Volume, held: Held) -> Self {
        debug_assert!(is_current(volume, held));
        // SAFETY: the lines belong to the volume with that id, which is this one, and it is open.
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

    /// Takes one more slot for this thread, if the process holds fewer than `limit`.
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

    /// A free pin that a guard may keep; `None` if all are in use and no slot can be added.
    #[inline]
    pub(crate) fn free_pin(self) -> Option<&'a AtomicU64> {
        // Acquire: another thread may have read and dropped the hit. The next claim in this pin then covers its
        // reads, too.
        match self.lines.pins[TRANSIENT + 1..].iter().find(|pin| pin.load(Acquire) == 0) {
            Some(pin) => Some(pin),
            None => self.free_pin_elsewhere(),
        }
    }

    /// The pin that is free in most cases, if it is.
    #[inline]
    pub(crate) fn first_pin(self) -> Option<&'a AtomicU64> {
        let pin = &self.lines.pins[TRANSIENT + 1];
        // Acquire: as in `free_pin`.
        (pin.load(Acquire) == 0).then_some(pin)
    }

    /// Searches this thread's other slots, then asks for one more. Leaves half of the table to others.
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

    /// The pin for copies. It is free unless the thread is making one.
    pub(crate) fn transient_pin(self) -> &'a AtomicU64 {
        &self.lines.pins[TRANSIENT]
    }

    /// Whether this counter is at a multiple of `every`.
    pub(crate) fn is_nth(self, counter: Counter, every: u64) -> bool {
        self.lines.counters[counter as usize].load(Relaxed).is_multiple_of(every)
    }

    /// Counts one. Only this thread writes the counter, so no exchange is needed.
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

/// The two cells hold at most one slot of each volume.
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

/// Frees a slot whose thread has ended. If hits still use its pins, keeps it for another thread.
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

/// Frees all thread slots of this process, when nothing can hold a pin any more.
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

/// All pins of the volume, each with its thread slot.
pub(crate) fn pins(volume: &Volume) -> impl Iterator<Item = (u32, &AtomicU64)> {
    let used = Attachment(&volume.region).threads_used().min(volume.layout.threads) as u32;
    (0..used).flat_map(move |thread| {
        volume.region.line(volume.layout.thread_at(thread) + PINS).iter().map(move |pin| (thread, pin))
    })
}

/// The owner word of a thread slot; 0 if it is free.
pub(crate) fn owner_word(volume: &Volume, thread: u32) -> u32 {
    volume.region.half(volume.layout.thread_at(thread)).load(Acquire)
}

/// One counter of a thread slot. A new holder continues the count.
pub(crate) fn count_of(volume: &Volume, thread: u32, counter: Counter) -> u64 {
    volume.region.line(volume.layout.thread_at(thread) + COUNTERS)[counter as usize].load(Relaxed)
}

/// One counter, summed over all thread slots, including those of ended threads.
pub(crate) fn sum(volume: &Volume, counter: Counter) -> u64 {
    (0..volume.layout.threads as u32).map(|thread| count_of(volume, thread, counter)).fold(0, u64::wrapping_add)
}
