//! Whether the volume takes writes without waiting.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use eyewall_region::waits;

/// A write in which the thread waited, and that took longer than this, has met slow storage, or a process that was stopped while it held
/// a lock. A thread that only lost its processor to others has not: another thread would not write sooner.
const INLINE_MAX: Duration = Duration::from_micros(500);
/// After such a write the volume counts as slow for this long at least, and for this many times the duration of the write.
const SLOW_FOR: Duration = Duration::from_secs(1);
const SLOW_FOR_TIMES: u32 = 100;

/// A memory of writes that had to wait. Threads that serve clients write short entries themselves, because it costs more to hand a
/// write to another thread. After a write that had to wait, other threads write for a while. So slow writes hold clients up for at
/// most a hundredth of the time.
#[derive(Debug)]
pub(crate) struct Blocking {
    began: Instant,
    /// The volume counts as fast again this many microseconds after `began`. No other memory access is ordered by it.
    slow_until: AtomicU64,
}

impl Default for Blocking {
    /// No write has had to wait yet.
    fn default() -> Self {
        Self { began: Instant::now(), slow_until: AtomicU64::new(0) }
    }
}

impl Blocking {
    /// Whether no recent write had to wait.
    pub(crate) fn allows_inline_writes(&self) -> bool {
        self.began.elapsed().as_micros() as u64 >= self.slow_until.load(Ordering::Relaxed)
    }

    /// Writes, and notes how long that took.
    pub(crate) fn time<T>(&self, write: impl FnOnce() -> T) -> T {
        let (started, waits) = (Instant::now(), waits::of_this_thread());
        let written = write();
        let took = started.elapsed();
        if took > INLINE_MAX && waits::of_this_thread() > waits {
            let until = self.began.elapsed() + SLOW_FOR.max(took * SLOW_FOR_TIMES);
            self.slow_until.store(until.as_micros() as u64, Ordering::Relaxed);
        }
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_that_waits_makes_the_volume_slow_for_a_while() {
        let mut blocking = Blocking::default();
        let begun = Instant::now();
        blocking.time(|| while begun.elapsed() <= 2 * INLINE_MAX {});
        assert!(blocking.allows_inline_writes(), "a busy thread doesn't wait");
        blocking.time(|| std::thread::sleep(2 * INLINE_MAX));
        assert!(!blocking.allows_inline_writes());
        blocking.began -= SLOW_FOR + Duration::from_mins(1);
        assert!(blocking.allows_inline_writes());
    }
}
