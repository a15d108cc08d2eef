//! Gets that hit, by threads or by processes, consumed in one of three ways.

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

/// `readers` and `consume` are gone through with the stores open; `size` and `storage` make cells.
pub(super) struct Gets;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// Of all values.
    set: Bytes,
    /// Objects at most, of small values: each is a file somewhere.
    objects_max: u64,
    /// Keys that are asked for before the order repeats, over all readers.
    keys: usize,
    /// How long each store has its turn.
    milliseconds: u64,
}

impl Procedure for Gets {
    fn within(&self) -> &'static [&'static str] {
        &["readers", "consume"]
    }

    fn measure(&self, cell: &mut Cell<'_>) -> Result<()> {
        let settings: Settings = cell.settings()?;
        let value_bytes = cell.case().bytes("size")? as usize;
        let objects = (settings.set.0 / value_bytes as u64).min(settings.objects_max);
        let population = Population { objects, value_bytes };
        let mut entrants =
            cell.open_all(|peer| Room::for_all(peer, population), |entrant| fill(entrant, population))?;
        for case in cell.cases(self.within()) {
            let readers = case.count("readers")?;
            let gets = load::Gets {
                sequences: Sequences::random(population, readers, settings.keys.max(readers), cell.seed()),
                touch: touch_of(&case)?,
                duration: Duration::from_millis(settings.milliseconds),
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

/// Filled and checked, which populates this process's map.
fn fill(entrant: &Entrant, population: Population) -> Result<()> {
    entrant.store.fill(population)?;
    entrant.store.complete(population)?;
    entrant.store.check(population)
}

/// What the parameter `consume` says.
pub(super) fn touch_of(case: &Case) -> Result<Touch> {
    match case.text("consume")? {
        "pointer" => Ok(Touch::Pointer),
        "a byte a page" => Ok(Touch::Page),
        "every byte" => Ok(Touch::Every),
        _ => Err(Error::parameter("consume", case.get("consume"), "pointer, a byte a page, or every byte")),
    }
}
