//! Clocks in milliseconds, with the resolution of the kernel's tick (1 to 10 ms). Reading them costs a few
//! nanoseconds, since each hit of an entry that expires reads one.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

static SHIFT_MS: AtomicI64 = AtomicI64::new(0);
static WALL_SHIFT_MS: AtomicI64 = AtomicI64::new(0);

/// How long the machine has slept in milliseconds, as of [`LOOKED_MS`].
static SLEPT_MS: AtomicU64 = AtomicU64::new(0);
/// The monotonic time of the last check; zero before the first one.
static LOOKED_MS: AtomicU64 = AtomicU64::new(0);
const LOOK_EVERY_MS: u64 = 1000;

/// Milliseconds since 1970-01-01 00:00 UTC (`CLOCK_REALTIME_COARSE`), by the machine's present wall clock.
pub fn wall_ms() -> u64 {
    let ms = read_ms(libc::CLOCK_REALTIME_COARSE) as i64;
    (ms + WALL_SHIFT_MS.load(Relaxed)).max(0) as u64
}

/// Milliseconds since the machine was started, including those that it slept. Nobody can set this clock.
///
/// It is `CLOCK_BOOTTIME` at the cost of `CLOCK_MONOTONIC_COARSE`: it checks once a second how long the machine has
/// slept. In a time namespace it counts from that namespace's boot.
#[inline]
pub fn since_boot_ms() -> u64 {
    let awake = read_ms(libc::CLOCK_MONOTONIC_COARSE);
    if awake.wrapping_sub(LOOKED_MS.load(Relaxed)) >= LOOK_EVERY_MS {
        look_how_long_it_slept(awake);
    }
    (awake + SLEPT_MS.load(Relaxed)).saturating_add_signed(SHIFT_MS.load(Relaxed))
}

#[cold]
fn look_how_long_it_slept(awake: u64) {
    let slept = read_ms(libc::CLOCK_BOOTTIME).saturating_sub(read_ms(libc::CLOCK_MONOTONIC));
    // The two clocks are read one after the other, so a difference of a tick means nothing.
    if slept > SLEPT_MS.load(Relaxed) + 10 {
        SLEPT_MS.store(slept, Relaxed);
    }
    LOOKED_MS.store(awake.max(1), Relaxed);
}

#[inline]
fn read_ms(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // Through the C library, whose vDSO call valgrind and sanitizers know. It can't fail, since the clocks exist.
    // SAFETY: `time` is a valid timespec to write to.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    (time.tv_sec * 1000 + time.tv_nsec / 1_000_000).max(0) as u64
}

/// Moves this process's time by `ms`, so that tests of expiry need not sleep. A negative number moves it back.
pub fn shift_for_tests(ms: i64) {
    SHIFT_MS.fetch_add(ms, Relaxed);
}

/// Moves this process's wall clock forward by `ms`, or back.
pub fn shift_wall_for_tests(ms: i64) {
    WALL_SHIFT_MS.fetch_add(ms, Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_since_boot_runs_with_the_kernels_own() {
        let before = read_ms(libc::CLOCK_BOOTTIME);
        let now = since_boot_ms();
        assert!(now + 20 >= before && now <= read_ms(libc::CLOCK_BOOTTIME) + 20, "{before} {now}");
    }
}
