//! The machine's monotonic clock, whose readings can be compared between processes, and the results of measuring with
//! it.

use hdrhistogram::Histogram;
use rustix::time::{ClockId, clock_gettime};

use crate::error::{Error, Result};

/// Histograms hold latencies up to a minute, to three digits.
const LATENCY_NS_MAX: u64 = 60_000_000_000;

/// Nanoseconds since a point in time before the first process of this boot.
#[inline]
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The operations of some threads, and the time that they took.
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
    /// Merges the laps of two threads or processes that ran at the same time.
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
