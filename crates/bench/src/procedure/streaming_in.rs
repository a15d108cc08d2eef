//! Writes large values into the volume piece by piece, and compares that with one put of each: time, and memory beyond
//! the map.

use std::io::Write as _;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use eyewall::{Committed, Options, PutOptions};
use serde::Deserialize;

use super::Procedure;
use crate::child::{Worker, say};
use crate::clock::now_ns;
use crate::error::{Error, Result};
use crate::load;
use crate::memory::Resident;
use crate::random;
use crate::stores::Volume;
use crate::suite::cell::Cell;
use crate::suite::size::Bytes;

/// Room for an entry's header and key; they take less.
const ENTRY_HEAD_BYTES_MAX: u64 = 4096;

/// The entry size that the index is made for.
const ENTRY_SIZE_HINT: u32 = 4096;

/// `storage` makes cells. The ways (`way`) take turns, each in a new process.
pub(super) struct StreamingIn;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    cap: Bytes,
    value: Bytes,
    /// Bytes of each write.
    piece: Bytes,
    /// Values that a process stores.
    entries: u64,
    /// Values that the volume has to hold at once.
    held_min: u64,
}

/// How a value gets into the volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Way {
    /// `Cache::writer` with the length
    Known,
    /// `Cache::writer` without the length
    Unknown,
    /// `Cache::put`
    Put,
}

impl Way {
    /// The value of the parameter `way`.
    fn of(words: &str) -> Option<Self> {
        Some(match words {
            "put" => Self::Put,
            "streamed, length known" => Self::Known,
            "streamed, length unknown" => Self::Unknown,
            _ => return None,
        })
    }
}

impl Procedure for StreamingIn {
    fn within(&self) -> &'static [&'static str] {
        &["way"]
    }

    fn measure(&self, cell: &mut Cell<'_>) -> Result<()> {
        let settings: Settings = cell.settings()?;
        let storage = cell.storage()?;
        let directory = cell.scratch().make(storage)?;
        let path = directory.path().join(Volume::FILE);
        let entry_bytes_max = settings.value.0 + ENTRY_HEAD_BYTES_MAX;
        let options = Options::new().size(settings.cap.0).entry_size_hint(ENTRY_SIZE_HINT);
        // Keeps the volume open, so that no child is the last process to leave it.
        let volume = Volume::from(options.entry_bytes_max(entry_bytes_max).open(&path)?);
        for repetition in 1..=cell.repetitions() {
            for case in cell.cases(self.within()) {
                cell.breathe()?;
                cell.show(&format!("repetition {repetition}, {case}"));
                cell.scratch().settle(storage)?;
                let known = || Error::parameter("way", case.get("way"), "put, or streamed, length known or unknown");
                let task = Task {
                    volume: path.clone(),
                    way: Way::of(case.text("way")?).ok_or_else(known)?,
                    entries: settings.entries,
                    value_bytes: settings.value.0 as usize,
                    piece_bytes: settings.piece.0 as usize,
                };
                let [took_ns, grown_bytes] = task.in_a_process()?;
                let seconds = took_ns as f64 / 1e9 / settings.entries as f64;
                cell.sample(&case, Volume::NAME, "time", repetition, seconds)?;
                cell.sample(&case, Volume::NAME, "memory", repetition, grown_bytes as f64)?;
            }
        }
        let (held, held_min) = (volume.cache().stats()?.entries, settings.held_min);
        if held < held_min {
            return Err(Error::Invalid(format!("the volume holds {held} entries at once; {held_min} were meant")));
        }
        Ok(())
    }
}

/// The work of a process.
#[derive(Debug, Clone, Args)]
pub struct Task {
    /// The volume
    volume: PathBuf,
    /// How
    #[arg(value_enum)]
    way: Way,
    /// Number of entries
    entries: u64,
    /// Bytes of each entry
    value_bytes: usize,
    /// Bytes of each write
    piece_bytes: usize,
}

impl Task {
    /// Starts a process for this task, and waits for its end. Returns its time, and how far its memory grew.
    fn in_a_process(&self) -> Result<[u64; 2]> {
        let Self { volume, way, entries, value_bytes, piece_bytes } = self;
        let way = way.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned());
        let numbers = [*entries, *value_bytes as u64, *piece_bytes as u64].map(|number| number.to_string());
        let words: Vec<String> =
            ["stream".to_owned(), volume.display().to_string(), way].into_iter().chain(numbers).collect();
        let mut worker = Worker::start(&words)?;
        let numbers = worker.numbers()?;
        worker.end()?;
        Ok(numbers)
    }

    /// The process.
    pub fn run(&self) -> Result<()> {
        let store = Volume::open(&self.volume)?;
        let mut value = random::filler(7, self.value_bytes);
        // Work that each process and thread does only once is done first.
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
            return Err(Error::Invalid(format!("the last value, {:?}, is not there as it was stored", self.way)));
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
        for piece in value.chunks(self.piece_bytes) {
            writer.write_all(piece).map_err(Error::io("write a piece into the volume"))?;
        }
        match writer.commit()? {
            Committed::Stored(_) => Ok(()),
            Committed::Superseded => Err(Error::Invalid("somebody else stored what was being streamed".to_owned())),
        }
    }
}
