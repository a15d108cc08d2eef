//! Checking a full volume that lies in memory: bytes a second, beside a plain read of the same bytes.

use std::fs;
use std::hint::black_box;

use eyewall::Check;

use super::{KIB, MIB};
use crate::clock::now_ns;
use crate::contender::Contender as _;
use crate::error::{Error, Result};
use crate::load::Population;
use crate::record::{Ask, Row};
use crate::run::Run;
use crate::scratch::Storage;
use crate::store::{Place, Volume};
use crate::touch;

const VALUE_BYTES: usize = 4 * KIB;

const DEEP: &str = "verify, every entry read";
const WALK: &str = "verify, logs and index alone";
const READ: &str = "plain read of the file's bytes, in memory";

/// Fills a volume twice over and checks it.
pub fn run(run: &mut Run) -> Result<()> {
    let cap_bytes = run.pick(1_024, 128) * MIB as u64;
    // Beside the volume a copy of its bytes, in the same memory.
    if run.lacks_space(Storage::Shm, 3 * cap_bytes, "verify")? {
        return Ok(());
    }
    let directory = run.scratch(Storage::Shm)?;
    let store = Volume::create(&Place::new(directory.path(), cap_bytes, VALUE_BYTES))?;
    store.fill(Population { objects: 2 * cap_bytes / VALUE_BYTES as u64, value_bytes: VALUE_BYTES })?;
    store.cache().populate()?;
    let path = directory.path().join(Volume::FILE);
    let bytes = fs::read(&path).map_err(Error::path("read", &path))?;
    let live_bytes = store.cache().stats()?.live_bytes;
    let mut deep = Vec::new();
    let mut walks = Vec::new();
    let mut reads = Vec::new();
    for _ in 0..run.repetitions() {
        deep.push(gigabytes_a_second(live_bytes, || check(&store, true))?);
        walks.push(gigabytes_a_second(live_bytes, || check(&store, false))?);
        reads.push(gigabytes_a_second(bytes.len() as u64, || {
            black_box(touch::every(&bytes));
            Ok(())
        })?);
    }
    let name = format!("{} MB full of 4 KB, {}", cap_bytes / MIB as u64, run.storage_name(Storage::Shm));
    let row = Row::new("verify", name, "GB/s")
        .series(DEEP, &deep)
        .series(WALK, &walks)
        .series(READ, &reads)
        .value(DEEP, Ask::at_least(1.0))
        .ratio(DEEP, READ, Ask::NOTHING.aim(1.0));
    run.push(row);
    Ok(())
}

/// Checks; `deep`: holds every entry against its checksum.
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

/// Billions of bytes in a second of `work`.
fn gigabytes_a_second(bytes: u64, work: impl FnOnce() -> Result<()>) -> Result<f64> {
    let begin_ns = now_ns();
    work()?;
    Ok(bytes as f64 / (now_ns() - begin_ns).max(1) as f64)
}
