//! Opening a large volume after the machine lost power: from storage, and not left in order.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use clap::Args;
use eyewall::Options;
use rustix::fs::Advice;

use super::open::{FREE_BYTES_MIN, VALUE_BYTES, create, write_until_killed};
use crate::child::{Worker, say};
use crate::clock::now_ns;
use crate::error::{Error, Result};
use crate::memory;
use crate::random;
use crate::record::{Ask, Row};
use crate::run::Run;
use crate::scratch::Storage;
use crate::store::Volume;

/// Where the superblock keeps the boot in which the volume was attached last, and whether it was left in order.
const BOOT_AT: u64 = 208;
const CLEAN_AT: u64 = 192;

/// What a process is to do.
#[derive(Debug, Clone, Args)]
pub struct Task {
    /// The volume
    volume: PathBuf,
    /// Index of an object that was put long before
    object: u64,
}

/// Opens the volume in a new process each time.
pub fn run(run: &mut Run) -> Result<()> {
    if run.lacks_space(Storage::Disk, FREE_BYTES_MIN, "crashed")? {
        return Ok(());
    }
    let directory = run.scratch(Storage::Disk)?;
    let volume = directory.path().join(Volume::FILE);
    let objects = create(run, directory.path())?;
    let mut next = objects;
    let mut samples = Vec::new();
    for repetition in 0..run.repetitions() as u64 {
        next = write_until_killed(&volume, next)?;
        lose_power(&volume)?;
        samples.push(open(&volume, objects / 2 + repetition)?);
    }
    record(run, objects, &samples);
    Ok(())
}

/// What a reboot would make of the file: the boot is another, nothing was left in order, nothing is in memory.
fn lose_power(volume: &Path) -> Result<()> {
    let lose = || -> std::io::Result<()> {
        let file = OpenOptions::new().read(true).write(true).open(volume)?;
        let mut boot = [0];
        file.read_exact_at(&mut boot, BOOT_AT)?;
        file.write_all_at(&[boot[0] ^ 1], BOOT_AT)?;
        file.write_all_at(&0_u64.to_le_bytes(), CLEAN_AT)?;
        file.sync_all()?;
        forget(&file)
    };
    lose().map_err(Error::path("simulate power loss for", volume))
}

/// Drops the file's pages from memory.
fn forget(file: &File) -> std::io::Result<()> {
    Ok(rustix::fs::fadvise(file, 0, None, Advice::DontNeed)?)
}

/// What one process found.
struct Sample {
    open_ns: u64,
    get_ns: u64,
    hit: bool,
    put_ns: u64,
    entries: u64,
    read_bytes: u64,
}

fn open(volume: &Path, object: u64) -> Result<Sample> {
    let mut worker = Worker::start(&["crashed".to_owned(), volume.display().to_string(), object.to_string()])?;
    let [open_ns, get_ns, hit, put_ns, entries, read_bytes] = worker.numbers()?;
    worker.end()?;
    Ok(Sample { open_ns, get_ns, hit: hit == 1, put_ns, entries, read_bytes })
}

fn record(run: &mut Run, objects: u64, samples: &[Sample]) {
    let name = format!("10 GB, {}, power lost, nothing in memory", run.storage_name(Storage::Disk));
    let row = |case: &str, unit, figure: fn(&Sample) -> f64| {
        let figures: Vec<f64> = samples.iter().map(figure).collect();
        Row::new("crashed", format!("{name}: {case}"), unit).series(Volume::NAME, &figures)
    };
    let opened = row("open", "ms", |sample| sample.open_ns as f64 / 1e6);
    run.push(opened.value(Volume::NAME, Ask::at_most(3_000.0).aim(10.0)));
    run.push(row("read from storage by the open", "MB", |sample| sample.read_bytes as f64 / f64::from(1 << 20)));
    run.push(row("the first get", "ms", |sample| sample.get_ns as f64 / 1e6));
    run.push(row("the first put", "ms", |sample| sample.put_ns as f64 / 1e6));
    let found = row("entries there after it", "k", |sample| sample.entries as f64 / 1e3);
    run.push(found.series("put before the first loss", &[objects as f64 / 1e3]));
    let missed = samples.iter().filter(|sample| !sample.hit).count();
    if missed > 0 {
        run.note(format!("crashed: {missed} of {} first gets missed: the entry was not kept", samples.len()));
    }
}

impl Task {
    /// A process: opens, gets and puts once, and says how long each took.
    pub fn run(&self) -> Result<()> {
        let key = random::key(self.object);
        let value = random::filler(8, VALUE_BYTES);
        let options = Options::new().create(false);
        let read_before = memory::read_from_storage();
        let begin_ns = now_ns();
        let cache = options.open(&self.volume)?;
        let opened_ns = now_ns();
        let read_bytes = memory::read_from_storage().zip(read_before).map_or(0, |(now, before)| now - before);
        let get_ns = now_ns();
        let hit = cache.get(key)?.is_some();
        let got_ns = now_ns();
        cache.put("the first after the loss", &value)?;
        let put_ns = now_ns() - got_ns;
        let entries = cache.stats()?.entries;
        let (open_ns, get_ns) = (opened_ns - begin_ns, got_ns - get_ns);
        say(&format!("{open_ns} {get_ns} {} {put_ns} {entries} {read_bytes}", u64::from(hit)))
    }
}
