//! What workloads are made of: each procedure does one kind of work, and a definition says with which sizes, on which stores, in
//! which cases (bench/workloads/README.md).

mod file_cache;
mod flood;
mod gets;
mod modules;
pub mod oversized;
mod replay;
mod sweep;
mod traffic;

use crate::error::{Error, Result};
use crate::simulate;
use crate::store::Peer;
use crate::suite::cell::{Cell, Contestant, Entrant, Room};
use crate::suite::definition::Definition;

/// One kind of work.
pub trait Procedure: Sync {
    /// The parameters that it goes through with the stores open. Each choice of the others is a cell.
    fn within(&self) -> &'static [&'static str] {
        &[]
    }

    /// Why it can't be done on this machine, with what to do about it.
    fn skip(&self, _definition: &Definition) -> Option<String> {
        None
    }

    /// Measures a cell.
    fn measure(&self, cell: &mut Cell<'_>) -> Result<()>;
}

/// The procedure of that name; a driver may have others.
pub fn named(name: &str) -> Option<&'static dyn Procedure> {
    Some(match name {
        "file-cache" => &file_cache::FileCache,
        "file-pressure" => &file_cache::FilePressure,
        "flood" => &flood::Flood,
        "gets" => &gets::Gets,
        "modules" => &modules::Modules,
        "misses" => &sweep::Misses,
        "overflow" => &sweep::Overflow,
        "oversized" => &oversized::Oversized,
        "replay" => &replay::Replay,
        "sweep" => &sweep::Sweep,
        "traffic" => &traffic::Traffic,
        _ => return None,
    })
}

/// One repetition of one store of this program, in a workload in which drivers take part, too.
pub trait Once {
    /// Measures it.
    fn measure(&self, cell: &mut Cell<'_>, peer: &Peer, repetition: usize) -> Result<()>;
}

/// Where all stores are drivers'.
#[derive(Debug)]
pub struct NoPeers;

impl Once for NoPeers {
    fn measure(&self, _cell: &mut Cell<'_>, peer: &Peer, _repetition: usize) -> Result<()> {
        Err(Error::Invalid(format!("{}: only drivers do this", peer.name)))
    }
}

/// Lets stores of this program and of drivers take turns. Who fails is noted, and takes no further part.
pub fn take_turns(cell: &mut Cell<'_>, once: &dyn Once) -> Result<()> {
    let mut contestants = cell.contestants();
    for repetition in 1..=cell.repetitions() {
        let mut failed = Vec::new();
        for (number, contestant) in contestants.iter().enumerate() {
            cell.breathe()?;
            let done = match contestant {
                Contestant::Peer(peer) => once.measure(cell, peer, repetition),
                Contestant::Driven(name, driver) => cell.drive(driver, &[name], &[repetition]),
            };
            if cell.attempt(contestant.name(), done)?.is_none() {
                failed.push(number);
            }
        }
        for number in failed.into_iter().rev() {
            contestants.remove(number);
        }
    }
    Ok(())
}

/// Lets the stores of this program take turns, each with a new and empty store in each repetition. Who fails is noted, and takes
/// no further part.
fn each_anew(
    cell: &mut Cell<'_>,
    room: Room,
    mut turn: impl FnMut(&mut Cell<'_>, &Entrant, usize) -> Result<()>,
) -> Result<()> {
    let mut peers = cell.peers();
    peers.retain(|peer| !simulate::is_reference(peer.name));
    for repetition in 1..=cell.repetitions() {
        let mut failed = Vec::new();
        for peer in &peers {
            cell.show(&format!("{}, repetition {repetition}, {}", cell.case(), peer.name));
            let done = cell.open(peer, room).and_then(|entrant| {
                cell.scratch().settle(cell.storage()?)?;
                turn(cell, &entrant, repetition)
            });
            if cell.attempt(peer.name, done)?.is_none() {
                failed.push(peer.name);
            }
        }
        peers.retain(|peer| !failed.contains(&peer.name));
    }
    Ok(())
}
