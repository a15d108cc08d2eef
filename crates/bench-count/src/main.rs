//! `bench-count`: counts the instructions of single operations by callgrind, and compares them with recorded counts.
//!
//! Times on a busy machine say little about a change, while instructions are the same in each run. Counts don't show waiting for
//! memory, locks or the system.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::{Parser, Subcommand, ValueEnum};
use eyewall::{Cache, Options, Purge, PutOptions};
use eyewall_bench_count::random::{self, key};

/// The permitted difference in percent: system libraries differ a little between machines.
const PERCENT_MAX: f64 = 4.0;

/// Operations of the short and the long run. The difference excludes everything that happens once.
const SHORT: u64 = 1_000;
const LONG: u64 = 5_000;

/// Entries of the volume.
const ENTRIES: u64 = 1_000;

/// Compares the instructions of operations with the recorded counts.
#[derive(Debug, Parser)]
#[command(name = "bench-count", version)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Count, and fail if a count has grown beyond the recorded one
    Check {
        /// The recorded counts
        file: PathBuf,
    },
    /// Count, and record the counts
    Update {
        /// The file to write
        file: PathBuf,
    },
    /// Run an operation, to be counted
    #[command(hide = true)]
    Do {
        /// The operation
        operation: Operation,
        /// The number of repetitions
        times: u64,
    },
}

/// The counted operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Operation {
    /// A get of 100 B that hits; its bytes are read in place.
    Get,
    /// A get of an entry with four tags, after purges of others.
    GetTagged,
    /// A get of 10 KB that hits, copied.
    GetCopied,
    /// A get that misses.
    Miss,
    /// A put of 100 B over an entry.
    Put,
    /// A put of 100 B under a new key, which evicts.
    PutNew,
}

/// The result of everything here.
type Result<T> = std::result::Result<T, Error>;

/// Why the instructions could not be counted.
#[derive(Debug, thiserror::Error)]
enum Error {
    /// A file or a program could not be used.
    #[error("{what}: {source}")]
    Io {
        /// The attempt.
        what: String,
        /// The system's answer.
        source: std::io::Error,
    },
    /// The engine refused.
    #[error("eyewall: {0}")]
    Engine(#[from] eyewall::Error),
    /// An argument or an output makes no sense.
    #[error("{0}")]
    Invalid(String),
}

impl Error {
    fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}

fn main() -> ExitCode {
    let done = match Arguments::parse().task {
        Task::Check { file } => check(&file),
        Task::Update { file } => update(&file),
        Task::Do { operation, times } => operation.repeat(times).map(|()| true),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(failure) => {
            eprintln!("bench-count: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// Instructions by the name of the operation.
type Counts = BTreeMap<String, f64>;

fn check(file: &Path) -> Result<bool> {
    if !has_valgrind() {
        println!("bench-count: skipped, valgrind is missing (make packages)");
        return Ok(true);
    }
    let text = fs::read_to_string(file).map_err(Error::io(format!("read {}", file.display())))?;
    let kept: Counts =
        serde_json::from_str(&text).map_err(|failure| Error::Invalid(format!("{}: {failure}", file.display())))?;
    let mut are_kept = true;
    for (name, now) in count_all()? {
        let Some(before) = kept.get(&name) else {
            return Err(Error::Invalid(format!("{} keeps no {name}: make instructions ARGS=update", file.display())));
        };
        let percent = 100.0 * (now / before - 1.0);
        let is_kept = percent.abs() <= PERCENT_MAX;
        are_kept &= is_kept;
        let word = if is_kept { "" } else { ": beyond what is kept" };
        println!("{name:<12} {now:9.1} instructions, {percent:+.1} % of {before:.1}{word}");
    }
    if !are_kept {
        println!(
            "bench-count: a count differs by over {PERCENT_MAX} %. Where that is meant, make instructions ARGS=update keeps it"
        );
    }
    Ok(are_kept)
}

fn update(file: &Path) -> Result<bool> {
    if !has_valgrind() {
        return Err(Error::Invalid("valgrind is missing (make packages)".to_owned()));
    }
    let text = serde_json::to_string_pretty(&count_all()?)
        .map_err(|failure| Error::Invalid(format!("the counts can't be written: {failure}")))?;
    fs::write(file, text + "\n").map_err(Error::io(format!("write {}", file.display())))?;
    Ok(true)
}

fn has_valgrind() -> bool {
    Command::new("valgrind").arg("--version").output().is_ok_and(|output| output.status.success())
}

fn count_all() -> Result<Counts> {
    let name =
        |operation: &Operation| operation.to_possible_value().map_or_else(String::new, |it| it.get_name().to_owned());
    let one = |operation: &Operation| {
        let name = name(operation);
        // Each volume hashes tags by a secret of its own, so that in some volumes a tag looks purged until its cells are read.
        let volumes = if *operation == Operation::GetTagged { 3 } else { 1 };
        let mut least = f64::INFINITY;
        for _ in 0..volumes {
            let instructions = instructions(&name, LONG)? as f64 - instructions(&name, SHORT)? as f64;
            least = least.min(instructions / (LONG - SHORT) as f64);
        }
        Ok((name, (least * 10.0).round() / 10.0))
    };
    Operation::value_variants().iter().map(one).collect()
}

/// The instructions of this program for an operation.
fn instructions(operation: &str, times: u64) -> Result<u64> {
    let program = std::env::current_exe().map_err(Error::io("find this program"))?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args(["do", operation, &times.to_string()])
        .output()
        .map_err(Error::io("start valgrind"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let mut collected =
        said.lines().filter_map(|line| line.split_once("Collected : ")).map(|(_, count)| count.trim().parse());
    match (output.status.success(), collected.next_back()) {
        (true, Some(Ok(count))) => Ok(count),
        _ => Err(Error::Invalid(format!("valgrind could not count {operation}:\n{said}"))),
    }
}

impl Operation {
    fn repeat(self, times: u64) -> Result<()> {
        let value_bytes = if self == Self::GetCopied { 10 * 1024 } else { 100 };
        let cache = filled(self, value_bytes)?;
        let mut value = random::filler(1, value_bytes);
        // Both runs make all keys, so these don't count.
        let keys: Vec<_> = (0..ENTRIES + times.max(LONG)).map(key).collect();
        let (old_keys, new_keys) = keys.split_at(ENTRIES as usize);
        let mut sum = 0_usize;
        for (number, (old, new)) in (0..times).zip(old_keys.iter().cycle().zip(new_keys)) {
            match self {
                Self::Get | Self::GetTagged => sum += cache.get(old)?.map_or(0, |hit| usize::from(hit[8])),
                Self::GetCopied => sum += cache.get(old)?.map_or(0, |hit| std::hint::black_box(hit.to_vec()).len()),
                Self::Miss => sum += usize::from(cache.get(new)?.is_some()),
                Self::Put => {
                    stamp(&mut value, number);
                    cache.put(old, &value)?;
                }
                Self::PutNew => {
                    stamp(&mut value, number);
                    cache.put(new, &value)?;
                }
            }
        }
        std::hint::black_box(sum);
        Ok(())
    }
}

/// Makes all values different.
fn stamp(value: &mut [u8], number: u64) {
    value[..8].copy_from_slice(&number.to_le_bytes());
}

fn filled(operation: Operation, value_bytes: usize) -> Result<Cache> {
    // Putting new keys evicts from the first one on.
    let size = if operation == Operation::PutNew { 512 << 10 } else { 32 << 20 };
    let cache = Options::new().size(size).entry_size_hint(value_bytes as u32 + 16).anonymous()?;
    let tags = ["all", "half", "site", "page"];
    let mut options = PutOptions::new();
    if operation == Operation::GetTagged {
        options = options.tags(&tags);
    }
    let entries = if operation == Operation::PutNew { 20 * ENTRIES } else { ENTRIES };
    let mut value = random::filler(1, value_bytes);
    for number in 0..entries {
        stamp(&mut value, number);
        cache.put_with(key(number), &value, &options)?;
    }
    if operation == Operation::GetTagged {
        // Purge after the puts: a later put need not be checked against the purge.
        for number in 0..64 {
            cache.purge_tag(&format!("gone {number}"), Purge::Hard)?;
        }
    }
    Ok(cache)
}
