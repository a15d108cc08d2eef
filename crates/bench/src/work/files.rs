//! Gets against one file for each entry.

use std::time::Duration;

use super::get::{KEYS_TOTAL, measure};
use super::{KIB, MIB, Opened, population, size_name};
use crate::error::Result;
use crate::load::{Gets, Population, Sequences};
use crate::record::{Ask, Row};
use crate::run::{Run, SEED};
use crate::scratch::Storage;
use crate::store::{EYEWALL, FILES, Files, Volume};
use crate::touch::Touch;

/// The thread count that bars are set for; the others are printed beside.
const THREADS_JUDGED: usize = 64;

/// Measures each size, thread count and way of reading.
pub fn run(run: &mut Run) -> Result<()> {
    let thread_counts = run.pick(&[1, 4, 8, THREADS_JUDGED][..], &[1, THREADS_JUDGED]);
    for population in populations(run) {
        let opened = [
            Opened::filled(run, &EYEWALL, Storage::Disk, population.cap_bytes(), population)?,
            Opened::filled(run, &FILES, Storage::Disk, population.cap_in_blocks(), population)?,
        ];
        for &threads in thread_counts {
            let sequences = Sequences::random(population, threads, KEYS_TOTAL / 4, SEED);
            for touch in [Touch::Page, Touch::Every] {
                let gets =
                    Gets { sequences: sequences.clone(), touch, duration: Duration::from_millis(run.pick(400, 60)) };
                let case = format!(
                    "{}, {threads} threads, {}, {}",
                    size_name(population.value_bytes),
                    touch.name(),
                    run.storage_name(Storage::Disk)
                );
                let row = measure(run, Row::new("files", case, "k/s"), &opened, &gets, 1e3)?;
                let ask = ask(population.value_bytes, threads, touch);
                run.push(row.ratio(Volume::NAME, Files::NAME, ask));
            }
        }
    }
    Ok(())
}

/// Each larger than the L2 cache. 100 B values are fewer bytes: each is a file.
fn populations(run: &Run) -> [Population; 3] {
    [
        Population { objects: run.pick(50_000, 10_000), value_bytes: 100 },
        population(10 * KIB, run.pick(64, 16) * MIB),
        population(MIB, run.pick(128, 32) * MIB),
    ]
}

fn ask(value_bytes: usize, threads: usize, touch: Touch) -> Ask {
    match (threads, touch, value_bytes) {
        (THREADS_JUDGED, Touch::Page, bytes) if bytes == 10 * KIB => Ask::at_least(25.0).aim(40.0),
        (THREADS_JUDGED, Touch::Page, _) => Ask::at_least(20.0).aim(40.0),
        (THREADS_JUDGED, Touch::Every, MIB) => Ask::at_least(1.8),
        _ => Ask::NOTHING,
    }
}
