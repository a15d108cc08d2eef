//! `bench-engine`: what the engine promises and no other store can be asked for, part by part; and puts, by size.
//!
//! The parts are in `eyewall_bench::work`. The suite, `eyewall-bench`, measures all that can be compared.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use eyewall_bench::child::{self, Task};
use eyewall_bench::error::Result;
use eyewall_bench::run::{Run, Settings};
use eyewall_bench::store::{BARE_COPY, EYEWALL, FILES};
use eyewall_bench::work::{crashed, fill, open, overhead, processes, purge, put, stream, tagged, verify};
use eyewall_bench_compare::{ALL, LMDB, LMDB_WRITE_MAP};

/// Measures the engine; the record goes to `--out`.
#[derive(Debug, Parser)]
#[command(name = "bench-engine", version)]
struct Arguments {
    /// What to measure
    #[arg(value_enum, default_value_t = Part::All)]
    part: Part,
    #[command(flatten)]
    settings: Settings,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Everything below
    All,
    /// Gets by processes instead of threads
    Processes,
    /// Puts into a full store
    Put,
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
    let Arguments { part, settings } = Arguments::parse();
    let mut run = Run::start(settings)?;
    let all = Part::value_variants().iter().copied().filter(|part| *part != Part::All);
    let parts = if part == Part::All { all.collect() } else { vec![part] };
    let mut failed = None;
    for part in parts {
        // The results of the others are still recorded.
        if let Err(failure) = measure_part(&mut run, part) {
            run.note(format!("{} is missing: {failure}", name_of(part)));
            failed = Some(failure);
        }
    }
    let name = name_of(part);
    run.finish((part != Part::All).then_some(name.as_str()))?;
    failed.map_or(Ok(()), Err)
}

fn name_of(part: Part) -> String {
    part.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

fn measure_part(run: &mut Run, part: Part) -> Result<()> {
    match part {
        Part::All => Ok(()),
        Part::Processes => processes::run(run),
        Part::Put => put::run(run, &[EYEWALL, FILES, LMDB, LMDB_WRITE_MAP, BARE_COPY]),
        Part::Open => open::run(run),
        Part::Overhead => overhead::run(run),
        Part::Fill => fill::run(run),
        Part::Purge => purge::run(run),
        Part::Tagged => tagged::run(run),
        Part::Stream => stream::run(run),
        Part::Crashed => crashed::run(run),
        Part::Verify => verify::run(run),
    }
}
