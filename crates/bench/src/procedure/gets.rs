//! Gets that hit, in threads that consume the values in one of three ways.

use std::time::Duration;

use serde::Deserialize;

use super::Procedure;
use crate::error::{Error, Result};
use crate::load::{self, Population, Sequences};
use crate::suite::cell::Cell;
use crate::suite::entrant::{Entrant, Room};
use crate::suite::size::Bytes;
use crate::suite::value::Case;
use crate::touch::Touch;

/// The procedure goes through `readers` and `consume` with the stores open; `size` and `storage` make cells.
pub(super) struct Gets;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Settings {
    /// Bytes of all values.
    set: Bytes,
    /// The largest number of objects. It bounds small values, since each object is a file in some stores.
    objects_max: u64,
    /// Number of keys before the order repeats, for all readers together.
    pub(super) keys: usize,
    /// The length of each store's turn.
    milliseconds: u64,
}

impl Settings {
    /// The objects of the cell's size.
    pub(super) fn population(&self, case: &Case) -> Result<Population> {
        let value_bytes = case.bytes("size")? as usize;
        let objects = (self.set.0 / value_bytes as u64).min(self.objects_max);
        Ok(Population { objects, value_bytes })
    }

    /// The length of each store's turn.
    pub(super) fn turn(&self) -> Duration {
        Duration::from_millis(self.milliseconds)
    }
}

impl Procedure for Gets {
    fn within(&self) -> &'static [&'static str] {
        &["readers", "consume"]
    }

    fn measure(&self, cell: &mut Cell<'_>) -> Result<()> {
        let settings: Settings = cell.settings()?;
        let population = settings.population(cell.case())?;
        let mut entrants =
            cell.open_all(|peer| Room::for_all(peer, population), |entrant| fill(entrant, population))?;
        for case in cell.cases(self.within()) {
            let readers = case.count("readers")?;
            let gets = load::Gets {
                sequences: Sequences::random(population, readers, settings.keys.max(readers), cell.seed()),
                touch: touch_of(&case)?,
                duration: settings.turn(),
            };
            cell.show(&case.to_string());
            cell.turns(&mut entrants, |cell, entrant, repetition| {
                let lap = entrant.store.gets(&gets)?;
                cell.sample(&case, entrant.store.name(), "gets", repetition, lap.per_second())
            })?;
        }
        Ok(())
    }
}

/// A store, filled and checked. The check populates the map of this process.
pub(super) fn fill(entrant: &Entrant, population: Population) -> Result<()> {
    entrant.store.fill(population)?;
    entrant.store.complete(population)?;
    entrant.store.check(population)
}

/// The value of the parameter `consume`.
pub(super) fn touch_of(case: &Case) -> Result<Touch> {
    match case.text("consume")? {
        "pointer" => Ok(Touch::Pointer),
        "a byte a page" => Ok(Touch::Page),
        "every byte" => Ok(Touch::Every),
        _ => Err(Error::parameter("consume", case.get("consume"), "pointer, a byte a page, or every byte")),
    }
}
