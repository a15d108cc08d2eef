//! When the tier gives way: how much memory this process's control groups still have, asked now and then.
//!
//! ```text
//!            80 %         90 % of a limit
//!   takes pages | keeps what it has | gives a stripe back at each look
//! ```
//!
//! In use is all but the page cache of files, which the kernel drops by itself, but needs some of: the volume's own pages are
//! there. The gap keeps the tier from taking at once what it has just given back. Where some task waited for memory in more
//! than 10 % of the last ten seconds, a stripe goes every five seconds: the kernel's mean needs that long to notice.

use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};

use eyewall_region::clock;
use eyewall_region::memory::{Memory, Share};

/// It isn't looked more often than that.
const LOOK_EVERY_MS: u64 = 100;
/// Each so many looks, the process's control groups are looked up anew: it may have been moved.
const FIND_EVERY: u64 = 64;
/// Of a limit, in percent: pages are taken up to here,
const TAKE_UP_TO: u64 = 80;
/// and given back above.
const GIVE_BACK_ABOVE: u64 = 90;
/// Hundredths of a percent of time waited: pages are given back above,
const STALLED: u64 = 1000;
/// and taken again below.
const NOT_STALLED: u64 = 500;
const STALLED_EVERY_MS: u64 = 5000;

/// What one process knows about its memory.
#[derive(Debug)]
pub(crate) struct Pressure {
    /// Never waited for: a forked child may find it locked for ever.
    memory: Mutex<Memory>,
    looked_ms: AtomicU64,
    looks: AtomicU64,
    gave_back_ms: AtomicU64,
    pressed: AtomicBool,
    /// Bytes that may be taken before the next look.
    room: AtomicU64,
}

/// What a look has found.
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

    /// Looks, if it is time. True: a stripe is to be given back.
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

    /// Whether nothing is to be filled.
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

    /// There is no more to be had, whatever the groups say.
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

/// `stalled`: in hundredths of a percent.
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
