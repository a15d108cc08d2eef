//! One cold key and 64 processes that ask for it at once: one makes the value, the others wait for it.

use std::convert::Infallible;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use clap::Args;
use eyewall::{Fill, FillOptions};

use super::KIB;
use crate::barrier::Barrier;
use crate::child::{Worker, say};
use crate::clock::now_ns;
use crate::error::{Error, Result};
use crate::load;
use crate::random;
use crate::record::{Ask, Row};
use crate::run::Run;
use crate::scratch::Storage;
use crate::store::{Place, Volume};

const PROCESSES: u64 = 64;

/// How long it takes to make a value: slept, as one waits for an origin.
const FILL: Duration = Duration::from_millis(100);

/// A process that waits for longer gives up, and the run with it.
const DEADLINE: Duration = Duration::from_secs(10);

const VALUE_BYTES: usize = 10 * KIB;

const SLEEP: &str = "each sleeps 100 ms";

/// What a process is to do.
#[derive(Debug, Clone, Args)]
pub struct Task {
    /// The volume
    volume: PathBuf,
    /// What the processes begin together by
    barrier: PathBuf,
    /// How many keys, one after the other
    keys: u64,
}

/// Starts the processes and lets them ask for one key after the other.
pub fn run(run: &mut Run) -> Result<()> {
    let keys = run.pick(20, 5);
    let directory = run.scratch(Storage::Disk)?;
    let shared = run.scratch(Storage::Shm)?;
    let place = Place::new(directory.path(), 64 << 20, VALUE_BYTES);
    let _volume = Volume::create(&place)?;
    let barrier_path = shared.path().join("barrier");
    let barrier = Barrier::open(&barrier_path)?;
    let arguments = [
        "fill".to_owned(),
        directory.path().join(Volume::FILE).display().to_string(),
        barrier_path.display().to_string(),
        keys.to_string(),
    ];
    let mut workers = (0..PROCESSES).map(|_| Worker::start(&arguments)).collect::<Result<Vec<_>>>()?;
    for round in 0..2 * keys {
        barrier.start(round, PROCESSES)?;
    }
    let mut fills = Vec::new();
    let mut sleeps = Vec::new();
    for key in 0..keys {
        fills.push(together(&mut workers)?);
        sleeps.push(together(&mut workers)?);
        let filled = fills.last().map_or(0, |together| together.filled);
        if filled != 1 {
            return Err(Error::Invalid(format!("{filled} of {PROCESSES} processes filled key {key}; one was to")));
        }
    }
    for worker in &mut workers {
        worker.end()?;
    }
    record(run, &fills, &sleeps);
    Ok(())
}

fn record(run: &mut Run, fills: &[Together], sleeps: &[Together]) {
    let name = format!("{PROCESSES} processes, one key, {}", run.storage_name(Storage::Disk));
    let wholes = |all: &[Together]| all.iter().map(|one| ms(one.first_ns, one.last_ns)).collect::<Vec<_>>();
    let row = Row::new("fill", format!("{name}: from the first to begin to the last to have it"), "ms")
        .series(Volume::NAME, &wholes(fills))
        .series(SLEEP, &wholes(sleeps))
        .value(Volume::NAME, Ask::at_most(110.0).aim(102.0))
        .difference(Volume::NAME, SLEEP, Ask::NOTHING);
    run.push(row);
    let waits: Vec<f64> = fills.iter().map(|one| ms(one.made_ns, one.last_ns)).collect();
    let row = Row::new("fill", format!("{name}: from the value's being made to the last to have it"), "ms")
        .series(Volume::NAME, &waits);
    run.push(row);
}

/// What all processes did in one round.
struct Together {
    first_ns: u64,
    last_ns: u64,
    /// When the value was made.
    made_ns: u64,
    filled: u64,
}

fn ms(from_ns: u64, to_ns: u64) -> f64 {
    to_ns.saturating_sub(from_ns) as f64 / 1e6
}

/// Joins the next line of each process.
fn together(workers: &mut [Worker]) -> Result<Together> {
    let mut all = Together { first_ns: u64::MAX, last_ns: 0, made_ns: 0, filled: 0 };
    for worker in workers {
        let [begin_ns, end_ns, made_ns] = worker.numbers()?;
        all.first_ns = all.first_ns.min(begin_ns);
        all.last_ns = all.last_ns.max(end_ns);
        all.made_ns = all.made_ns.max(made_ns);
        all.filled += u64::from(made_ns > 0);
    }
    Ok(all)
}

impl Task {
    /// A process: for each key a round that fills it, and one that only sleeps as long.
    pub fn run(&self) -> Result<()> {
        let store = Volume::open(&self.volume)?;
        let barrier = Barrier::open(&self.barrier)?;
        for key in 0..self.keys {
            barrier.arrive(2 * key)?;
            get_or_fill(&store, key)?;
            barrier.arrive(2 * key + 1)?;
            let begin_ns = now_ns();
            thread::sleep(FILL);
            say(&format!("{begin_ns} {} 0", now_ns()))?;
        }
        Ok(())
    }
}

/// Says when it began, when it had the value, and when it had made it; 0: somebody else did.
fn get_or_fill(store: &Volume, index: u64) -> Result<()> {
    let mut made_ns = 0;
    let begin_ns = now_ns();
    let filled = store.cache().get_or_fill(random::key(index), DEADLINE, &FillOptions::new(), || {
        let mut value = random::filler(6, VALUE_BYTES);
        load::stamp(&mut value, index);
        thread::sleep(FILL);
        made_ns = now_ns();
        Ok::<_, Infallible>(Fill::Value(value))
    });
    let end_ns = now_ns();
    let filled =
        filled.map_err(|failure| Error::Invalid(format!("a process got nothing of key {index}: {failure}")))?;
    if !filled.value().is_some_and(|value| load::is_stamped(value, index)) {
        return Err(Error::Invalid(format!("a process got another value for key {index}: {filled:?}")));
    }
    say(&format!("{begin_ns} {end_ns} {made_ns}"))
}
