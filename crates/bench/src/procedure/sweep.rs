//! Puts distinct objects, batch by batch, into a store that is far too small for all of them.

use serde::Deserialize;

use super::Procedure;
use crate::contender::{Contender, Swept};
use crate::error::Result;
use crate::footprint;
use crate::looks::{self, Look};
use crate::random::Random;
use crate::suite::cell::Cell;
use crate::suite::entrant::Room;
use crate::suite::size::Bytes;
use crate::suite::value::Case;

use std::time::Duration;

/// Points of a footprint's line.
const POINTS: usize = 200;

/// Time between two samples of a footprint.
const PAUSE: Duration = Duration::from_millis(1);

/// How fast stores evict: a new store for each repetition.
pub(super) struct Sweep;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    cap: Bytes,
    smallest: Bytes,
    largest: Bytes,
    objects: usize,
    batch: usize,
}

impl Procedure for Sweep {
    fn measure(&self, cell: &mut Cell<'_>) -> Result<()> {
        let settings: Settings = cell.settings()?;
        let sizes = sizes(&settings, cell.seed());
        let (case, room) = (cell.case().clone(), settings.room());
        cell.turns_anew(room, |cell, entrant, repetition| {
            let name = entrant.store.name();
            let swept = sweep(cell, entrant.store.as_ref(), &sizes, settings.batch)?;
            for (number, seconds) in swept.seconds.iter().enumerate() {
                let rate = settings.batch as f64 / seconds;
                cell.sample_along(&case, name, "batch_rate", repetition, rate, Some((number + 1) as f64))?;
            }
            let rate = (sizes.len() - swept.refused) as f64 / swept.all_seconds();
            cell.sample(&case, name, "rate", repetition, rate)?;
            let mut sorted = swept.seconds;
            sorted.sort_by(f64::total_cmp);
            let p95 = sorted[(sorted.len() * 95).div_ceil(100) - 1];
            cell.sample(&case, name, "unsteadiness", repetition, p95 / sorted[sorted.len() / 2])
        })
    }
}

impl Settings {
    fn room(&self) -> Room {
        let value_bytes = usize::midpoint(self.smallest.0 as usize, self.largest.0 as usize);
        Room { cap_bytes: self.cap.0, value_bytes, value_bytes_max: 0, tier_bytes: 0 }
    }
}

/// Uniformly distributed.
fn sizes(settings: &Settings, seed: u64) -> Vec<usize> {
    let mut random = Random::new(seed);
    (0..settings.objects).map(|_| random.between(settings.smallest.0, settings.largest.0) as usize).collect()
}

/// Puts all objects. A note names the number of refused ones, since the rate is that of the others.
fn sweep(cell: &mut Cell<'_>, store: &dyn Contender, sizes: &[usize], batch: usize) -> Result<Swept> {
    let swept = store.sweep(sizes, batch)?;
    if swept.refused > 0 {
        let (name, all) = (store.name(), sizes.len());
        cell.note(format!("{name} refused {} of {all} puts as too large ({})", swept.refused, cell.case()));
    }
    Ok(swept)
}

/// Whether a store keeps its cap: a sweep that samples the footprint.
pub(super) struct Overflow;

impl Procedure for Overflow {
    fn measure(&self, cell: &mut Cell<'_>) -> Result<()> {
        let settings: Settings = cell.settings()?;
        let sizes = sizes(&settings, cell.seed());
        let (case, room) = (cell.case().clone(), settings.room());
        cell.turns_anew(room, |cell, entrant, repetition| {
            let swept = sweep(cell, entrant.store.as_ref(), &sizes, settings.batch)?;
            let bytes = sizes.iter().sum::<usize>() - swept.refused_bytes;
            cell.sample(&case, entrant.store.name(), "rate", repetition, bytes as f64 / swept.all_seconds())
        })?;
        // Separate from the measurement of the rate, since examining many files slows down the process that writes
        // them.
        cell.turns_anew(room, |cell, entrant, repetition| {
            let store: &dyn Contender = entrant.store.as_ref();
            let (_, looks) = looks::while_looking(store, PAUSE, || store.sweep(&sizes, settings.batch))?;
            record_looks(cell, &case, store.name(), repetition, &looks, settings.cap)?;
            match store.live_bytes()? {
                Some(bytes) => {
                    let percent = 100.0 * bytes as f64 / settings.cap.0 as f64;
                    cell.sample(&case, store.name(), "live", repetition, percent)
                }
                None => Ok(()),
            }
        })
    }
}

fn record_looks(
    cell: &mut Cell<'_>,
    case: &Case,
    store: &str,
    repetition: usize,
    looks: &[Look],
    cap: Bytes,
) -> Result<()> {
    let Some(most) = looks.iter().map(|look| look.bytes).max() else {
        cell.note(format!("{store}: nobody can tell its footprint"));
        return Ok(());
    };
    cell.sample(case, store, "of_cap", repetition, 100.0 * most as f64 / cap.0 as f64)?;
    if repetition == 1 {
        for Look { seconds, bytes } in looks::thinned(looks, POINTS) {
            cell.sample_along(case, store, "footprint", repetition, bytes as f64, Some(seconds))?;
        }
    }
    Ok(())
}

/// Remembered misses: many keys whose values have only a few bytes.
pub(super) struct Misses;

/// Bytes of a value that says that there is nothing.
const MARK_BYTES: usize = 8;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MissesSettings {
    cap: Bytes,
    keys: usize,
}

impl Procedure for Misses {
    fn measure(&self, cell: &mut Cell<'_>) -> Result<()> {
        let settings: MissesSettings = cell.settings()?;
        let room = Room { cap_bytes: settings.cap.0, value_bytes: MARK_BYTES, value_bytes_max: 0, tier_bytes: 0 };
        let marks = vec![MARK_BYTES; settings.keys];
        let case = cell.case().clone();
        cell.turns_anew(room, |cell, entrant, repetition| {
            let name = entrant.store.name();
            let seconds = sweep(cell, entrant.store.as_ref(), &marks, marks.len())?.all_seconds();
            cell.sample(&case, name, "time", repetition, seconds)?;
            cell.sample(&case, name, "inodes", repetition, footprint::below(entrant.path())?.inodes as f64)?;
            match entrant.store.footprint_bytes()? {
                Some(bytes) => cell.sample(&case, name, "footprint", repetition, bytes as f64),
                None => Ok(()),
            }
        })
    }
}
