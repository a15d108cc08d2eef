//! The same gets by 8 processes and by 8 threads of one.

use super::{KEYS_TOTAL, KIB, Opened, SET_BYTES, population, size_name};
use crate::child::Worker;
use crate::clock::Lap;
use crate::error::{Error, Result};
use crate::load::Population;
use crate::record::{Ask, Row};
use crate::run::{Run, SEED};
use crate::scratch::Storage;
use crate::store::{EYEWALL, Volume};

/// Bytes of each value.
const VALUE_BYTES: [usize; 2] = [100, 10 * KIB];

/// Threads of one process, or processes of one thread.
const READERS: usize = 8;

const PROCESSES: &str = "eyewall, 8 processes";
const THREADS: &str = "eyewall, 8 threads";

/// Both ways run in children, so that they differ in nothing else.
pub fn run(run: &mut Run) -> Result<()> {
    for value_bytes in VALUE_BYTES {
        let population = population(value_bytes, run.pick(SET_BYTES, SET_BYTES / 4));
        let opened = Opened::filled(run, &EYEWALL, Storage::Disk, population.cap_bytes(), population)?;
        let mut processes = Vec::new();
        let mut threads = Vec::new();
        for _ in 0..run.repetitions() {
            processes.push(measure(run, &opened, population, READERS, 1)?.per_second() / 1e6);
            threads.push(measure(run, &opened, population, 1, READERS)?.per_second() / 1e6);
        }
        let row = Row::new("processes", size_name(value_bytes), "M/s")
            .series(PROCESSES, &processes)
            .series(THREADS, &threads)
            .ratio(PROCESSES, THREADS, Ask::at_least(0.9).aim(1.0));
        run.push(row);
    }
    Ok(())
}

fn measure(run: &Run, opened: &Opened, population: Population, processes: usize, threads: usize) -> Result<Lap> {
    let volume = opened.path().join(Volume::FILE);
    let mut workers = Vec::new();
    for process in 0..processes as u64 {
        let arguments = [
            "gets".to_owned(),
            volume.display().to_string(),
            population.objects.to_string(),
            population.value_bytes.to_string(),
            threads.to_string(),
            (KEYS_TOTAL / processes).to_string(),
            (SEED + process).to_string(),
            run.pick("400", "60").to_owned(),
        ];
        workers.push(Worker::start(&arguments)?);
    }
    for worker in &mut workers {
        worker.line()?;
    }
    for worker in &mut workers {
        worker.go()?;
    }
    let mut whole: Option<Lap> = None;
    for worker in &mut workers {
        let lap = worker.lap()?;
        whole = Some(whole.map_or(lap, |whole| whole.join(lap)));
    }
    whole.ok_or_else(|| Error::Invalid("no process".to_owned()))
}
