//! The log as nodes see it: its lines, its state, and the place of a node in it.

use std::fmt;
use std::sync::Arc;

/// The word for the period in which one server writes one log. It is empty where no line was written yet.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Reign(Arc<str>);

impl Reign {
    /// The reign with this word, which has no white space.
    pub fn new(word: &str) -> Self {
        Self(word.into())
    }

    /// The word.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Reign {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// A line of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Its number. The first line has number 1.
    pub number: u64,
    /// The reign in which it was written.
    pub reign: Reign,
    /// The reign of the line before it.
    pub before: Reign,
    /// The process that wrote it.
    pub purger: String,
    /// The purge.
    pub purge: Vec<u8>,
}

/// How far a node has applied the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The reign that the node follows: that of the last state that it took, or that of a line that it has applied since.
    pub reign: Reign,
    /// The number of the last line that it has applied, or need not apply.
    pub number: u64,
    /// The reign in which that line was written.
    pub written_in: Reign,
}

impl Place {
    /// The place as a text without line breaks, to save it.
    pub fn to_text(&self) -> String {
        format!("{} {} {}", self.number, self.reign.as_str(), self.written_in.as_str())
    }

    /// The place of such a text; `None` for other texts.
    pub fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let number = words.next()?.parse().ok()?;
        let (reign, written_in) = (Reign::new(words.next()?), Reign::new(words.next()?));
        words.next().is_none().then_some(Self { reign, number, written_in })
    }
}

/// The state of the log, as its server answered the question of a node.
#[derive(Debug, Clone)]
pub struct State {
    /// When the node asked, by its own clock.
    pub asked_ms: u64,
    /// The line that the node asked about: the last one that it had applied.
    pub about: u64,
    /// The present reign.
    pub reign: Reign,
    /// The number of the last line; 0 if none was written yet.
    pub head: u64,
    /// The reign in which the last line was written.
    pub head_written_in: Reign,
    /// The reign in which line `about` was written, if the log still has that line.
    pub about_written_in: Option<Reign>,
    /// The number of the first line after `about` that the log still has.
    pub next: Option<u64>,
    /// Whether the required number of replicas has acknowledged what the server has written up to this answer.
    pub is_replicated: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_survives_as_text() {
        for written_in in ["", "old"] {
            let place = Place { reign: Reign::new("new"), number: 7, written_in: Reign::new(written_in) };
            assert_eq!(Place::parse(&place.to_text()), Some(place));
        }
        for text in ["", "7", "7 a", "x a b", "7 a b c", "-1 a b"] {
            assert_eq!(Place::parse(text), None, "{text}");
        }
    }
}
