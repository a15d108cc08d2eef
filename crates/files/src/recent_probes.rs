//! Which steps of a file were in memory a moment ago. To ask the kernel about each step before each call that sends would take a tenth of the
//! time of sending it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long a step that was in memory is assumed to stay there. The kernel takes pages that were just used last.
const RECENT: Duration = Duration::from_secs(1);
/// A step's number, modulo this one, gives its only place.
const PLACES: u64 = 512;
/// Bits of a word that hold a time in milliseconds, which wraps after 12 days. The others hold the step.
const TIME_BITS: u32 = 30;
const TIME_MASK: u64 = (1 << TIME_BITS) - 1;

/// A table of the steps that were last found in memory.
///
/// Its words order nothing, and a wrong one only costs a needless question. It takes a step for another only in files of a pebibyte, or
/// after a wait of 12 days to the millisecond. That costs one wait for storage.
#[derive(Debug)]
pub(crate) struct RecentProbes {
    began: Instant,
    places: Box<[AtomicU64]>,
}

impl Default for RecentProbes {
    fn default() -> Self {
        Self { began: Instant::now(), places: (0..PLACES).map(|_| AtomicU64::new(u64::MAX)).collect() }
    }
}

impl RecentProbes {
    /// The time to compare with.
    pub(crate) fn now(&self) -> u64 {
        self.began.elapsed().as_millis() as u64 & TIME_MASK
    }

    /// Whether a step was in memory a moment ago.
    pub(crate) fn is_recent(&self, step: u64, now: u64) -> bool {
        let seen = self.place(step).load(Ordering::Relaxed);
        let is_same = (seen ^ step << TIME_BITS) >> TIME_BITS == 0;
        is_same && now.wrapping_sub(seen) & TIME_MASK < RECENT.as_millis() as u64
    }

    /// Notes that a step is in memory.
    pub(crate) fn note(&self, step: u64, now: u64) {
        self.place(step).store(step << TIME_BITS | now, Ordering::Relaxed);
    }

    fn place(&self, step: u64) -> &AtomicU64 {
        &self.places[(step % PLACES) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_recent_for_a_second() {
        let probes = RecentProbes::default();
        let (now, second) = (probes.now(), RECENT.as_millis() as u64);
        assert!(!probes.is_recent(0, now) && !probes.is_recent(5, now), "nothing is known yet");
        probes.note(5, now);
        assert!(probes.is_recent(5, now) && probes.is_recent(5, now + second - 1));
        assert!(!probes.is_recent(5, now + second));
        assert!(!probes.is_recent(6, now) && !probes.is_recent(5 + PLACES, now), "another step");
        probes.note(5 + PLACES, now);
        assert!(!probes.is_recent(5, now), "it has lost its place");
        assert!(probes.is_recent(5 + PLACES, TIME_MASK & now), "the time wraps");
    }
}
