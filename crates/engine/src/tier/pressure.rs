//! When the tier gives memory back: how much memory this process's control groups have left, checked now and then.
//!
//! ```text
//!            80 %         90 % of a limit
//!   takes pages | keeps what it has | gives a stripe back at each look
//! ```
//!
//! Used memory is everything except the page cache of files. The kernel drops page cache by itself, but needs some of
//! it: the volume's own pages are there. The gap between the two limits keeps the tier from taking at once what it
//! has just given back. If some task waited for memory during more than 10 % of the last ten seconds, the tier gives
//! a stripe back every five seconds. The kernel's average needs that long to show the effect.

use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};

use eyewall_region::clock;
use eyewall_region::memory::{Memory, Share};

/// How often the memory is checked at most.
const LOOK_EVERY_MS: u64 = 100;
/// After this many checks, the control groups of the process are looked up again, since it may have been moved.
const FIND_EVERY: u64 = 64;
/// The tier takes pages up to this percentage of a limit,
const TAKE_UP_TO: u64 = 80;
/// and gives pages back above this one.
const GIVE_BACK_ABOVE: u64 = 90;
/// The tier gives pages back above this much time waited, in hundredths of a percent,
const STALLED: u64 = 1000;
/// and takes pages again below this much.
const NOT_STALLED: u64 = 500;
const STALLED_EVERY_MS: u64 = 5000;

/// What one process knows about its memory.
#[derive(Debug)]
pub(crate) struct Pressure {
    /// Never waited for, since a forked child may find it locked forever.
    memory: Mutex<Memory>,
    looked_ms: AtomicU64,
    looks: AtomicU64,
    gave_back_ms: AtomicU64,
    pressed: AtomicBool,
    /// Bytes that may be taken before the next check.
    room: AtomicU64,
}

/// The result of a check.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    over_limit: bool,
    stalled: bool,
    room: u64,
}

impl Pressure {
    pub(crate) fn new() -> Self {
        Self {
            memory: Mutex::new(Memory::of_this_process()),
            looked_ms: AtomicU64::new(0),
            looks: AtomicU64::new(0),
            gave_back_ms: AtomicU64::new(0),
            pressed: AtomicBool::new(false),
            room: AtomicU64::new(0),
        }
    }

    /// Checks the memory if it is time to. Returns true if a stripe must be given back.
    pub(crate) fn demands_pages(&self) -> bool {
        let (now, looked) = (clock::since_boot_ms(), self.looked_ms.load(Relaxed));
        let is_due = now.abs_diff(looked) >= LOOK_EVERY_MS;
        if !is_due || self.looked_ms.compare_exchange(looked, now, Relaxed, Relaxed).is_err() {
            return false;
        }
        let seen = self.look();
        self.pressed.store(seen.over_limit || seen.stalled, Relaxed);
        self.room.store(seen.room, Relaxed);
        let gave_back = now.abs_diff(self.gave_back_ms.load(Relaxed));
        let gives = seen.over_limit || (seen.stalled && gave_back >= STALLED_EVERY_MS);
        if gives {
            self.gave_back_ms.store(now, Relaxed);
        }
        gives
    }

    /// Whether no copies may be made now.
    pub(crate) fn is_pressed(&self) -> bool {
        self.pressed.load(Relaxed)
    }

    /// Whether `bytes` may be taken, in steps.
    pub(crate) fn has_room(&self, bytes: u64) -> bool {
        self.room.load(Relaxed) >= bytes
    }

    pub(crate) fn took(&self, bytes: u64) {
        let _ = self.room.fetch_update(Relaxed, Relaxed, |room| Some(room.saturating_sub(bytes)));
    }

    /// No more memory is available, whatever the control groups say.
    pub(crate) fn ran_out(&self) {
        self.room.store(0, Relaxed);
    }

    fn look(&self) -> Seen {
        let judged = |memory: &Memory| {
            let shares: Vec<Share> = memory.shares().collect();
            judge(&shares, memory.stalled(!shares.is_empty()))
        };
        let looks = self.looks.fetch_add(1, Relaxed);
        let Ok(mut memory) = self.memory.try_lock() else { return judged(&Memory::of_this_process()) };
        if looks % FIND_EVERY == FIND_EVERY - 1 {
            *memory = Memory::of_this_process();
        }
        judged(&memory)
    }
}

/// `stalled` is in hundredths of a percent.
fn judge(shares: &[Share], stalled: u64) -> Seen {
    let mut seen = Seen { over_limit: false, stalled: stalled > STALLED, room: u64::MAX };
    for Share { used, limit } in shares.iter().copied() {
        seen.over_limit |= used > limit / 100 * GIVE_BACK_ABOVE;
        seen.room = seen.room.min((limit / 100 * TAKE_UP_TO).saturating_sub(used));
    }
    if stalled > NOT_STALLED {
        seen.room = 0;
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_taken_below_the_limit_kept_near_it_and_given_back_above() {
        let judged =
            |used, stalled| judge(&[Share { used, limit: 1000 }, Share { used: 10, limit: 1_000_000 }], stalled);
        for (used, stalled, over_limit, is_stalled, room) in [
            (100, 0, false, false, 700),
            (790, 0, false, false, 10),
            (800, 0, false, false, 0),
            (900, 0, false, false, 0),
            (901, 0, true, false, 0),
            (100, NOT_STALLED + 1, false, false, 0),
            (100, STALLED + 1, false, true, 0),
        ] {
            assert_eq!(judged(used, stalled), Seen { over_limit, stalled: is_stalled, room }, "{used} {stalled}");
        }
        assert_eq!(judge(&[], 0), Seen { over_limit: false, stalled: false, room: u64::MAX });
    }
}
