//! `bench-engine`: the engine's benchmark against what people use today.
//!
//! The workloads, the recorder and the cheap peers are in `eyewall-bench`, the others in this crate's library.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use eyewall_bench::child::{self, Task};
use eyewall_bench::error::{Error, Result};
use eyewall_bench::run::{Run, Settings};
use eyewall_bench::store::{BARE_COPY, EYEWALL, FILES};
use eyewall_bench::work::{
    crashed, files, fill, get, open, overflow, overhead, paging, processes, purge, put, replay, stream, sweep, tagged,
    verify,
};
use eyewall_bench_compare::{ALL, FOYER, LMDB, LMDB_TO_READ, LMDB_WRITE_MAP, MOKA, QUICK_CACHE};

/// Measures the engine; the record goes to `--out`.
#[derive(Debug, Parser)]
#[command(name = "bench-engine", version)]
struct Arguments {
    /// What to measure
    #[arg(value_enum, default_value_t = Part::All)]
    part: Part,
    #[command(flatten)]
    settings: Settings,
    #[command(flatten)]
    with: replay::With,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Everything below
    All,
    /// Gets that hit, against caches in one process and LMDB
    Get,
    /// Gets against one file for each entry
    Files,
    /// Gets by processes instead of threads
    Processes,
    /// Puts into a full store
    Put,
    /// The eviction sweep
    Sweep,
    /// Many times the cap, written
    Overflow,
    /// Hit ratios of real traces
    Replay,
    /// Opening a large volume
    Open,
    /// Bytes beyond key and value
    Overhead,
    /// One cold key asked for by 64 processes
    Fill,
    /// Purging a million entries while others read
    Purge,
    /// Gets of entries with tags, judged
    Tagged,
    /// Large values written piece by piece
    Stream,
    /// Opening a large volume after power loss
    Crashed,
    /// Checking a full volume
    Verify,
    /// Caches larger than memory
    Paging,
    /// The same at a range of sizes, for the sizing guide; not among all
    Sizes,
}

/// What this program is started with by itself.
#[derive(Debug, Parser)]
struct ChildArguments {
    #[command(subcommand)]
    task: Task,
}

fn main() -> ExitCode {
    if std::env::args_os().nth(1).is_some_and(|word| word == "child") {
        return child::run(&ChildArguments::parse_from(std::env::args_os().skip(1)).task, &ALL);
    }
    match measure() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("bench-engine: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn measure() -> Result<()> {
    let Arguments { part, settings, with } = Arguments::parse();
    if with.name().is_some() && part != Part::Replay {
        return Err(Error::Invalid("--with says what goes with the entries of `replay`: name that part".to_owned()));
    }
    let mut run = Run::start(settings)?;
    let all = Part::value_variants().iter().copied().filter(|part| !matches!(part, Part::All | Part::Sizes));
    let parts = if part == Part::All { all.collect() } else { vec![part] };
    let mut failed = None;
    for part in parts {
        // What the others have found is recorded all the same.
        if let Err(failure) = measure_part(&mut run, part, &with) {
            run.note(format!("{} is missing: {failure}", name_of(part)));
            failed = Some(failure);
        }
    }
    let name: Vec<String> = [name_of(part)].into_iter().chain(with.name()).collect();
    run.finish((part != Part::All).then_some(name.join("-").as_str()))?;
    failed.map_or(Ok(()), Err)
}

fn name_of(part: Part) -> String {
    part.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

fn measure_part(run: &mut Run, part: Part, with: &replay::With) -> Result<()> {
    match part {
        Part::All => Ok(()),
        Part::Get => get::run(run, &[EYEWALL, QUICK_CACHE, MOKA, FOYER, LMDB_TO_READ]),
        Part::Files => files::run(run),
        Part::Processes => processes::run(run),
        Part::Put => put::run(run, &[EYEWALL, FILES, LMDB, LMDB_WRITE_MAP, BARE_COPY]),
        Part::Sweep => sweep::run(run),
        Part::Overflow => overflow::run(run),
        Part::Replay => replay::run(run, with),
        Part::Open => open::run(run),
        Part::Overhead => overhead::run(run),
        Part::Fill => fill::run(run),
        Part::Purge => purge::run(run),
        Part::Tagged => tagged::run(run),
        Part::Stream => stream::run(run),
        Part::Crashed => crashed::run(run),
        Part::Verify => verify::run(run),
        Part::Paging => paging::run(run),
        Part::Sizes => paging::run_sizes(run),
    }
}
