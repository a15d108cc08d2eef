//! One run of the benchmark: its settings, its record, where it is written.

use std::fs;
use std::path::PathBuf;

use clap::Args;
use tempfile::TempDir;

use crate::error::{Error, Result};
use crate::machine::{self, Machine};
use crate::record::{RECORD_SCHEMA, Record, Row};
use crate::report;
use crate::scratch::{Scratch, Storage};

/// The seed of every workload.
pub const SEED: u64 = 20_261_121;

/// What every part of the benchmark can be told.
#[derive(Debug, Clone, Args)]
pub struct Settings {
    /// A smoke run of under two minutes; its figures are too short to be quoted
    #[arg(long)]
    pub quick: bool,
    /// Where the record is written
    #[arg(long, default_value = "bench/results")]
    pub out: PathBuf,
    /// A directory on the disk [default: beside this program]
    #[arg(long)]
    pub disk_dir: Option<PathBuf>,
    /// A directory in shared memory
    #[arg(long, default_value = "/dev/shm")]
    pub shm_dir: PathBuf,
}

/// A run in progress.
#[derive(Debug)]
pub struct Run {
    settings: Settings,
    scratch: Scratch,
    record: Record,
}

impl Run {
    /// Looks at the machine and starts an empty record.
    pub fn start(settings: Settings) -> Result<Self> {
        let scratch = Scratch::new(settings.disk_dir.clone(), settings.shm_dir.clone())?;
        let record = Record {
            schema: RECORD_SCHEMA,
            date: machine::today(),
            machine: Machine::look(scratch.directory(Storage::Disk), &settings.shm_dir)?,
            quick: settings.quick,
            repetitions: if settings.quick { 3 } else { 5 },
            seed: SEED,
            rows: Vec::new(),
            notes: Vec::new(),
        };
        let mut run = Self { settings, scratch, record };
        if !run.record.machine.optimised {
            run.note("This was not a release build: the figures mean nothing.");
        }
        if let Some(busy) = machine::busy() {
            run.note(busy);
        }
        Ok(run)
    }

    /// A smoke run.
    pub fn quick(&self) -> bool {
        self.settings.quick
    }

    /// `full`, or `quick` in a smoke run.
    pub fn pick<T>(&self, full: T, quick: T) -> T {
        if self.settings.quick { quick } else { full }
    }

    /// Repetitions behind each median.
    pub fn repetitions(&self) -> usize {
        self.record.repetitions
    }

    /// The file system's name behind a storage.
    pub fn storage_name(&self, storage: Storage) -> &str {
        match storage {
            Storage::Disk => &self.record.machine.disk_file_system,
            Storage::Shm => &self.record.machine.shm_file_system,
        }
    }

    /// A directory that is gone when it is dropped.
    pub fn scratch(&self, storage: Storage) -> Result<TempDir> {
        self.scratch.make(storage)
    }

    /// A directory that stays until the run ends ([`Scratch::make_until_end`]).
    pub fn scratch_until_end(&self, storage: Storage) -> Result<PathBuf> {
        self.scratch.make_until_end(storage)
    }

    /// Whether a storage has less than `bytes` free; what is skipped for it is noted.
    pub fn lacks_space(&mut self, storage: Storage, bytes: u64, what: &str) -> Result<bool> {
        let free = self.scratch.free_bytes(storage)?;
        if free < bytes {
            self.note(format!("{what} skipped: {} MiB are free, {} MiB are needed", free >> 20, bytes >> 20));
        }
        Ok(free < bytes)
    }

    /// Lets the disk write what is dirty ([`Scratch::settle`]).
    pub fn settle(&self, storage: Storage) -> Result<()> {
        self.scratch.settle(storage)
    }

    /// Records a row and shows it.
    pub fn push(&mut self, row: Row) {
        println!("{}", report::line(&row));
        self.record.rows.push(row);
    }

    /// Records something the reader should know and shows it.
    pub fn note(&mut self, text: impl Into<String>) {
        let text = text.into();
        println!("note: {text}");
        self.record.notes.push(text);
    }

    /// Writes `engine-<part>-<date>-<machine>.json` and `.md` and names them; the whole run has no `<part>`.
    pub fn finish(&self, part: Option<&str>) -> Result<()> {
        let out = &self.settings.out;
        fs::create_dir_all(out).map_err(Error::path("create", out))?;
        let mut name = "engine".to_owned();
        for word in [part, self.quick().then_some("quick")].into_iter().flatten() {
            name = format!("{name}-{word}");
        }
        let kind = self.record.machine.kind();
        let stem = out.join(format!("{name}-{}-{kind}", self.record.date));
        let json = serde_json::to_string_pretty(&self.record)
            .map_err(|failure| Error::Invalid(format!("the record can't be written: {failure}")))?;
        for (extension, text) in [("json", json), ("md", report::markdown(&self.record))] {
            let path = stem.with_added_extension(extension);
            fs::write(&path, text).map_err(Error::path("write", &path))?;
            println!("wrote {}", path.display());
        }
        let (met, judged) = report::tally(&self.record);
        println!("bars met: {met} of {judged}");
        Ok(())
    }
}
