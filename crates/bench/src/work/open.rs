//! Opening a large volume: after a clean end, and after its writer was killed.

use std::path::Path;
use std::thread;
use std::time::Duration;

use super::KIB;
use crate::child::Worker;
use crate::contender::Contender as _;
use crate::error::{Error, Result};
use crate::load::Population;
use crate::record::{Ask, Row};
use crate::run::Run;
use crate::scratch::Storage;
use crate::store::{Place, Volume};

const GIB: u64 = 1 << 30;

const VOLUME_BYTES: u64 = 10 * GIB;

/// Free disk below which the volume is not created.
pub(super) const FREE_BYTES_MIN: u64 = 12 * GIB;

pub(super) const VALUE_BYTES: usize = 4 * KIB;

/// How long a writer writes before it is killed.
const WRITE_FOR: Duration = Duration::from_millis(300);

/// Opens the volume in a new process each time.
pub fn run(run: &mut Run) -> Result<()> {
    if run.lacks_space(Storage::Disk, FREE_BYTES_MIN, "open")? {
        return Ok(());
    }
    let directory = run.scratch(Storage::Disk)?;
    let volume = directory.path().join(Volume::FILE);
    let mut next = create(run, directory.path())?;
    let mut clean = Vec::new();
    let mut killed = Vec::new();
    for _ in 0..run.repetitions() {
        clean.push(open(&volume)?);
        next = write_until_killed(&volume, next)?;
        killed.push(open(&volume)?);
    }
    let name = run.storage_name(Storage::Disk).to_owned();
    for (case, samples) in [("after a clean end", clean), ("after kill -9 of a writer", killed)] {
        let row = Row::new("open", format!("10 GB, {name}, {case}"), "ms")
            .series(Volume::NAME, &samples)
            .value(Volume::NAME, Ask::at_most(50.0).aim(10.0));
        run.push(row);
    }
    Ok(())
}

/// Creates the volume and puts a part of what it holds; the index of the next object.
pub(super) fn create(run: &Run, directory: &Path) -> Result<u64> {
    let place = Place::new(directory, VOLUME_BYTES, VALUE_BYTES);
    let store = Volume::create(&place)?;
    let objects = run.pick(2 * GIB, GIB / 4) / VALUE_BYTES as u64;
    store.fill(Population { objects, value_bytes: VALUE_BYTES })?;
    Ok(objects)
}

/// Milliseconds of one open in a new process, which must find entries.
fn open(volume: &Path) -> Result<f64> {
    let mut worker = Worker::start(&["open".to_owned(), volume.display().to_string()])?;
    let [took_ns, entries] = worker.numbers()?;
    worker.end()?;
    if entries == 0 {
        return Err(Error::Invalid("the opened volume is empty".to_owned()));
    }
    Ok(took_ns as f64 / 1e6)
}

/// Lets a process put values and kills it; the index of the next object.
pub(super) fn write_until_killed(volume: &Path, first: u64) -> Result<u64> {
    let arguments = ["puts".to_owned(), volume.display().to_string(), VALUE_BYTES.to_string(), first.to_string()];
    let mut worker = Worker::start(&arguments)?;
    worker.line()?;
    thread::sleep(WRITE_FOR);
    let status = worker.kill()?;
    if status.code().is_some() {
        return Err(Error::Invalid(format!("the writer ended before it was killed: {status}")));
    }
    Ok(first + 10_000_000)
}
