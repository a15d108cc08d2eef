//! Opening a large volume in a new process: after a clean end, after its writer was killed, and after the machine lost power.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use clap::Args;
use eyewall::Options;
use rustix::fs::Advice;
use serde::Deserialize;

use super::Procedure;
use crate::child::{Worker, say};
use crate::clock::now_ns;
use crate::contender::Contender as _;
use crate::error::{Error, Result};
use crate::load::{self, Population};
use crate::memory;
use crate::random;
use crate::store::Place;
use crate::stores::Volume;
use crate::suite::cell::Cell;
use crate::suite::size::Bytes;

/// Offsets in the superblock: the boot of the last attachment, and the mark of a clean end.
const BOOT_AT: u64 = 208;
const CLEAN_AT: u64 = 192;

/// More objects than a writer can put before it is killed.
const OBJECTS_OF_A_WRITER: u64 = 10_000_000;

/// `after` makes cells, each with a volume of its own.
pub(super) struct Opening;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    volume: Bytes,
    value: Bytes,
    /// Bytes of the values that are put first.
    filled: Bytes,
    /// The time after which a writer is killed.
    writer_milliseconds: u64,
}

/// What happens before the volume is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum After {
    CleanEnd,
    Kill,
    PowerLoss,
}

impl Procedure for Opening {
    fn measure(&self, cell: &mut Cell<'_>) -> Result<()> {
        let settings: Settings = cell.settings()?;
        let case = cell.case().clone();
        let after = match case.text("after")? {
            "a clean end" => After::CleanEnd,
            "kill -9 of a writer" => After::Kill,
            "power loss" => After::PowerLoss,
            _ => {
                return Err(Error::parameter(
                    "after",
                    case.get("after"),
                    "a clean end, kill -9 of a writer, or power loss",
                ));
            }
        };
        let directory = cell.scratch().make(cell.storage()?)?;
        let volume = directory.path().join(Volume::FILE);
        let value_bytes = settings.value.0 as usize;
        cell.show(&format!("a volume is filled, {case}"));
        let objects = fill(directory.path(), &settings)?;
        let mut next = objects;
        let mut missed = 0;
        cell.show(&case.to_string());
        for repetition in 1..=cell.repetitions() {
            cell.breathe()?;
            if after != After::CleanEnd {
                let writer = Puts { volume: volume.clone(), value_bytes, first: next };
                writer.until_killed(Duration::from_millis(settings.writer_milliseconds))?;
                next += OBJECTS_OF_A_WRITER;
            }
            if after == After::PowerLoss {
                lose_power(&volume)?;
            }
            let object = objects / 2 + repetition as u64;
            let found = Open { volume: volume.clone(), value_bytes, object }.in_a_process()?;
            missed += u64::from(!found.is_hit);
            for (measure, value) in [
                ("open", found.open_ns as f64 / 1e9),
                ("first_get", found.get_ns as f64 / 1e9),
                ("first_put", found.put_ns as f64 / 1e9),
                ("read", found.read_bytes as f64),
                ("entries", found.entries as f64),
            ] {
                cell.sample(&case, Volume::NAME, measure, repetition, value)?;
            }
        }
        if missed > 0 {
            let all = cell.repetitions();
            cell.note(format!("{missed} of {all} first gets missed ({case}): the entry was not kept"));
        }
        Ok(())
    }
}

/// Creates the volume and fills a part of it. Returns the index of the next object.
fn fill(directory: &Path, settings: &Settings) -> Result<u64> {
    let value_bytes = settings.value.0 as usize;
    let store = Volume::create(&Place::new(directory, settings.volume.0, value_bytes))?;
    let objects = settings.filled.0 / settings.value.0;
    store.fill(Population { objects, value_bytes })?;
    Ok(objects)
}

/// Makes the file look as it would after a power loss: another boot, no clean end, no page in memory.
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

/// A process that puts values until it is killed.
#[derive(Debug, Clone, Args)]
pub struct Puts {
    /// The volume
    volume: PathBuf,
    /// Bytes of each value
    value_bytes: usize,
    /// Index of the first object
    first: u64,
}

impl Puts {
    /// Starts a process for this task, and kills it with SIGKILL after that time.
    fn until_killed(&self, time: Duration) -> Result<()> {
        let Self { volume, value_bytes, first } = self;
        let words = ["puts".to_owned(), volume.display().to_string(), value_bytes.to_string(), first.to_string()];
        let mut worker = Worker::start(&words)?;
        worker.line()?;
        thread::sleep(time);
        let status = worker.kill()?;
        if status.code().is_some() {
            return Err(Error::Invalid(format!("the writer ended before it was killed: {status}")));
        }
        Ok(())
    }

    /// The process.
    pub fn run(&self) -> Result<()> {
        let store = Volume::open(&self.volume)?;
        let mut value = random::filler(5, self.value_bytes);
        say("ready")?;
        for index in self.first.. {
            load::stamp(&mut value, index);
            store.cache().put(random::key(index), &value)?;
        }
        Ok(())
    }
}

/// A process that opens the volume, gets and puts once, and reports how long each took.
#[derive(Debug, Clone, Args)]
pub struct Open {
    /// The volume
    volume: PathBuf,
    /// Bytes of each value
    value_bytes: usize,
    /// Index of an object that was put long ago
    object: u64,
}

/// The results of one process.
struct Found {
    open_ns: u64,
    get_ns: u64,
    is_hit: bool,
    put_ns: u64,
    entries: u64,
    read_bytes: u64,
}

impl Open {
    /// Starts a process for this task, and waits for its end. The process must find entries.
    fn in_a_process(&self) -> Result<Found> {
        let Self { volume, value_bytes, object } = self;
        let words = ["open".to_owned(), volume.display().to_string(), value_bytes.to_string(), object.to_string()];
        let mut worker = Worker::start(&words)?;
        let [open_ns, get_ns, is_hit, put_ns, entries, read_bytes] = worker.numbers()?;
        worker.end()?;
        if entries == 0 {
            return Err(Error::Invalid("the opened volume is empty".to_owned()));
        }
        Ok(Found { open_ns, get_ns, is_hit: is_hit == 1, put_ns, entries, read_bytes })
    }

    /// The process.
    pub fn run(&self) -> Result<()> {
        let key = random::key(self.object);
        let value = random::filler(8, self.value_bytes);
        let options = Options::new().create(false);
        let read_before = memory::read_from_storage();
        let begin_ns = now_ns();
        let cache = options.open(&self.volume)?;
        let opened_ns = now_ns();
        let read_bytes = memory::read_from_storage().zip(read_before).map_or(0, |(now, before)| now - before);
        let entries = cache.stats()?.entries;
        let get_ns = now_ns();
        let is_hit = cache.get(key)?.is_some();
        let got_ns = now_ns();
        cache.put("the first after the opening", &value)?;
        let put_ns = now_ns() - got_ns;
        let (open_ns, get_ns) = (opened_ns - begin_ns, got_ns - get_ns);
        say(&format!("{open_ns} {get_ns} {} {put_ns} {entries} {read_bytes}", u64::from(is_hit)))
    }
}
