//! The same gets by 8 processes and by 8 threads of one.

use std::time::Duration;

use super::{KEYS_TOTAL, KIB, Opened, SET_BYTES, population, size_name};
use crate::error::Result;
use crate::load::Population;
use crate::readers::{Readers, Task};
use crate::record::{Ask, Row};
use crate::run::{Run, SEED};
use crate::scratch::Storage;
use crate::store::EYEWALL;
use crate::touch::Touch;

/// Bytes of each value.
const VALUE_BYTES: [usize; 2] = [100, 10 * KIB];

/// Threads of one process, or processes of one thread.
const READERS: usize = 8;

const PROCESSES: &str = "eyewall, 8 processes";
const THREADS: &str = "eyewall, 8 threads";

/// Both ways run in children, so that they differ in nothing else.
pub fn run(run: &mut Run) -> Result<()> {
    let duration = Duration::from_millis(run.pick(400, 60));
    for value_bytes in VALUE_BYTES {
        let population = population(value_bytes, run.pick(SET_BYTES, SET_BYTES / 4));
        let opened = Opened::filled(run, &EYEWALL, Storage::Disk, population.cap_bytes(), population)?;
        let mut ways = [start(&opened, population, READERS, 1)?, start(&opened, population, 1, READERS)?];
        let mut samples = [Vec::new(), Vec::new()];
        // The first isn't counted: pages of a shared file are mapped again when they are first written to, by raising a frequency.
        for repetition in 0..=run.repetitions() {
            for (way, samples) in ways.iter_mut().zip(&mut samples) {
                let lap = way.lap(Touch::Page, duration)?;
                if repetition > 0 {
                    samples.push(lap.per_second() / 1e6);
                }
            }
        }
        ways.into_iter().try_for_each(Readers::end)?;
        let [processes, threads] = samples;
        let row = Row::new("processes", size_name(value_bytes), "M/s")
            .series(PROCESSES, &processes)
            .series(THREADS, &threads)
            .ratio(PROCESSES, THREADS, Ask::at_least(0.9).aim(1.0));
        run.push(row);
    }
    Ok(())
}

fn start(opened: &Opened, population: Population, processes: usize, threads: usize) -> Result<Readers> {
    Readers::start(&Task {
        store: EYEWALL.name.to_owned(),
        directory: opened.path().to_owned(),
        cap_bytes: population.cap_bytes(),
        objects: population.objects,
        value_bytes: population.value_bytes,
        processes: processes as u64,
        process: 0,
        threads,
        keys: KEYS_TOTAL,
        seed: SEED,
    })
}
