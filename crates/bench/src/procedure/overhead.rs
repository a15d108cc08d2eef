//! The bytes of an entry beyond its key and value.

use serde::Deserialize;

use super::Procedure;
use crate::contender::Contender as _;
use crate::error::Result;
use crate::load::Population;
use crate::random::KEY_BYTES;
use crate::store::Place;
use crate::stores::Volume;
use crate::suite::cell::Cell;
use crate::suite::size::Bytes;

/// A new volume for each repetition.
pub(super) struct Overhead;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    cap: Bytes,
    value: Bytes,
    /// Bytes to put, in multiples of the cap.
    caps_put: u64,
}

impl Procedure for Overhead {
    fn measure(&self, cell: &mut Cell<'_>) -> Result<()> {
        let settings: Settings = cell.settings()?;
        let case = cell.case().clone();
        let value_bytes = settings.value.0 as usize;
        let entry_bytes = (value_bytes + KEY_BYTES) as u64;
        for repetition in 1..=cell.repetitions() {
            cell.breathe()?;
            let directory = cell.scratch().make(cell.storage()?)?;
            let store = Volume::create(&Place::new(directory.path(), settings.cap.0, value_bytes))?;
            store.fill(Population { objects: settings.caps_put * settings.cap.0 / entry_bytes, value_bytes })?;
            let stats = store.cache().stats()?;
            let beyond = |bytes: u64| bytes as f64 / stats.entries.max(1) as f64 - entry_bytes as f64;
            for (measure, bytes) in [
                ("overhead", stats.live_bytes + stats.overhead_bytes),
                ("headers", stats.live_bytes),
                ("file", stats.size_bytes),
            ] {
                cell.sample(&case, Volume::NAME, measure, repetition, beyond(bytes))?;
            }
        }
        Ok(())
    }
}
