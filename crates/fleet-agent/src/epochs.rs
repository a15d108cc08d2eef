//! Which lines of the log an entry is right about, by the epoch in which the work on it began.
//!
//! Applying a line ends an epoch of the volume. So work that began in the epoch after it, or later, began after the line was applied.

use std::collections::VecDeque;

use eyewall_fleet::AsOf;

/// Older ones are forgotten: work doesn't take that long.
const KEPT_MAX: usize = 4096;

/// The volume's epochs after lines were applied.
#[derive(Debug, Default)]
pub(crate) struct Epochs {
    /// In the order of both parts.
    after: VecDeque<(u32, AsOf)>,
}

impl Epochs {
    /// All lines up to this one are applied, and this is the volume's present epoch.
    pub(crate) fn note(&mut self, epoch: u32, as_of: AsOf) {
        match self.after.back() {
            Some((_, last)) if (last.line, &last.written_in) == (as_of.line, &as_of.written_in) => return,
            // The log begins again, or the epochs do.
            Some((last_epoch, last)) if *last_epoch > epoch || last.line >= as_of.line => self.after.clear(),
            _ => {}
        }
        if self.after.len() >= KEPT_MAX {
            self.after.pop_front();
        }
        self.after.push_back((epoch, as_of));
    }

    /// Lines may be missing.
    pub(crate) fn gap(&mut self) {
        self.after.clear();
    }

    /// The last line that was applied before work of this epoch began; `None` if that is unknown.
    pub(crate) fn as_of(&self, epoch: u32) -> Option<&AsOf> {
        let known = self.after.iter().rev().find(|(after, _)| *after <= epoch);
        known.map(|(_, as_of)| as_of)
    }
}

#[cfg(test)]
mod tests {
    use eyewall_fleet::Reign;

    use super::*;

    fn line(line: u64, reign: &str) -> AsOf {
        AsOf { line, written_in: Reign::new(reign), reign: Reign::new(reign) }
    }

    #[test]
    fn work_is_right_about_the_lines_that_were_applied_before_it_began() {
        let mut epochs = Epochs::default();
        assert_eq!(epochs.as_of(9), None);
        epochs.note(5, line(40, "a"));
        epochs.note(7, line(41, "a"));
        // The volume's own purges end epochs, too.
        epochs.note(9, line(41, "a"));
        let lines = [4, 5, 6, 7, 20].map(|epoch| epochs.as_of(epoch).map(|as_of| as_of.line));
        assert_eq!(lines, [None, Some(40), Some(40), Some(41), Some(41)]);
        // Another reign uses numbers again.
        epochs.note(11, line(41, "b"));
        assert_eq!((epochs.as_of(9), epochs.as_of(11)), (None, Some(&line(41, "b"))));
        epochs.gap();
        assert_eq!(epochs.as_of(11), None);
        for number in 0..5000 {
            epochs.note(number, line(50 + u64::from(number), "b"));
        }
        assert_eq!((epochs.as_of(100), epochs.after.len()), (None, KEPT_MAX));
        // After four billion purges.
        epochs.note(1, line(9000, "b"));
        assert_eq!(epochs.as_of(4999), Some(&line(9000, "b")));
    }
}
