//! The purges of a node on their way into the log.
//!
//! ```text
//! push ──> unwritten ──written──> written in a reign ──acknowledged──> kept ──> forgotten when too many newer ones are kept
//!              ^                        │                                │
//!              └────────────────────────┴──────── another reign ─────────┘
//! ```

use std::collections::VecDeque;

use crate::log::Reign;

/// Names a purge of this outbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(u64);

/// How many purges an outbox has.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// That the log doesn't have yet.
    pub pending: usize,
    /// That the log has, and that are written again if the reign changes. 0 with a durable log.
    pub kept: usize,
}

/// More purges wait than the outbox takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full;

/// A purge to write.
#[derive(Debug, Clone, Copy)]
pub struct Unwritten<'a> {
    /// Its name.
    pub ticket: Ticket,
    /// The purge.
    pub purge: &'a [u8],
}

/// The purges of a node that the log doesn't have yet, and the last ones that it has.
#[derive(Debug)]
pub struct Outbox {
    limits: Limits,
    /// A purge of everything. It is written in the place of those that were forgotten.
    everything: Vec<u8>,
    next: u64,
    pending: VecDeque<Pending>,
    kept: VecDeque<Kept>,
    /// The reign of purges that were forgotten.
    forgotten: Option<Reign>,
}

#[derive(Debug)]
struct Pending {
    ticket: Ticket,
    purge: Vec<u8>,
    written: Option<(Reign, u64)>,
}

#[derive(Debug)]
struct Kept {
    reign: Reign,
    purge: Vec<u8>,
}

impl Outbox {
    /// An empty outbox. `everything` is a soft purge of everything.
    pub fn new(limits: Limits, everything: Vec<u8>) -> Self {
        Self { limits, everything, next: 0, pending: VecDeque::new(), kept: VecDeque::new(), forgotten: None }
    }

    /// How many purges the log doesn't have yet.
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Adds a purge.
    ///
    /// # Errors
    /// [`Full`].
    pub fn push(&mut self, purge: Vec<u8>) -> Result<Ticket, Full> {
        if self.pending.len() >= self.limits.pending {
            return Err(Full);
        }
        Ok(self.add(purge))
    }

    fn add(&mut self, purge: Vec<u8>) -> Ticket {
        let ticket = Ticket(self.next);
        self.next += 1;
        self.pending.push_back(Pending { ticket, purge, written: None });
        ticket
    }

    /// The purges to write, in their order.
    pub fn unwritten(&self) -> impl Iterator<Item = Unwritten<'_>> {
        let unwritten = self.pending.iter().filter(|pending| pending.written.is_none());
        unwritten.map(|pending| Unwritten { ticket: pending.ticket, purge: &pending.purge })
    }

    /// The log has taken the purge as this line.
    pub fn written(&mut self, ticket: Ticket, reign: &Reign, number: u64) {
        if let Some(pending) = self.pending.iter_mut().find(|pending| pending.ticket == ticket) {
            pending.written = Some((reign.clone(), number));
        }
    }

    /// Enough replicas have acknowledged the log of this reign up to this line. Returns the purges that this is good for, with the
    /// numbers of their lines.
    pub fn acknowledged(&mut self, reign: &Reign, head: u64) -> Vec<(Ticket, u64)> {
        let mut done = Vec::new();
        let mut rest = VecDeque::with_capacity(self.pending.len());
        for pending in self.pending.drain(..) {
            match &pending.written {
                Some((in_reign, number)) if in_reign == reign && *number <= head => {
                    done.push((pending.ticket, *number));
                    self.kept.push_back(Kept { reign: reign.clone(), purge: pending.purge });
                }
                _ => rest.push_back(pending),
            }
        }
        self.pending = rest;
        while self.kept.len() > self.limits.kept {
            let oldest = self.kept.pop_front();
            self.forgotten = oldest.map(|oldest| oldest.reign).filter(|_| self.limits.kept > 0);
        }
        done
    }

    /// The log has this reign now. Purges that were written in another one are written again.
    pub fn reign(&mut self, reign: &Reign) {
        for pending in &mut self.pending {
            pending.written.take_if(|(in_reign, _)| in_reign != reign);
        }
        if self.forgotten.as_ref().is_some_and(|forgotten| forgotten != reign) {
            self.forgotten = None;
            self.add(self.everything.clone());
        }
        for kept in std::mem::take(&mut self.kept) {
            if kept.reign == *reign {
                self.kept.push_back(kept);
            } else {
                self.add(kept.purge);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn purges(outbox: &Outbox) -> Vec<&[u8]> {
        outbox.unwritten().map(|unwritten| unwritten.purge).collect()
    }

    #[test]
    fn a_purge_is_written_once_in_a_reign_and_again_in_the_next() {
        let (first, second) = (Reign::new("first"), Reign::new("second"));
        let mut outbox = Outbox::new(Limits { pending: 9, kept: 9 }, b"everything".to_vec());
        let (a, b) = (outbox.push(b"a".to_vec()).unwrap(), outbox.push(b"b".to_vec()).unwrap());
        outbox.written(a, &first, 1);
        outbox.written(b, &first, 2);
        assert!(purges(&outbox).is_empty());
        assert_eq!(outbox.acknowledged(&second, 9), []);
        assert_eq!(outbox.acknowledged(&first, 1), [(a, 1)]);
        assert_eq!(outbox.pending(), 1);
        outbox.reign(&first);
        assert!(purges(&outbox).is_empty());
        outbox.reign(&second);
        assert_eq!(purges(&outbox), [b"b", b"a"]);
    }

    #[test]
    fn forgotten_purges_become_one_of_everything() {
        let (first, second) = (Reign::new("first"), Reign::new("second"));
        let mut outbox = Outbox::new(Limits { pending: 3, kept: 1 }, b"everything".to_vec());
        for number in 1..=3 {
            let ticket = outbox.push(vec![number]).unwrap();
            outbox.written(ticket, &first, number.into());
        }
        assert_eq!(outbox.push(Vec::new()), Err(Full));
        assert_eq!(outbox.acknowledged(&first, 3).len(), 3);
        outbox.reign(&first);
        assert_eq!(outbox.pending(), 0);
        outbox.reign(&second);
        assert_eq!(purges(&outbox), [&b"everything"[..], &[3]]);
    }

    #[test]
    fn a_durable_log_needs_no_purge_twice() {
        let mut outbox = Outbox::new(Limits { pending: 3, kept: 0 }, b"everything".to_vec());
        let ticket = outbox.push(b"a".to_vec()).unwrap();
        outbox.written(ticket, &Reign::new("first"), 1);
        assert_eq!(outbox.acknowledged(&Reign::new("first"), 1).len(), 1);
        outbox.reign(&Reign::new("second"));
        assert_eq!(outbox.pending(), 0);
    }
}
