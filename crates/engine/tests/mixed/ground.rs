//! The ground of a storm: words that all of its processes see. Through them, the parent tells the workers what to do.
//! The workers tell it and each other how far they are. All of them count there.

use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::Duration;

use super::WORKERS;
use crate::common::Board;

/// Names words of the board, and gives each a text for the table.
macro_rules! words {
    ($kind:ident, $texts:ident: $($name:ident $text:literal,)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $kind { $($name),* }
        pub const $texts: &[&str] = &[$($text),*];
    };
}

words! { Tally, TALLIES:
    Get "look-ups",
    FoundFresh "  that found a fresh value",
    FoundStale "  a stale one",
    FoundNegative "  a negative entry",
    Put "puts",
    Add "adds and exchanges",
    Update "updates",
    Remove "removes",
    Increment "increments",
    Touch "touches",
    Many "many at once",
    Negative "negative entries put",
    Iterate "enumerations",
    Stored "streams committed",
    Aborted "streams given up",
    Followed "followed to the end",
    Unfollowed "followed in vain",
    Filled "fills that succeeded",
    Absent "  that found nothing",
    Failed "  that failed",
    Panicked "  that panicked",
    Replaced "  in place of a dead filler",
    Unstored "  superseded or refused",
    Waited "fills of others met",
    Late "  waited for up to the deadline",
    Superseded "superseded writes",
    Pinned "refused: too much is held",
    Busy "refused: busy",
    TooLarge "refused: too large",
    Interrupted "interrupted by a resize",
    Held "hits held and let go",
    PurgeHard "hard purges",
    PurgeSoft "soft purges",
    Sweep "sweeps",
    Sync "syncs",
    Verify "verifications",
    Resize "resizes",
    ResizeBusy "  given up as busy",
    WallStep "steps of the wall clock",
    BootStep "steps of the clock since boot",
    Kill "kills",
    KillInLock "  in a lock",
    KillInFill "  in a fill",
    KillInStream "  in a stream",
    KillInUpdate "  in an update",
    KillInResize "  in a resize",
    KillInPurge "  in a purge",
    Leave "left in order",
    Stop "stops",
    StopInLock "  in a lock",
    Takeover "takeovers",
    Evicted "evictions",
    Purged "purged entries dropped",
    TierHit "hits of the tier",
    TierVoid "void copies met",
}

words! { Longest, LONGEST:
    Hold "longest hold",
    Wait "longest operation",
    WaitInKill "  that met a kill",
    WaitInStop "  that met a stop",
    WaitInResize "  that met a resize",
    Storage "longest sync, sweep or resize",
    Overshoot "latest behind a fill's deadline",
}

/// How a worker is to end or to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    InLock,
    InFill,
    InStream,
    InUpdate,
    InResize,
    InPurge,
    StopInLock,
}

impl Fate {
    pub const DEATHS: [Self; 6] =
        [Self::InLock, Self::InFill, Self::InStream, Self::InUpdate, Self::InResize, Self::InPurge];

    pub fn tally(self) -> Tally {
        match self {
            Self::InLock => Tally::KillInLock,
            Self::InFill => Tally::KillInFill,
            Self::InStream => Tally::KillInStream,
            Self::InUpdate => Tally::KillInUpdate,
            Self::InResize => Tally::KillInResize,
            Self::InPurge => Tally::KillInPurge,
            Self::StopInLock => Tally::StopInLock,
        }
    }
}

/// Words for all workers.
#[derive(Debug, Clone, Copy)]
pub enum Word {
    /// 1: end.
    End,
    /// Operations done.
    Work,
    /// How often a worker was killed or stopped, or was about to be.
    Kills,
    Stops,
    /// How many workers are stopped now.
    Stopped,
}

/// Words for one worker, both ways.
#[derive(Debug, Clone, Copy)]
pub enum Own {
    /// Grows when the worker is doomed. It distinguishes what a living worker did from what a dead one did.
    Life,
    /// The number of a fate, plus one. The worker resets it when it has read it.
    Fate,
    /// 1: the worker is to leave.
    Leave,
    /// Resizes that it has begun, and those of them that are over because the resize or the process ended.
    ResizesBegun,
    ResizesEnded,
    /// The number of the key that it is streaming, plus one.
    Streaming,
}

/// The parent's place among the workers.
pub const PARENT: u64 = WORKERS;

const WORDS: usize = 8;
const OWN: usize = 8;
const TALLY: usize = WORDS + (PARENT as usize + 1) * OWN;
const LONGEST_AT: usize = TALLY + TALLIES.len();
const KEYS: usize = LONGEST_AT + LONGEST.len();
pub const WORDS_PER_KEY: usize = 8;

pub struct Ground(Board);

impl Ground {
    pub fn create(path: &Path, keys: u64) -> Self {
        Self(Board::create(path, KEYS + keys as usize * WORDS_PER_KEY))
    }

    pub fn open(path: &str) -> Self {
        Self(Board::open(path))
    }

    pub fn word(&self, word: Word) -> &AtomicU64 {
        self.0.word(word as usize)
    }

    pub fn get(&self, word: Word) -> u64 {
        self.word(word).load(SeqCst)
    }

    pub fn own(&self, worker: u64, own: Own) -> &AtomicU64 {
        self.0.word(WORDS + worker as usize * OWN + own as usize)
    }

    pub fn of_key(&self, number: u64, word: usize) -> &AtomicU64 {
        self.0.word(KEYS + number as usize * WORDS_PER_KEY + word)
    }

    pub fn count(&self, tally: Tally) {
        self.add(tally, 1);
    }

    pub fn add(&self, tally: Tally, more: u64) {
        self.0.word(TALLY + tally as usize).fetch_add(more, Relaxed);
    }

    pub fn tally(&self, number: usize) -> u64 {
        self.0.word(TALLY + number).load(SeqCst)
    }

    pub fn note(&self, longest: Longest, took: Duration) {
        self.0.word(LONGEST_AT + longest as usize).fetch_max(took.as_micros() as u64, Relaxed);
    }

    pub fn longest_ms(&self, number: usize) -> f64 {
        self.0.word(LONGEST_AT + number).load(SeqCst) as f64 / 1000.0
    }

    /// Resizes that somebody has begun or is about to begin.
    pub fn resizes_begun(&self) -> u64 {
        self.sum(Own::ResizesBegun)
    }

    /// Resizes that are over. If as many are begun later, none was running, and none has begun since.
    pub fn resizes_ended(&self) -> u64 {
        self.sum(Own::ResizesEnded)
    }

    fn sum(&self, own: Own) -> u64 {
        (0..=PARENT).map(|process| self.own(process, own).load(SeqCst)).sum()
    }

    pub fn begin_resize(&self, process: u64) {
        self.own(process, Own::ResizesBegun).fetch_add(1, SeqCst);
    }

    /// Notes that a resize, or the process that was in it, has ended.
    pub fn end_resize(&self, process: u64) {
        let begun = self.own(process, Own::ResizesBegun).load(SeqCst);
        self.own(process, Own::ResizesEnded).store(begun, SeqCst);
    }
}
