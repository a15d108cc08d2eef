//! Large values written piece by piece into the volume, against one put of each: time, and memory beyond the map.

use std::io::Write as _;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use eyewall::{Committed, Options, PutOptions};

use super::{KIB, MIB, size_name};
use crate::child::{Worker, say};
use crate::clock::now_ns;
use crate::error::{Error, Result};
use crate::load;
use crate::memory::Resident;
use crate::random;
use crate::record::{Ask, Row};
use crate::run::Run;
use crate::scratch::Storage;
use crate::store::Volume;

const VALUE_BYTES: usize = 10 * MIB;

/// Bytes of each write.
const PIECE_BYTES: usize = 64 * KIB;

/// Entries that the volume holds at once, at least.
const HELD_MIN: u64 = 8;

/// The main ring, nine tenths of it, takes eight entries and room for the next.
const CAP_BYTES: u64 = 112 * MIB as u64;

/// How a value gets into the volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Way {
    /// `Cache::writer` with the length
    Known,
    /// `Cache::writer` without
    Unknown,
    /// `Cache::put`
    Put,
}

impl Way {
    fn name(self) -> &'static str {
        match self {
            Self::Known => "streamed, length known",
            Self::Unknown => "streamed, length unknown",
            Self::Put => "put",
        }
    }

    fn word(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// What a process is to do.
#[derive(Debug, Clone, Args)]
pub struct Task {
    /// The volume
    volume: PathBuf,
    /// How
    #[arg(value_enum)]
    way: Way,
    /// How many entries
    entries: u64,
}

/// Measures the ways in turn, on both storages.
pub fn run(run: &mut Run) -> Result<()> {
    let entries: u64 = run.pick(100, 20);
    for storage in [Storage::Shm, Storage::Disk] {
        let directory = run.scratch(storage)?;
        let path = directory.path().join(Volume::FILE);
        let options = Options::new().size(CAP_BYTES).entry_size_hint(4096).entry_bytes_max(VALUE_BYTES as u64 + 4096);
        // Held open, so that no child is the last to leave.
        let volume = Volume::from(options.open(&path)?);
        let mut times = Way::value_variants().iter().map(|_| Vec::new()).collect::<Vec<_>>();
        let mut grown = times.clone();
        for _ in 0..run.repetitions() {
            for (number, way) in Way::value_variants().iter().enumerate() {
                run.settle(storage)?;
                let arguments = ["stream".to_owned(), path.display().to_string(), way.word(), entries.to_string()];
                let mut worker = Worker::start(&arguments)?;
                let [took_ns, grown_bytes] = worker.numbers()?;
                worker.end()?;
                times[number].push(took_ns as f64 / 1e6 / entries as f64);
                grown[number].push(grown_bytes as f64 / MIB as f64);
            }
        }
        let held = volume.cache().stats()?.entries;
        if held < HELD_MIN {
            return Err(Error::Invalid(format!("the volume holds {held} entries at once; {HELD_MIN} were meant")));
        }
        record(run, storage, &times, &grown);
    }
    Ok(())
}

fn record(run: &mut Run, storage: Storage, times: &[Vec<f64>], grown: &[Vec<f64>]) {
    let name = format!("{}, {}", size_name(VALUE_BYTES), run.storage_name(storage));
    let row = |case: &str, unit, figures: &[Vec<f64>]| {
        let row = Row::new("stream", format!("{name}: {case}"), unit);
        Way::value_variants().iter().zip(figures).fold(row, |row, (way, figures)| row.series(way.name(), figures))
    };
    let time = row("an entry", "ms", times)
        .ratio(Way::Known.name(), Way::Put.name(), Ask::at_most(1.1).aim(1.0))
        .ratio(Way::Unknown.name(), Way::Put.name(), Ask::NOTHING);
    run.push(time);
    run.push(row("memory that the process took beyond the map and the value to be stored, at most", "MB", grown));
}

impl Task {
    /// A process: stores the entries, and says how long it took and how far its memory grew.
    pub fn run(&self) -> Result<()> {
        let store = Volume::open(&self.volume)?;
        let mut value = random::filler(7, VALUE_BYTES);
        // Work that each process and thread does once is done before.
        self.store(&store, 0, &mut value)?;
        store.cache().populate()?;
        let before = Resident::from_now()?;
        let begin_ns = now_ns();
        for index in 1..=self.entries {
            self.store(&store, index, &mut value)?;
        }
        let took_ns = now_ns() - begin_ns;
        let grown_bytes = Resident::look()?.grown_since(before);
        let last = store.cache().get(random::key(self.entries))?;
        if last.is_none_or(|hit| *hit != *value) {
            return Err(Error::Invalid(format!("the last value, {}, is not there as it was stored", self.way.name())));
        }
        say(&format!("{took_ns} {grown_bytes}"))
    }

    fn store(&self, store: &Volume, index: u64, value: &mut [u8]) -> Result<()> {
        load::stamp(value, index);
        let key = random::key(index);
        let length = match self.way {
            Way::Put => {
                store.cache().put(key, value)?;
                return Ok(());
            }
            Way::Known => Some(value.len() as u64),
            Way::Unknown => None,
        };
        let mut writer = store.cache().writer(key, &PutOptions::new(), length)?;
        for piece in value.chunks(PIECE_BYTES) {
            writer.write_all(piece).map_err(Error::io("write a piece into the volume"))?;
        }
        match writer.commit()? {
            Committed::Stored(_) => Ok(()),
            Committed::Superseded => Err(Error::Invalid("somebody else stored what was being streamed".to_owned())),
        }
    }
}
