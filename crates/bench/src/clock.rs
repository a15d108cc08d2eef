//! The machine's monotonic clock, comparable between processes, and what is kept of its readings.

use hdrhistogram::Histogram;
use rustix::time::{ClockId, clock_gettime};

use crate::error::{Error, Result};

/// Latencies up to a minute, to three digits.
const LATENCY_NS_MAX: u64 = 60_000_000_000;

/// Nanoseconds since some point before this boot's first process.
#[inline]
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// What some threads did in a stretch of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lap {
    /// Operations done.
    pub operations: u64,
    /// When the first thread began.
    pub begin_ns: u64,
    /// When the last one ended.
    pub end_ns: u64,
}

impl Lap {
    /// Both laps as one: of two threads or processes that ran beside each other.
    pub fn join(self, other: Self) -> Self {
        Self {
            operations: self.operations + other.operations,
            begin_ns: self.begin_ns.min(other.begin_ns),
            end_ns: self.end_ns.max(other.end_ns),
        }
    }

    /// Operations a second.
    pub fn per_second(&self) -> f64 {
        self.operations as f64 * 1e9 / (self.end_ns - self.begin_ns).max(1) as f64
    }
}

/// An empty histogram of nanoseconds.
pub fn histogram() -> Result<Histogram<u64>> {
    Histogram::new_with_max(LATENCY_NS_MAX, 3).map_err(|failure| Error::Invalid(format!("histogram: {failure}")))
}
