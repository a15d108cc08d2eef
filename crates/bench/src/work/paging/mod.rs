//! Caches that are larger than the memory there is: a realistic mix, by processes in control groups of little memory.

mod group;
mod mix;
mod process;

pub use process::Task;

use std::path::PathBuf;

use clap::ValueEnum as _;
use tempfile::TempDir;

use self::group::Group;
use self::process::Kind;
use super::MIB;
use crate::child::Worker;
use crate::error::Result;
use crate::machine;
use crate::record::{Ask, Row};
use crate::run::{Run, Storage};

/// Memory of each group.
const LIMIT_BYTES: u64 = 256 * MIB as u64;

/// Memory of a tier, in percent of the group's.
const TIER_PERCENT: u64 = 40;

/// Objects of 10 KB, on average, for each MiB of the limit: four times the limit in all.
const OBJECTS_A_MIB: u64 = 400;

const THREADS: u64 = 8;

/// A store with a cap, in percent of the memory.
struct Case {
    name: &'static str,
    kind: Kind,
    cap_percent: u64,
}

const LARGE: &str = "eyewall, cap 2 x memory";
const TIERED: &str = "eyewall, cap 2 x, tier 0.4 x";
const RIGHT: &str = "eyewall, cap 0.75 x";
const LARGE_FILES: &str = "file-per-entry, cap 2 x";
const RIGHT_FILES: &str = "file-per-entry, cap 0.75 x";

const CASES: [Case; 5] = [
    Case { name: LARGE, kind: Kind::Eyewall, cap_percent: 200 },
    Case { name: TIERED, kind: Kind::Tiered, cap_percent: 200 },
    Case { name: RIGHT, kind: Kind::Eyewall, cap_percent: 75 },
    Case { name: LARGE_FILES, kind: Kind::Files, cap_percent: 200 },
    Case { name: RIGHT_FILES, kind: Kind::Files, cap_percent: 75 },
];

/// Starts a process for each case, which fills its store; when all have, each does its laps in turn.
pub fn run(run: &mut Run) -> Result<()> {
    let limit_bytes = run.pick(LIMIT_BYTES, LIMIT_BYTES / 4);
    // Each cap, the files' excess, and what is being written.
    if run.lacks_space(Storage::Disk, 14 * limit_bytes, "paging")? {
        return Ok(());
    }
    let mut started = Vec::new();
    for (number, case) in CASES.iter().enumerate() {
        let group = match Group::create(&number.to_string(), limit_bytes) {
            Ok(group) => group,
            Err(reason) => {
                run.note(format!("paging skipped: {reason}"));
                return Ok(());
            }
        };
        let mut process = Started::new(run, case, group, limit_bytes)?;
        process.worker.line()?;
        started.push(process);
    }
    let mut laps = CASES.iter().map(|_| Vec::new()).collect::<Vec<_>>();
    for repetition in 0..=run.repetitions() {
        for (started, laps) in started.iter_mut().zip(&mut laps) {
            run.settle(Storage::Disk)?;
            started.worker.go()?;
            let lap = Lap::of(started.worker.numbers()?);
            if repetition > 0 {
                laps.push(lap);
            }
        }
    }
    record(run, limit_bytes, &laps);
    if let Some(kib) = machine::read_ahead_kib(run.directory(Storage::Disk)) {
        run.note(format!(
            "paging: the kernel reads {kib} KiB ahead from this disk, for maps that ask for nothing else, too."
        ));
    }
    Ok(())
}

/// A process at work. Its parts go in this order: the process before its group.
struct Started {
    worker: Worker,
    _group: Group,
    _directory: Option<TempDir>,
}

impl Started {
    fn new(run: &Run, case: &Case, group: Group, limit_bytes: u64) -> Result<Self> {
        let (path, directory): (PathBuf, _) = match case.kind {
            Kind::Files => (run.scratch_until_end(Storage::Disk)?, None),
            Kind::Eyewall | Kind::Tiered => {
                let directory = run.scratch(Storage::Disk)?;
                (directory.path().to_owned(), Some(directory))
            }
        };
        let kind = case.kind.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned());
        let arguments = [
            "paging".to_owned(),
            group.path().display().to_string(),
            path.display().to_string(),
            kind,
            (limit_bytes * case.cap_percent / 100).to_string(),
            (limit_bytes * TIER_PERCENT / 100).to_string(),
            (limit_bytes / MIB as u64 * OBJECTS_A_MIB).to_string(),
            THREADS.to_string(),
            run.pick("12000", "1500").to_owned(),
            run.pick("1500", "150").to_owned(),
        ];
        Ok(Self { worker: Worker::start(&arguments)?, _group: group, _directory: directory })
    }
}

/// What a process said of a lap.
struct Lap {
    kilo_per_second: f64,
    hit_percent: f64,
    hit_p99_us: f64,
    read_mb: f64,
}

impl Lap {
    fn of([operations, took_ns, gets, hits, p99_ns, read_bytes]: [u64; 6]) -> Self {
        let seconds = took_ns.max(1) as f64 / 1e9;
        Self {
            kilo_per_second: operations as f64 / seconds / 1e3,
            hit_percent: 100.0 * hits as f64 / gets.max(1) as f64,
            hit_p99_us: p99_ns as f64 / 1e3,
            read_mb: read_bytes as f64 / MIB as f64 / seconds,
        }
    }
}

fn record(run: &mut Run, limit_bytes: u64, laps: &[Vec<Lap>]) {
    let name = format!("{} MB of memory, {}", limit_bytes / MIB as u64, run.storage_name(Storage::Disk));
    let row = |case: &str, unit, figure: fn(&Lap) -> f64| {
        let row = Row::new("paging", format!("{name}: {case}"), unit);
        CASES
            .iter()
            .zip(laps)
            .fold(row, |row, (case, laps)| row.series(case.name, &laps.iter().map(figure).collect::<Vec<_>>()))
    };
    let throughput = row("operations", "k/s", |lap| lap.kilo_per_second);
    let throughput = throughput
        .ratio(RIGHT, LARGE, Ask::at_most(1.5).aim(1.1))
        .ratio(RIGHT, TIERED, Ask::at_most(1.25).aim(1.1))
        .ratio(LARGE, LARGE_FILES, Ask::at_least(2.0))
        .ratio(RIGHT, RIGHT_FILES, Ask::NOTHING);
    run.push(throughput);
    run.push(row("gets that hit", "%", |lap| lap.hit_percent));
    run.push(row("p99 of a get that hit", "us", |lap| lap.hit_p99_us));
    run.push(row("read from storage", "MB/s", |lap| lap.read_mb));
}
