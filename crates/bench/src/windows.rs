//! Latencies in windows of time: the times of operations before an event and after it.

use std::sync::atomic::{AtomicUsize, Ordering};

use hdrhistogram::Histogram;

use crate::clock::histogram;
use crate::clock::now_ns;
use crate::error::Result;

/// One thread begins the windows, one after the other, while other threads work.
#[derive(Debug)]
pub struct Windows {
    count: usize,
    /// The number of the present window. The other threads read it before each operation. No other data depends on it,
    /// so relaxed accesses suffice.
    present: AtomicUsize,
}

impl Windows {
    /// Makes so many windows, and begins the first.
    pub fn new(count: usize) -> Self {
        Self { count, present: AtomicUsize::new(0) }
    }

    /// Ends the present window and begins the next; after the last one, all workers end.
    pub fn next(&self) {
        self.present.fetch_add(1, Ordering::Relaxed);
    }

    /// Ends all windows.
    pub fn end(&self) {
        self.present.store(self.count, Ordering::Relaxed);
    }

    /// Repeats `operation` until the windows have ended. Returns the nanoseconds of each, from one clock reading to the
    /// next, by window.
    pub fn time(&self, mut operation: impl FnMut() -> Result<()>) -> Result<Vec<Histogram<u64>>> {
        let mut windows = (0..self.count).map(|_| histogram()).collect::<Result<Vec<_>>>()?;
        let mut last_ns = now_ns();
        while let Some(latency_ns) = windows.get_mut(self.present.load(Ordering::Relaxed)) {
            operation()?;
            let now = now_ns();
            latency_ns.saturating_record(now - last_ns);
            last_ns = now;
        }
        Ok(windows)
    }
}

/// The largest difference between the figures of equal windows: the larger divided by the smaller.
pub fn noise(pairs: impl IntoIterator<Item = (f64, f64)>) -> f64 {
    pairs.into_iter().map(|(one, other)| one.max(other) / one.min(other)).fold(1.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::{Windows, noise};
    use crate::error::{Error, Result};

    #[test]
    fn each_operation_counts_in_the_window_in_which_it_began() -> Result<()> {
        let windows = Windows::new(3);
        let mut operations = 0;
        let timed = windows.time(|| {
            operations += 1;
            // The second window has no operation.
            match operations {
                4 => (0..2).for_each(|_| windows.next()),
                6 => windows.end(),
                _ => {}
            }
            Ok(())
        })?;
        assert_eq!(timed.iter().map(hdrhistogram::Histogram::len).collect::<Vec<_>>(), [4, 0, 2]);
        Ok(())
    }

    #[test]
    fn an_error_ends_the_work() {
        let failing = || Err(Error::Invalid("no".to_owned()));
        assert!(Windows::new(1).time(failing).is_err());
    }

    #[test]
    fn noise_is_the_largest_distance_whichever_side_was_slower() {
        let is = |pairs: &[(f64, f64)], wanted: f64| (noise(pairs.iter().copied()) - wanted).abs() < 1e-12;
        assert!(is(&[], 1.0));
        assert!(is(&[(2.0, 2.0)], 1.0));
        assert!(is(&[(2.0, 3.0), (4.0, 2.0), (1.0, 1.5)], 2.0));
    }
}
