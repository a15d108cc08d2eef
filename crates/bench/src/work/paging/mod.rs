//! Caches that are larger than the memory there is: a realistic mix, by processes in control groups of little memory.

mod group;
mod process;

pub use process::Task;

use std::path::{Path, PathBuf};

use clap::ValueEnum as _;
use tempfile::TempDir;

pub(crate) use self::group::Group;
pub(crate) use self::process::Kind;
use super::MIB;
use crate::child::Worker;
use crate::error::Result;
use crate::machine;
use crate::record::{Ask, Row};
use crate::run::Run;
use crate::scratch::Storage;

/// Memory of each group.
const LIMIT_BYTES: u64 = 256 * MIB as u64;

/// Memory of a tier, in percent of the group's.
const TIER_PERCENT: u64 = 40;

/// Objects of 10 KB, on average, for each MiB of the limit: four times the limit in all.
const OBJECTS_A_MIB: u64 = 400;

const THREADS: u64 = 8;

/// A store with a cap, in percent of the memory.
struct Case {
    name: String,
    kind: Kind,
    cap_percent: u64,
}

impl Case {
    fn new(kind: Kind, cap_percent: u64) -> Self {
        Self { name: format!("{}, cap {} x", kind.name(), cap_percent as f64 / 100.0), kind, cap_percent }
    }
}

/// A cap that fits, and one that doesn't.
const RIGHT_PERCENT: u64 = 75;
const LARGE_PERCENT: u64 = 200;

/// Caps of the sizing guide.
const SIZES_PERCENT: [u64; 6] = [50, 75, 100, 150, 200, 300];

/// A cap that fits memory, and one of twice the memory.
pub fn run(run: &mut Run) -> Result<()> {
    let large = [Kind::Eyewall, Kind::Tiered, Kind::Files].map(|kind| Case::new(kind, LARGE_PERCENT));
    let right = [Kind::Eyewall, Kind::Files].map(|kind| Case::new(kind, RIGHT_PERCENT));
    let cases: Vec<Case> = large.into_iter().chain(right).collect();
    measure(run, "paging", &cases, |throughput| {
        let [eyewall, tiered, files, right, right_files] = [0, 1, 2, 3, 4].map(|case| cases[case].name.as_str());
        throughput
            .ratio(right, eyewall, Ask::at_most(1.5).aim(1.1))
            .ratio(right, tiered, Ask::at_most(1.25).aim(1.1))
            .ratio(eyewall, files, Ask::at_least(2.0))
            .ratio(right, right_files, Ask::NOTHING)
    })
}

/// From half the memory to three times as much.
pub fn run_sizes(run: &mut Run) -> Result<()> {
    let kinds = [Kind::Eyewall, Kind::Tiered, Kind::Files];
    let cases: Vec<Case> =
        SIZES_PERCENT.iter().flat_map(|percent| kinds.map(|kind| Case::new(kind, *percent))).collect();
    measure(run, "sizes", &cases, |throughput| throughput)
}

/// Starts a process for each case, which fills its store; when all have, each does its laps in turn.
fn measure(run: &mut Run, part: &'static str, cases: &[Case], judge: impl FnOnce(Row) -> Row) -> Result<()> {
    let limit_bytes = run.pick(LIMIT_BYTES, LIMIT_BYTES / 4);
    let caps: u64 = cases.iter().map(|case| limit_bytes * case.cap_percent / 100).sum();
    // Files take more blocks than their cap says.
    if run.lacks_space(Storage::Disk, 2 * caps, part)? {
        return Ok(());
    }
    let mut started = Vec::new();
    for (number, case) in cases.iter().enumerate() {
        let group = match Group::create(&number.to_string(), limit_bytes) {
            Ok(group) => group,
            Err(reason) => {
                run.note(format!("{part} skipped: {reason}"));
                return Ok(());
            }
        };
        let mut process = Started::new(run, case, group, limit_bytes)?;
        process.worker.line()?;
        started.push(process);
    }
    let mut laps = cases.iter().map(|_| Vec::new()).collect::<Vec<_>>();
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
    record(run, part, limit_bytes, cases, &laps, judge);
    if let Some(kib) = machine::read_ahead_kib(run.directory(Storage::Disk)) {
        run.note(format!(
            "{part}: the kernel reads {kib} KiB ahead from this disk, for maps that ask for nothing else, too."
        ));
    }
    Ok(())
}

/// A process at work. Its parts go in this order: the process before its group.
struct Started {
    worker: Worker,
    _group: Group,
    _directory: Option<TempDir>,
    /// Of its tier: a process that is ended by the worker's drop leaves it there.
    _tier_directory: TempDir,
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
        let tier_directory = run.scratch(Storage::Shm)?;
        let plan = Plan {
            cap_bytes: limit_bytes * case.cap_percent / 100,
            tier_bytes: limit_bytes * TIER_PERCENT / 100,
            objects: limit_bytes / MIB as u64 * OBJECTS_A_MIB,
            threads: THREADS,
            fill_ms_max: run.pick(12_000, 1_500),
            duration_ms: run.pick(1_500, 150),
        };
        Ok(Self {
            worker: plan.start(case.kind, &group, &path, tier_directory.path())?,
            _group: group,
            _directory: directory,
            _tier_directory: tier_directory,
        })
    }
}

/// What a process is to do with its store.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) cap_bytes: u64,
    /// Memory of the tier, where the store has one.
    pub(crate) tier_bytes: u64,
    pub(crate) objects: u64,
    pub(crate) threads: u64,
    /// How long the store is filled, at most, and how long each lap takes.
    pub(crate) fill_ms_max: u64,
    pub(crate) duration_ms: u64,
}

impl Plan {
    /// Starts the process in its group. It says a line when its store is filled, and then the numbers of a lap whenever it is told.
    pub(crate) fn start(self, kind: Kind, group: &Group, directory: &Path, tier_directory: &Path) -> Result<Worker> {
        let kind = kind.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned());
        let Self { cap_bytes, tier_bytes, objects, threads, fill_ms_max, duration_ms } = self;
        let paths = [group.path(), directory, tier_directory].map(|path| path.display().to_string());
        let numbers =
            [cap_bytes, tier_bytes, objects, threads, fill_ms_max, duration_ms].map(|number| number.to_string());
        let arguments: Vec<String> =
            ["paging".to_owned()].into_iter().chain(paths).chain([kind]).chain(numbers).collect();
        Worker::start(&arguments)
    }
}

/// What a process said of a lap.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lap {
    pub(crate) kilo_per_second: f64,
    pub(crate) hit_percent: f64,
    pub(crate) hit_p99_us: f64,
    pub(crate) read_mb: f64,
}

impl Lap {
    pub(crate) fn of([operations, took_ns, gets, hits, p99_ns, read_bytes]: [u64; 6]) -> Self {
        let seconds = took_ns.max(1) as f64 / 1e9;
        Self {
            kilo_per_second: operations as f64 / seconds / 1e3,
            hit_percent: 100.0 * hits as f64 / gets.max(1) as f64,
            hit_p99_us: p99_ns as f64 / 1e3,
            read_mb: read_bytes as f64 / MIB as f64 / seconds,
        }
    }
}

fn record(
    run: &mut Run,
    part: &'static str,
    limit_bytes: u64,
    cases: &[Case],
    laps: &[Vec<Lap>],
    judge: impl FnOnce(Row) -> Row,
) {
    let name = format!("{} MB of memory, {}", limit_bytes / MIB as u64, run.storage_name(Storage::Disk));
    let row = |what: &str, unit, figure: fn(&Lap) -> f64| {
        let row = Row::new(part, format!("{name}: {what}"), unit);
        cases
            .iter()
            .zip(laps)
            .fold(row, |row, (case, laps)| row.series(&case.name, &laps.iter().map(figure).collect::<Vec<_>>()))
    };
    let throughput = judge(row("operations", "k/s", |lap| lap.kilo_per_second));
    run.push(throughput);
    run.push(row("gets that hit", "%", |lap| lap.hit_percent));
    run.push(row("p99 of a get that hit", "us", |lap| lap.hit_p99_us));
    run.push(row("read from storage", "MB/s", |lap| lap.read_mb));
}
