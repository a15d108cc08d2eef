//! Gets that hit, in processes that share a store, or in as many threads of one process. Stores inside one process
//! can't take part.

use std::cell::RefCell;

use super::Procedure;
use super::gets::{Settings, fill, touch_of};
use crate::error::{Error, Result};
use crate::load::Population;
use crate::peer::Peer;
use crate::readers::{Readers, Task};
use crate::suite::cell::Cell;
use crate::suite::entrant::{Entrant, Room};
use crate::suite::named::Named;
use crate::suite::value::{Case, Value};

/// A volume has a process slot for each 256 KiB: this one has 128.
const CAP_BYTES_MIN: u64 = 32 << 20;

/// The procedure goes through `readers`, `by` and `consume` with the stores open. `size` and `storage` make cells. `by`
/// is optional: `processes` of one thread each, or the `threads` of one process.
pub(super) struct GetsByProcesses;

impl Procedure for GetsByProcesses {
    fn within(&self) -> &'static [&'static str] {
        &["readers", "by", "consume"]
    }

    fn measure(&self, cell: &mut Cell<'_>) -> Result<()> {
        let settings: Settings = cell.settings()?;
        let population = settings.population(cell.case())?;
        let cases = cell.cases(&["readers"]);
        let readers = cases.iter().map(|case| Ok(case.count("readers")? as u64)).collect::<Result<Vec<_>>>()?;
        let room = |peer: &Peer| room(peer, population);
        let mut entrants = cell.open_all(room, |entrant| fill(entrant, population))?;
        let ways = ways(cell)?;
        for (case, readers) in cases.into_iter().zip(readers) {
            let task = |entrant: &Entrant, cell: &Cell<'_>, way: Way| -> Result<Task> {
                // A child opens the store again by this peer.
                let peer = cell.peers().into_iter().find(|peer| peer.name == entrant.name());
                let peer =
                    peer.ok_or_else(|| Error::Invalid("its name is not the one that it was opened by".to_owned()))?;
                Ok(Task {
                    store: peer.name.to_owned(),
                    directory: entrant.path().to_owned(),
                    cap_bytes: room(peer).cap_bytes,
                    objects: population.objects,
                    value_bytes: population.value_bytes,
                    processes: if way == Way::Processes { readers } else { 1 },
                    process: 0,
                    threads: if way == Way::Processes { 1 } else { readers as usize },
                    keys: settings.keys,
                    seed: cell.seed(),
                })
            };
            let mut shared = start(cell, &entrants, &case, &ways, task)?;
            for consume in cell.values("consume") {
                let case = case.clone().with("consume", consume.clone());
                let touch = touch_of(&case)?;
                cell.show(&case.to_string());
                cell.turns(&mut shared, |cell, shared, repetition| {
                    let lap = shared.readers.borrow_mut().lap(touch, settings.turn())?;
                    let case = shared.by.iter().fold(case.clone(), |case, by| case.with("by", by.clone()));
                    cell.sample(&case, shared.name(), "gets", repetition, lap.per_second())
                })?;
            }
            let mut left = Vec::new();
            for Shared { entrant, readers, .. } in shared {
                let ended = readers.into_inner().end();
                left.extend(cell.attempt(entrant.name(), ended)?.map(|()| entrant.path().to_owned()));
            }
            // A store that has failed takes no further part.
            entrants.retain(|entrant| left.iter().any(|path| path == entrant.path()));
        }
        Ok(())
    }
}

/// A store that this process has open, and the other processes that have it open.
struct Shared<'a> {
    entrant: &'a Entrant,
    /// The value of the parameter, if there is one.
    by: Option<Value>,
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

/// The readers: processes, or threads of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Processes,
    Threads,
}

/// The value of the parameter `by`; processes if it is missing.
fn ways(cell: &Cell<'_>) -> Result<Vec<(Option<Value>, Way)>> {
    let values = cell.values("by");
    if values.is_empty() {
        return Ok(vec![(None, Way::Processes)]);
    }
    let way = |value: &Value| match value {
        Value::Text(word) if word == "processes" => Ok((Some(value.clone()), Way::Processes)),
        Value::Text(word) if word == "threads" => Ok((Some(value.clone()), Way::Threads)),
        other => Err(Error::parameter("by", Some(other), "processes or threads")),
    };
    values.iter().map(way).collect()
}

/// Room for all objects, and for all processes.
fn room(peer: &Peer, population: Population) -> Room {
    let room = Room::for_all(peer, population);
    Room { cap_bytes: room.cap_bytes.max(CAP_BYTES_MIN), ..room }
}

/// Starts the processes of the case for each store. If that fails, a note says so, and the store takes no part.
fn start<'a>(
    cell: &mut Cell<'_>,
    entrants: &'a [Entrant],
    case: &Case,
    ways: &[(Option<Value>, Way)],
    task: impl Fn(&Entrant, &Cell<'_>, Way) -> Result<Task>,
) -> Result<Vec<Shared<'a>>> {
    let mut shared = Vec::new();
    for entrant in entrants {
        cell.breathe()?;
        cell.show(&format!("processes attach to {}, {case}", entrant.name()));
        for (by, way) in ways {
            let begun = task(entrant, cell, *way).and_then(|task| Readers::start(&task));
            let begun = cell.attempt(entrant.name(), begun)?;
            shared.extend(begun.map(|readers| Shared { entrant, by: by.clone(), readers: readers.into() }));
        }
    }
    Ok(shared)
}
