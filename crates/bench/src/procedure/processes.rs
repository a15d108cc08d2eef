//! Gets that hit, by processes that share a store. What lives in one process can't take part.

use std::cell::RefCell;

use super::Procedure;
use super::gets::{Settings, fill, touch_of};
use crate::error::{Error, Result};
use crate::load::Population;
use crate::readers::{Readers, Task};
use crate::store::Peer;
use crate::suite::cell::Cell;
use crate::suite::entrant::{Entrant, Room};
use crate::suite::turns::Named;
use crate::suite::value::Case;

/// A volume has places for as many processes as it has 256 KiB: here for 128.
const CAP_BYTES_MIN: u64 = 32 << 20;

/// `readers` and `consume` are gone through with the stores open, `readers` with the processes up; `size` and `storage` make cells.
pub(super) struct GetsByProcesses;

impl Procedure for GetsByProcesses {
    fn within(&self) -> &'static [&'static str] {
        &["readers", "consume"]
    }

    fn measure(&self, cell: &mut Cell<'_>) -> Result<()> {
        let settings: Settings = cell.settings()?;
        let population = settings.population(cell.case())?;
        let cases = cell.cases(&["readers"]);
        let readers = cases.iter().map(|case| Ok(case.count("readers")? as u64)).collect::<Result<Vec<_>>>()?;
        let room = |peer: &Peer| room(peer, population);
        let mut entrants = cell.open_all(room, |entrant| fill(entrant, population))?;
        for (case, processes) in cases.into_iter().zip(readers) {
            let task = |entrant: &Entrant, cell: &Cell<'_>| -> Result<Task> {
                // What it is opened by again in a child.
                let peer = cell.peers().into_iter().find(|peer| peer.name == entrant.name());
                let peer =
                    peer.ok_or_else(|| Error::Invalid("its name is not the one that it was opened by".to_owned()))?;
                Ok(Task {
                    store: peer.name.to_owned(),
                    directory: entrant.path().to_owned(),
                    cap_bytes: room(peer).cap_bytes,
                    objects: population.objects,
                    value_bytes: population.value_bytes,
                    processes,
                    process: 0,
                    threads: 1,
                    keys: settings.keys,
                    seed: cell.seed(),
                })
            };
            let mut shared = start(cell, &entrants, &case, task)?;
            for consume in cell.values("consume") {
                let case = case.clone().with("consume", consume.clone());
                let touch = touch_of(&case)?;
                cell.show(&case.to_string());
                cell.turns(&mut shared, |cell, shared, repetition| {
                    let lap = shared.readers.borrow_mut().lap(touch, settings.turn())?;
                    cell.sample(&case, shared.name(), "gets", repetition, lap.per_second())
                })?;
            }
            let mut left = Vec::new();
            for Shared { entrant, readers } in shared {
                let ended = readers.into_inner().end();
                left.extend(cell.attempt(entrant.name(), ended)?.map(|()| entrant.path().to_owned()));
            }
            // A store that failed takes no further part.
            entrants.retain(|entrant| left.iter().any(|path| path == entrant.path()));
        }
        Ok(())
    }
}

/// A store that this process has open, and the processes that have it open beside it.
struct Shared<'a> {
    entrant: &'a Entrant,
    readers: RefCell<Readers>,
}

impl Named for Shared<'_> {
    fn name(&self) -> &str {
        self.entrant.name()
    }

    fn settle(&self) -> Result<()> {
        self.entrant.settle()
    }
}

/// Room for all objects, and for all processes.
fn room(peer: &Peer, population: Population) -> Room {
    let room = Room::for_all(peer, population);
    Room { cap_bytes: room.cap_bytes.max(CAP_BYTES_MIN), ..room }
}

/// The case's processes for each store. A store that can't have them is noted, and takes no part.
fn start<'a>(
    cell: &mut Cell<'_>,
    entrants: &'a [Entrant],
    case: &Case,
    task: impl Fn(&Entrant, &Cell<'_>) -> Result<Task>,
) -> Result<Vec<Shared<'a>>> {
    let mut shared = Vec::new();
    for entrant in entrants {
        cell.breathe()?;
        cell.show(&format!("processes attach to {}, {case}", entrant.name()));
        let begun = task(entrant, cell).and_then(|task| Readers::start(&task));
        let begun = cell.attempt(entrant.name(), begun)?;
        shared.extend(begun.map(|readers| Shared { entrant, readers: readers.into() }));
    }
    Ok(shared)
}
