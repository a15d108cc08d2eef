//! The progress of a long job: a line on standard error, if that is a terminal.

use std::io::{IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

const CELLS: usize = 30;
const PAINT_MS: u64 = 100;
/// Moves to the beginning of the line, and clears it.
const CLEAR: &str = "\r\x1b[K";

/// A job of a known length; with length 0, it shows how much was done. Any thread may add to it. The first one that adds
/// after a tenth of a second paints, so counts need no order.
#[derive(Debug)]
pub(crate) struct Progress {
    what: &'static str,
    total: u64,
    done: AtomicU64,
    is_shown: bool,
    start: Instant,
    painted_ms: AtomicU64,
}

impl Progress {
    pub(crate) fn new(what: &'static str, total: u64) -> Self {
        Self {
            what,
            total,
            done: AtomicU64::new(0),
            is_shown: std::io::stderr().is_terminal(),
            start: Instant::now(),
            painted_ms: AtomicU64::new(0),
        }
    }

    pub(crate) fn add(&self, count: u64) {
        let done = self.done.fetch_add(count, Relaxed) + count;
        if !self.is_shown {
            return;
        }
        let (now, last) = (self.start.elapsed().as_millis() as u64, self.painted_ms.load(Relaxed));
        if now >= last + PAINT_MS && self.painted_ms.compare_exchange(last, now, Relaxed, Relaxed).is_ok() {
            // If the terminal is gone, nobody misses the progress.
            let _ = write!(std::io::stderr(), "{CLEAR}{}", self.line(done));
        }
    }

    fn line(&self, done: u64) -> String {
        match self.total {
            0 => format!("{} {}", self.what, eyewall_server::units::size(done)),
            total => {
                let part = done.min(total) as f64 / total as f64;
                let cells = "#".repeat((part * CELLS as f64) as usize);
                format!("{} [{cells:<CELLS$}] {:>3.0} %", self.what, part * 100.0)
            }
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.is_shown {
            let _ = write!(std::io::stderr(), "{CLEAR}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Progress;

    #[test]
    fn a_known_length_is_a_bar_and_an_unknown_one_a_figure() {
        assert_eq!(Progress::new("reading", 200).line(50), "reading [#######                       ]  25 %");
        assert_eq!(Progress::new("reading", 200).line(900), "reading [##############################] 100 %");
        assert_eq!(Progress::new("reading", 0).line(1536), "reading 1.5 KiB");
    }
}
