//! Writes a record during a run, and reads an existing one (bench/RECORD.md, format 1).
//!
//! The lines of a cell are appended when the whole cell was measured. So an interrupted or killed run resumes at the
//! cell that was under way. `record.json` is replaced as a whole.

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead as _, BufReader, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::definition::Scale;
use super::value::Case;
use crate::error::{Error, Result};
use crate::peer::Kind;

/// The version of the form.
pub const FORMAT: u32 = 1;

/// A line of samples.jsonl.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The workload.
    pub workload: String,
    /// The measure.
    pub measure: String,
    /// The case.
    pub case: Case,
    /// The store.
    pub store: String,
    /// Counted from 1.
    pub repetition: usize,
    /// The unit of the measure.
    pub unit: String,
    /// The figure.
    pub value: f64,
    /// The position on the measure's axis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<f64>,
}

/// A line of histograms.jsonl.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// The workload.
    pub workload: String,
    /// The measure.
    pub measure: String,
    /// The case.
    pub case: Case,
    /// The store.
    pub store: String,
    /// Counted from 1.
    pub repetition: usize,
    /// Always nanoseconds.
    pub unit: String,
    /// Inclusive upper bounds, each with a count.
    pub buckets: Vec<(u64, u64)>,
}

/// A store's program or library.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreFacts {
    /// What it is in a comparison.
    pub kind: Kind,
    /// The version in its own words.
    pub version: Option<String>,
    /// Why it was not available.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent: Option<String>,
}

/// The head of record.json.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Head {
    /// [`FORMAT`].
    pub format: u32,
    /// The directory's name.
    pub id: String,
    /// The title for people.
    pub title: String,
    /// The time of the run, in UTC.
    pub began: String,
    /// Whole or quick.
    pub kind: Scale,
    /// Whether the record is complete.
    pub complete: bool,
    /// The machine. Its module defines the form.
    pub machine: serde_json::Value,
    /// The commit of the sources.
    pub commit: Option<String>,
    /// `None`: each workload names its own.
    pub seed: Option<u64>,
    /// The stores by name.
    pub stores: BTreeMap<String, StoreFacts>,
    /// The definitions.
    pub workloads: serde_json::Value,
    /// Notes for readers.
    pub notes: Vec<String>,
}

impl Head {
    /// The names of its workloads.
    pub fn workload_names(&self) -> Vec<String> {
        let of = |workload: &serde_json::Value| workload["name"].as_str().map(ToOwned::to_owned);
        self.workloads.as_array().into_iter().flatten().filter_map(of).collect()
    }
}

/// A record during a run.
#[derive(Debug)]
pub struct Recorder {
    folder: PathBuf,
    samples: File,
    distributions: File,
    /// The series in the record: workload, measure, case and store.
    series: Vec<(String, String, Case, String)>,
    /// Workloads and measures that have distributions.
    distributed: HashSet<(String, String)>,
}

impl Recorder {
    /// Begins a record in a new directory.
    pub fn create(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder).map_err(Error::path("create", folder))?;
        if folder.join("record.json").exists() {
            let what = format!("{} is a record already; go on with it by --resume, or name another", folder.display());
            return Err(Error::Invalid(what));
        }
        Self::open(folder)
    }

    /// Resumes a record, and returns its head.
    pub fn resume(folder: &Path) -> Result<(Self, Head)> {
        let head = read_head(folder)?;
        if head.complete {
            return Err(Error::Invalid(format!("{} is complete: there is nothing to go on with", folder.display())));
        }
        for name in ["samples.jsonl", "histograms.jsonl"] {
            cut_torn_line(&folder.join(name))?;
        }
        let mut recorder = Self::open(folder)?;
        let (samples, distributions) = (folder.join("samples.jsonl"), folder.join("histograms.jsonl"));
        recorder.remember(&read_lines(&samples)?, &read_lines(&distributions)?);
        Ok((recorder, head))
    }

    fn open(folder: &Path) -> Result<Self> {
        let append = |name: &str| {
            let path = folder.join(name);
            OpenOptions::new().create(true).append(true).open(&path).map_err(Error::path("open", &path))
        };
        Ok(Self {
            folder: folder.to_owned(),
            samples: append("samples.jsonl")?,
            distributions: append("histograms.jsonl")?,
            series: Vec::new(),
            distributed: HashSet::new(),
        })
    }

    /// The record's directory.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Replaces the head, as a whole or not at all.
    pub fn write_head(&self, head: &Head) -> Result<()> {
        let text = serde_json::to_string_pretty(head)
            .map_err(|failure| Error::Invalid(format!("the record can't be written: {failure}")))?;
        let beside = self.folder.join(".record.json");
        let path = self.folder.join("record.json");
        fs::write(&beside, text + "\n").map_err(Error::path("write", &beside))?;
        fs::rename(&beside, &path).map_err(Error::path("replace", &path))
    }

    /// Appends the results of a cell.
    pub fn append(&mut self, samples: &[Sample], distributions: &[Distribution]) -> Result<()> {
        // Samples come last, since a cell counts as measured if it has samples.
        append_lines(&mut self.distributions, distributions)?;
        append_lines(&mut self.samples, samples)?;
        self.remember(samples, distributions);
        Ok(())
    }

    fn remember(&mut self, samples: &[Sample], distributions: &[Distribution]) {
        for Sample { workload, measure, case, store, .. } in samples {
            let series = (workload.clone(), measure.clone(), case.clone(), store.clone());
            // The repetitions of a series are mostly near each other.
            if !self.series.iter().rev().take(64).any(|known| *known == series) {
                self.series.push(series);
            }
        }
        self.distributed.extend(distributions.iter().map(|one| (one.workload.clone(), one.measure.clone())));
    }

    /// Whether the workload has samples in a case that contains `case`.
    pub fn has_any(&self, workload: &str, case: &Case) -> bool {
        self.series.iter().any(|(of, _, whole, _)| of == workload && case.is_part_of(whole))
    }

    /// Whether a workload has samples of a measure, or distributions.
    pub fn has_measure(&self, workload: &str, measure: &str) -> bool {
        self.series.iter().any(|(of, what, ..)| of == workload && what == measure)
            || self.distributed.contains(&(workload.to_owned(), measure.to_owned()))
    }

    /// Whether a store has samples of a measure in a case.
    pub fn has_series(&self, workload: &str, store: &str, measure: &str, case: &Case) -> bool {
        self.series
            .iter()
            .any(|(of, what, whole, name)| of == workload && what == measure && name == store && whole == case)
    }
}

fn append_lines<T: Serialize>(file: &mut File, lines: &[T]) -> Result<()> {
    let mut text = Vec::new();
    for line in lines {
        serde_json::to_writer(&mut text, line)
            .map_err(|failure| Error::Invalid(format!("a sample can't be written: {failure}")))?;
        text.push(b'\n');
    }
    file.write_all(&text).map_err(Error::io("write the record"))
}

/// Drops the bytes after the last whole line, which a run leaves if it is killed during a write.
fn cut_torn_line(path: &Path) -> Result<()> {
    let text = match fs::read(path) {
        Err(failure) if failure.kind() == ErrorKind::NotFound => return Ok(()),
        text => text.map_err(Error::path("read", path))?,
    };
    let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
    if whole < text.len() {
        let file = OpenOptions::new().write(true).open(path).map_err(Error::path("open", path))?;
        file.set_len(whole as u64).map_err(Error::path("shorten", path))?;
    }
    Ok(())
}

/// The head of the record in a directory.
pub fn read_head(folder: &Path) -> Result<Head> {
    let path = folder.join("record.json");
    let text = fs::read_to_string(&path).map_err(Error::path("read", &path))?;
    let head: Head =
        serde_json::from_str(&text).map_err(|failure| Error::Invalid(format!("{}: {failure}", path.display())))?;
    if head.format != FORMAT {
        let what = format!("{}: its format is {}, this reads format {FORMAT}", path.display(), head.format);
        return Err(Error::Invalid(what));
    }
    Ok(head)
}

/// The lines of a file of a record.
pub fn read_lines<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<Vec<T>> {
    let file = File::open(path).map_err(Error::path("read", path))?;
    let mut lines = Vec::new();
    for (number, line) in BufReader::new(file).lines().enumerate() {
        let line = line.map_err(Error::path("read", path))?;
        let parsed = serde_json::from_str(&line)
            .map_err(|failure| Error::Invalid(format!("{}:{}: {failure}", path.display(), number + 1)))?;
        lines.push(parsed);
    }
    Ok(lines)
}
