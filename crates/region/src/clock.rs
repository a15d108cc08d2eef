//! Wall-clock time in milliseconds, at the kernel's tick resolution (1 to 10 ms).
//!
//! The coarse clock costs a few nanoseconds: it is read on each hit of an entry that expires.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

static SHIFT_MS: AtomicI64 = AtomicI64::new(0);

/// Milliseconds since 1970-01-01 00:00 UTC (`CLOCK_REALTIME_COARSE`).
#[inline]
pub fn now_ms() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // Through the C library, whose vDSO call valgrind and sanitizers know. It can't fail: the clock exists.
    // SAFETY: `time` is a valid timespec to write to.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME_COARSE, &raw mut time) };
    let ms = time.tv_sec * 1000 + time.tv_nsec / 1_000_000;
    (ms + SHIFT_MS.load(Relaxed)).max(0) as u64
}

/// Moves this process's clock by `ms`, so that tests of expiry need not sleep. Negative moves it back.
pub fn shift_for_tests(ms: i64) {
    SHIFT_MS.fetch_add(ms, Relaxed);
}
