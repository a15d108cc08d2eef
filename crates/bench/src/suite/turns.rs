//! Turns: each repetition measures all stores, one after the other, so that a disturbance of the machine affects all of
//! them.

use std::ops::RangeInclusive;

use super::cell::{Cell, Contestant};
use super::entrant::{Entrant, Room};
use super::named::Named;
use crate::error::{Error, Result};
use crate::peer::Peer;
use crate::simulate;

impl Named for Entrant {
    fn name(&self) -> &str {
        self.store.name()
    }

    fn settle(&self) -> Result<()> {
        self.store.settle()
    }
}

impl Named for &Peer {
    fn name(&self) -> &str {
        self.name
    }
}

impl Named for Contestant<'_> {
    fn name(&self) -> &str {
        Contestant::name(self)
    }
}

impl Cell<'_> {
    /// Gives each store a turn in each repetition, counted from 1. Repetition 0 comes before them and isn't counted. If
    /// a store fails, a note says so, and it takes no further part.
    pub fn turns<E: Named>(
        &mut self,
        entrants: &mut Vec<E>,
        turn: impl FnMut(&mut Self, &E, usize) -> Result<()>,
    ) -> Result<()> {
        self.rounds(entrants, 0..=self.repetitions(), turn)
    }

    /// Lets the stores of this program take turns. Each repetition begins with new, empty stores. If a store fails, a
    /// note says so, and it takes no further part.
    pub fn turns_anew(
        &mut self,
        room: Room,
        mut turn: impl FnMut(&mut Self, &Entrant, usize) -> Result<()>,
    ) -> Result<()> {
        let mut peers = self.peers();
        peers.retain(|peer| !simulate::is_reference(peer.name));
        self.rounds(&mut peers, 1..=self.repetitions(), |cell, peer, repetition| {
            cell.show(&format!("{}, repetition {repetition}, {}", cell.case(), peer.name));
            let entrant = cell.open(peer, room)?;
            cell.scratch().settle(cell.storage()?)?;
            turn(cell, &entrant, repetition)
        })
    }

    /// Lets stores of this program and of drivers take turns; `once` is the turn of a store of this program. If a store
    /// fails, a note says so, and it takes no further part.
    pub fn turns_of_all(&mut self, mut once: impl FnMut(&mut Self, &Peer, usize) -> Result<()>) -> Result<()> {
        let mut contestants = self.contestants();
        self.rounds(&mut contestants, 1..=self.repetitions(), |cell, contestant, repetition| match contestant {
            Contestant::Peer(peer) => once(cell, peer, repetition),
            Contestant::Driven(name, driver) => cell.drive(driver, &[name], &[repetition]),
        })
    }

    /// Leaves the turns to the driver, with one request for all.
    pub fn turns_of_driver(&mut self) -> Result<()> {
        let repetitions: Vec<usize> = (1..=self.repetitions()).collect();
        let contestants = self.contestants();
        let stores: Vec<&str> = contestants.iter().map(Contestant::name).collect();
        let driver = contestants.iter().find_map(|contestant| match contestant {
            Contestant::Driven(_, driver) => Some(*driver),
            Contestant::Peer(_) => None,
        });
        match driver {
            Some(driver) => self.drive(driver, &stores, &repetitions),
            None => Err(Error::Invalid("its driver has none of its stores".to_owned())),
        }
    }

    fn rounds<E: Named>(
        &mut self,
        all: &mut Vec<E>,
        repetitions: RangeInclusive<usize>,
        mut turn: impl FnMut(&mut Self, &E, usize) -> Result<()>,
    ) -> Result<()> {
        for repetition in repetitions {
            let mut failed = Vec::new();
            for number in order(all.len(), repetition) {
                self.breathe()?;
                let one = &all[number];
                let done = turn(self, one, repetition).and_then(|()| one.settle());
                if self.attempt(one.name(), done)?.is_none() {
                    failed.push(number);
                }
            }
            let mut number = 0;
            all.retain(|_| {
                number += 1;
                !failed.contains(&(number - 1))
            });
        }
        Ok(())
    }
}

/// The order of the stores in a repetition. It is reversed each time, so that no store always follows the same one.
fn order(count: usize, repetition: usize) -> impl Iterator<Item = usize> {
    (0..count).map(move |at| if repetition.is_multiple_of(2) { count - 1 - at } else { at })
}

#[cfg(test)]
mod tests {
    use super::order;

    #[test]
    fn turns_go_to_and_fro() {
        assert_eq!(order(3, 1).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(order(3, 2).collect::<Vec<_>>(), [2, 1, 0]);
        assert_eq!(order(0, 1).count(), 0);
    }
}
