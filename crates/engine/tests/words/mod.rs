//! The protocol's words over loom's atomics, without a defect and with one defect each.
//!
//! Sequentially consistent accesses are weakened to acquire and release, as on a machine where only fences order
//! more. What a model proves then also holds for `store_fenced` as a store and a fence.
#![allow(dead_code, unreachable_pub, reason = "each model uses a part of it")]

use std::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};

use eyewall::protocol::{HalfWord, Word};
use loom::sync::atomic::{AtomicU32, AtomicU64, fence};

/// The defect of a word. A model that holds in spite of it proves nothing.
pub const WHOLE: u8 = 0;
/// A reader publishes its pin without a fence after it.
pub const NO_FENCE_BEHIND_PIN: u8 = 1;
/// The hand scans the pins without a fence before it.
pub const NO_FENCE_BEFORE_SCAN: u8 = 2;
/// A pin is released without Release.
pub const RELAXED_UNPIN: u8 = 3;
/// A pin that is used again is published without Release.
pub const RELAXED_PIN: u8 = 4;
/// A slot is stored without Release.
pub const RELAXED_EXCHANGE: u8 = 5;
/// The exchange is a load and a store.
pub const TORN_EXCHANGE: u8 = 6;

/// A 64-bit word with `DEFECT`.
pub struct Shared<const DEFECT: u8> {
    word: AtomicU64,
    steps: AtomicU64,
}

impl<const DEFECT: u8> Shared<DEFECT> {
    pub fn new(value: u64) -> Self {
        Self { word: AtomicU64::new(value), steps: AtomicU64::new(0) }
    }

    /// Loom remembers one last access of each word when it looks for accesses to reorder. If a thread loads a word
    /// and then exchanges it, its own load hides what others did before. This relaxed step makes every two accesses
    /// of a word, loads too, depend on each other. It orders no memory.
    fn step(&self) -> &AtomicU64 {
        self.steps.fetch_add(1, Relaxed);
        &self.word
    }
}

impl<const DEFECT: u8> Word for Shared<DEFECT> {
    fn load(&self, order: Ordering) -> u64 {
        self.step().load(if order == SeqCst { Acquire } else { order })
    }

    fn store(&self, value: u64, order: Ordering) {
        self.step().store(value, if DEFECT == RELAXED_UNPIN { Relaxed } else { order });
    }

    fn compare_exchange(&self, current: u64, new: u64) -> Result<u64, u64> {
        let word = self.step();
        match DEFECT {
            RELAXED_EXCHANGE => word.compare_exchange(current, new, Relaxed, Relaxed),
            TORN_EXCHANGE => {
                let found = word.load(Acquire);
                if found != current {
                    return Err(found);
                }
                self.step().store(new, Release);
                Ok(found)
            }
            _ => word.compare_exchange(current, new, AcqRel, Acquire),
        }
    }

    fn store_fenced(&self, value: u64) {
        self.step().store(value, if DEFECT == RELAXED_PIN { Relaxed } else { Release });
        if DEFECT != NO_FENCE_BEHIND_PIN {
            fence(SeqCst);
        }
    }

    fn fence() {
        if DEFECT != NO_FENCE_BEFORE_SCAN {
            fence(SeqCst);
        }
    }
}

/// A lock's word. `RELAXED`: one that orders nothing.
pub struct Lock<const RELAXED: bool> {
    word: AtomicU32,
    steps: AtomicU32,
}

impl<const RELAXED: bool> Lock<RELAXED> {
    pub fn new(value: u32) -> Self {
        Self { word: AtomicU32::new(value), steps: AtomicU32::new(0) }
    }

    /// Like [`Shared::step`].
    fn step(&self) -> &AtomicU32 {
        self.steps.fetch_add(1, Relaxed);
        &self.word
    }
}

impl<const RELAXED: bool> HalfWord for Lock<RELAXED> {
    fn load(&self) -> u32 {
        self.step().load(Acquire)
    }

    fn compare_exchange(&self, current: u32, new: u32) -> Result<u32, u32> {
        let order = if RELAXED { Relaxed } else { Acquire };
        self.step().compare_exchange(current, new, order, order)
    }

    fn swap(&self, new: u32) -> u32 {
        self.step().swap(new, if RELAXED { Relaxed } else { Release })
    }
}
