//! The display of a run's progress: its position, and the time left.

use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _, stderr};
use std::time::{Duration, Instant};

/// The line on the terminal. If standard error isn't a terminal, each cell gets a line of its own.
#[derive(Debug)]
pub struct Progress {
    began: Instant,
    is_terminal: bool,
    /// Minutes of all cells by their definitions, and of the cells that are done.
    expected: f64,
    done: f64,
    /// When the last cell was done, and the ratio of the real to the expected time until then.
    advanced: Instant,
    pace: f64,
}

impl Progress {
    /// The progress of a run whose cells are expected to take so many minutes.
    pub fn begin(expected_minutes: f64) -> Self {
        let now = Instant::now();
        let is_terminal = stderr().is_terminal();
        Self { began: now, is_terminal, expected: expected_minutes, done: 0.0, advanced: now, pace: 1.0 }
    }

    /// Shows the cell that begins.
    pub fn begin_cell(&self, what: &str) {
        self.tell(what);
    }

    /// Shows the run's position in its cell.
    pub fn show(&self, what: &str) {
        if self.is_terminal {
            self.tell(what);
        }
    }

    fn tell(&self, what: &str) {
        let percent = (100.0 * self.done / self.expected.max(f64::MIN_POSITIVE)).min(100.0);
        let mut line = format!("{percent:3.0} %, {} left: {what}", spoken(self.left()));
        if self.is_terminal {
            if let Ok(size) = rustix::termios::tcgetwinsize(stderr()) {
                line = line.chars().take(usize::from(size.ws_col).saturating_sub(1)).collect();
            }
            line.insert_str(0, "\r\x1b[K");
        } else {
            let _ = writeln!(line);
        }
        // It doesn't matter if nobody reads it.
        let _ = stderr().write_all(line.as_bytes());
    }

    /// Counts a cell as done that was expected to take so many minutes.
    pub fn advance(&mut self, minutes: f64) {
        self.done += minutes;
        self.advanced = Instant::now();
        if self.done > 0.0 {
            self.pace = self.elapsed().as_secs_f64() / (self.done * 60.0);
        }
    }

    /// Clears the line, so that something can be printed.
    pub fn clear(&self) {
        if self.is_terminal {
            let _ = stderr().write_all(b"\r\x1b[K");
        }
    }

    /// The time since the run began.
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// The time left by the definitions, corrected by the ratio for the cells that are done.
    fn left(&self) -> Duration {
        let left = (self.expected - self.done).max(0.0) * 60.0 * self.pace;
        Duration::from_secs_f64(left).saturating_sub(self.advanced.elapsed())
    }
}

/// `50 s`, `12 min`, `1 h 5 min`.
pub fn spoken(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..90 => format!("{seconds} s"),
        90..3600 => format!("{} min", (seconds + 30) / 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_spoken() {
        let spoken = |seconds| spoken(Duration::from_secs(seconds));
        assert_eq!([spoken(5), spoken(90), spoken(720), spoken(3_900)], ["5 s", "2 min", "12 min", "1 h 5 min"]);
    }
}
