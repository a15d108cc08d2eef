//! Sleeping on a 32-bit word of a region until another process wakes us.
//!
//! Shared futexes (not `FUTEX_PRIVATE`): waiters in different processes, with the word mapped at different
//! addresses, meet on the file's page (futex(2)).

use std::sync::atomic::AtomicU32;
use std::time::Duration;

use rustix::thread::futex::{self, Flags, Timespec};

/// Sleeps while `word` holds `expected`, at most for `limit`. May return early for no reason.
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
