//! Verifies a full volume in memory. Measures bytes a second, beside a plain read of the same bytes.

use std::fs;
use std::hint::black_box;

use eyewall::Check;
use serde::Deserialize;

use super::Procedure;
use crate::clock::now_ns;
use crate::contender::Contender as _;
use crate::error::{Error, Result};
use crate::load::Population;
use crate::store::Place;
use crate::stores::Volume;
use crate::suite::cell::Cell;
use crate::suite::size::Bytes;
use crate::suite::value::Value;
use crate::touch;

/// The values of the parameter `how`.
const DEEP: &str = "every entry read";
const WALK: &str = "logs and index alone";
const READ: &str = "plain read of the file's bytes, in memory";

/// The procedure goes through `how` with the volume open.
pub(super) struct Verification;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    cap: Bytes,
    value: Bytes,
    /// Bytes to put, in multiples of the cap.
    caps_put: u64,
}

impl Procedure for Verification {
    fn within(&self) -> &'static [&'static str] {
        &["how"]
    }

    fn measure(&self, cell: &mut Cell<'_>) -> Result<()> {
        let settings: Settings = cell.settings()?;
        let value_bytes = settings.value.0 as usize;
        let directory = cell.scratch().make(cell.storage()?)?;
        cell.show("a volume is filled");
        let store = Volume::create(&Place::new(directory.path(), settings.cap.0, value_bytes))?;
        store.fill(Population { objects: settings.caps_put * settings.cap.0 / settings.value.0, value_bytes })?;
        store.cache().populate()?;
        let path = directory.path().join(Volume::FILE);
        let bytes = fs::read(&path).map_err(Error::path("read", &path))?;
        let live_bytes = store.cache().stats()?.live_bytes;
        for repetition in 1..=cell.repetitions() {
            cell.breathe()?;
            cell.show(&format!("repetition {repetition}"));
            let rates = [
                (DEEP, bytes_a_second(live_bytes, || check(&store, true))?),
                (WALK, bytes_a_second(live_bytes, || check(&store, false))?),
                (
                    READ,
                    bytes_a_second(bytes.len() as u64, || {
                        black_box(touch::every(&bytes));
                        Ok(())
                    })?,
                ),
            ];
            for (how, rate) in rates {
                let case = cell.case().clone().with("how", Value::Text(how.to_owned()));
                cell.sample(&case, Volume::NAME, "rate", repetition, rate)?;
            }
        }
        Ok(())
    }
}

/// Verifies the volume. With `deep` it also compares every entry with its checksum.
fn check(store: &Volume, deep: bool) -> Result<()> {
    let report = store.cache().verify_with(&Check::new().deep(deep))?;
    if let Some(problem) = report.problems.first() {
        return Err(Error::Invalid(format!("a volume that was only filled is not sound: {problem}")));
    }
    if deep && report.entries_read != report.entries {
        let what = format!("verify has read {} of {} entries", report.entries_read, report.entries);
        return Err(Error::Invalid(what));
    }
    Ok(())
}

fn bytes_a_second(bytes: u64, work: impl FnOnce() -> Result<()>) -> Result<f64> {
    let begin_ns = now_ns();
    work()?;
    Ok(bytes as f64 * 1e9 / (now_ns() - begin_ns).max(1) as f64)
}
