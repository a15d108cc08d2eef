//! A server with a log, and the one that may take over.

use eyewall_fleet::{Line, Reign, State};

/// The log keeps this many lines.
const LINES_MAX: usize = 40;

#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) reign: Reign,
    pub(crate) lines: Vec<Line>,
    pub(crate) head: u64,
    pub(crate) head_written_in: Reign,
    /// The lines that the replica has of this log. A server without a replica, or that was replaced, has no more.
    pub(crate) replicated: u64,
    /// Whether an answer has to wait for the replica.
    pub(crate) waits: bool,
    pub(crate) is_alive: bool,
    /// Its replica has taken over and acknowledges nothing more. A question of a node is a write, too, so this shows at once.
    pub(crate) is_replaced: bool,
}

impl Server {
    pub(crate) fn new(reign: &str, waits: bool) -> Self {
        let (reign, head_written_in) = (Reign::new(reign), Reign::default());
        Self {
            reign,
            lines: Vec::new(),
            head: 0,
            head_written_in,
            replicated: 0,
            waits,
            is_alive: true,
            is_replaced: false,
        }
    }

    pub(crate) fn append(&mut self, purger: &str, purge: Vec<u8>) -> u64 {
        self.head += 1;
        let before = std::mem::replace(&mut self.head_written_in, self.reign.clone());
        let line = Line { number: self.head, reign: self.reign.clone(), before, purger: purger.to_owned(), purge };
        self.lines.push(line);
        if self.lines.len() > LINES_MAX {
            self.lines.remove(0);
        }
        self.head
    }

    pub(crate) fn is_replicated(&self) -> bool {
        !self.waits || !self.is_replaced && self.replicated >= self.head
    }

    pub(crate) fn state(&self, asked_ms: u64, about: u64) -> State {
        let of = |number| self.lines.iter().find(|line| line.number == number);
        State {
            asked_ms,
            about,
            reign: self.reign.clone(),
            head: self.head,
            head_written_in: self.head_written_in.clone(),
            about_written_in: of(about).map(|line| line.reign.clone()),
            next: self.lines.iter().map(|line| line.number).find(|number| *number > about),
            is_replicated: self.is_replicated(),
        }
    }

    pub(crate) fn read(&self, after: u64) -> Vec<Line> {
        self.lines.iter().filter(|line| line.number > after).take(8).cloned().collect()
    }

    /// The log as the replica has it, in a new reign.
    pub(crate) fn successor(&self, reign: &str, waits: bool) -> Self {
        let mut next = Self::new(reign, waits);
        next.lines = self.lines.iter().filter(|line| line.number <= self.replicated).cloned().collect();
        next.head = self.replicated;
        next.head_written_in = match self.lines.iter().find(|line| line.number == self.replicated) {
            Some(line) => line.reign.clone(),
            None => self.lines.first().map_or_else(|| self.head_written_in.clone(), |line| line.before.clone()),
        };
        next.replicated = next.head;
        next
    }
}
