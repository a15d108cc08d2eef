//! Checking a full volume that lies in memory: bytes a second, beside a plain read of the same bytes.

use std::fs;
use std::hint::black_box;

use super::{KIB, MIB};
use crate::clock::now_ns;
use crate::contender::Contender as _;
use crate::error::{Error, Result};
use crate::load::Population;
use crate::record::{Ask, Row};
use crate::run::{Run, Storage};
use crate::store::{Place, Volume};
use crate::touch;

const VALUE_BYTES: usize = 4 * KIB;

const WALK: &str = "verify: logs and index";
const READ: &str = "plain read of the file's bytes, in memory";

/// Fills a volume twice over and checks it.
pub fn run(run: &mut Run) -> Result<()> {
    let cap_bytes = run.pick(1_024, 128) * MIB as u64;
    // Beside the volume a copy of its bytes, in the same memory.
    if run.lacks_space(Storage::Shm, 3 * cap_bytes, "verify")? {
        return Ok(());
    }
    let directory = run.scratch(Storage::Shm)?;
    let store = Volume::create(&Place { directory: directory.path(), cap_bytes, value_bytes: VALUE_BYTES })?;
    store.fill(Population { objects: 2 * cap_bytes / VALUE_BYTES as u64, value_bytes: VALUE_BYTES })?;
    store.cache().populate()?;
    let path = directory.path().join(Volume::FILE);
    let bytes = fs::read(&path).map_err(Error::path("read", &path))?;
    let live_bytes = store.cache().stats()?.live_bytes;
    let mut walks = Vec::new();
    let mut reads = Vec::new();
    for _ in 0..run.repetitions() {
        walks.push(gigabytes_a_second(live_bytes, || walk(&store))?);
        reads.push(gigabytes_a_second(bytes.len() as u64, || {
            black_box(touch::every(&bytes));
            Ok(())
        })?);
    }
    let name = format!("{} MB full of 4 KB, {}", cap_bytes / MIB as u64, run.storage_name(Storage::Shm));
    let row = Row::new("verify", name, "GB/s")
        .series(WALK, &walks)
        .series(READ, &reads)
        .value(WALK, Ask::at_least(1.0))
        .ratio(WALK, READ, Ask::NOTHING.aim(1.0));
    run.push(row);
    Ok(())
}

fn walk(store: &Volume) -> Result<()> {
    let report = store.cache().verify()?;
    match report.problems.first() {
        Some(problem) => Err(Error::Invalid(format!("a volume that was only filled is not sound: {problem}"))),
        None => Ok(()),
    }
}

/// Billions of bytes in a second of `work`.
fn gigabytes_a_second(bytes: u64, work: impl FnOnce() -> Result<()>) -> Result<f64> {
    let begin_ns = now_ns();
    work()?;
    Ok(bytes as f64 / (now_ns() - begin_ns).max(1) as f64)
}
