//! Whether the volume takes what is written to it at once.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A write that takes longer has waited: for storage that doesn't keep up, or for a process that was stopped with a lock.
const INLINE_MAX: Duration = Duration::from_micros(500);
/// For how long the volume is taken to be slow after such a write, at least, and for how many times what it took.
const SLOW_FOR: Duration = Duration::from_secs(1);
const SLOW_FOR_TIMES: u32 = 100;

/// A memory of writes that had to wait. Threads that serve clients write what is short themselves, since handing it to another
/// costs more than the write; where one of them had to wait, others do it for a while. So clients are held up for a hundredth of
/// the time at worst.
#[derive(Debug)]
pub struct Blocking {
    began: Instant,
    /// Microseconds from `began` to when the volume counts as fast again. Nothing is ordered by it.
    slow_until: AtomicU64,
}

impl Default for Blocking {
    /// Nothing has had to wait yet.
    fn default() -> Self {
        Self { began: Instant::now(), slow_until: AtomicU64::new(0) }
    }
}

impl Blocking {
    /// Whether no write had to wait lately.
    pub fn allows_inline_writes(&self) -> bool {
        self.began.elapsed().as_micros() as u64 >= self.slow_until.load(Ordering::Relaxed)
    }

    /// Writes, and takes note of how long it took.
    pub fn time<T>(&self, write: impl FnOnce() -> T) -> T {
        let started = Instant::now();
        let written = write();
        let took = started.elapsed();
        if took > INLINE_MAX {
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
        assert!(blocking.allows_inline_writes());
        blocking.time(|| std::thread::sleep(2 * INLINE_MAX));
        assert!(!blocking.allows_inline_writes());
        blocking.began -= SLOW_FOR + Duration::from_mins(1);
        assert!(blocking.allows_inline_writes());
    }
}
