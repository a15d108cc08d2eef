//! Sleeping on a 32-bit word of a region until another process wakes the sleeper.
//!
//! These are shared futexes (not `FUTEX_PRIVATE`). Waiters in different processes map the word at different
//! addresses, and meet on the file's page (futex(2)).

use std::sync::atomic::AtomicU32;
use std::time::Duration;

use rustix::thread::futex::{self, Flags, Timespec};

/// Sleeps while `word` holds `expected`, for at most `limit`. May return early without a reason.
pub fn wait(word: &AtomicU32, expected: u32, limit: Duration) {
    let limit =
        Timespec { tv_sec: limit.as_secs().try_into().unwrap_or(i64::MAX), tv_nsec: limit.subsec_nanos().into() };
    // Every outcome (woken, changed, timed out, interrupted) means the same to the caller: look again.
    let _ = futex::wait(word, Flags::empty(), expected, Some(&limit));
}

/// Wakes at most `count` sleepers on `word`.
pub fn wake(word: &AtomicU32, count: u32) {
    let _ = futex::wake(word, Flags::empty(), count);
}
