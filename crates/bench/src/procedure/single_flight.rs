//! Many processes request one cold key at the same time. One makes the value; the others wait for it.

use std::convert::Infallible;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use clap::Args;
use eyewall::{Fill, FillOptions};
use serde::Deserialize;

use super::Procedure;
use crate::barrier::Barrier;
use crate::child::{Worker, say};
use crate::clock::now_ns;
use crate::error::{Error, Result};
use crate::load;
use crate::random;
use crate::scratch::Storage;
use crate::store::Place;
use crate::stores::Volume;
use crate::suite::cell::Cell;
use crate::suite::size::Bytes;
use crate::suite::value::Value;

/// If a process has to wait longer, it gives up, and the run ends.
const DEADLINE: Duration = Duration::from_secs(10);

/// The values of the parameter `what`.
const FILL: &str = "get_or_fill";
const SLEEP: &str = "sleep alone";

/// Each repetition is a key; the procedure goes through `what` for each key.
pub(super) struct SingleFlight;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    cap: Bytes,
    value: Bytes,
    processes: u64,
    /// The time to make a value: a sleep, like the response time of an origin.
    milliseconds: u64,
}

impl Procedure for SingleFlight {
    fn within(&self) -> &'static [&'static str] {
        &["what"]
    }

    fn measure(&self, cell: &mut Cell<'_>) -> Result<()> {
        let settings: Settings = cell.settings()?;
        let case = cell.case().clone();
        let [fill_case, sleep_case] = [FILL, SLEEP].map(|what| case.clone().with("what", Value::Text(what.to_owned())));
        let keys = cell.repetitions() as u64;
        let directory = cell.scratch().make(cell.storage()?)?;
        let shared = cell.scratch().make(Storage::Shm)?;
        let _volume = Volume::create(&Place::new(directory.path(), settings.cap.0, settings.value.0 as usize))?;
        let barrier = shared.path().join("barrier");
        let task = Task {
            volume: directory.path().join(Volume::FILE),
            barrier: barrier.clone(),
            keys,
            value_bytes: settings.value.0 as usize,
            milliseconds: settings.milliseconds,
        };
        let barrier = Barrier::open(&barrier)?;
        cell.show(&format!("{} processes attach", settings.processes));
        let mut workers = (0..settings.processes).map(|_| task.start()).collect::<Result<Vec<_>>>()?;
        for round in 0..2 * keys {
            barrier.start(round, settings.processes)?;
        }
        for key in 0..keys {
            cell.breathe()?;
            let fill = together(&mut workers)?;
            let sleep = together(&mut workers)?;
            if fill.filled != 1 {
                let (filled, processes) = (fill.filled, settings.processes);
                return Err(Error::Invalid(format!("{filled} of {processes} processes filled key {key}; one was to")));
            }
            let repetition = key as usize + 1;
            cell.sample(&fill_case, Volume::NAME, "time", repetition, seconds(fill.first_ns, fill.last_ns))?;
            cell.sample(&sleep_case, Volume::NAME, "time", repetition, seconds(sleep.first_ns, sleep.last_ns))?;
            cell.sample(&case, Volume::NAME, "wait", repetition, seconds(fill.made_ns, fill.last_ns))?;
        }
        workers.iter_mut().try_for_each(Worker::end)
    }
}

fn seconds(from_ns: u64, to_ns: u64) -> f64 {
    to_ns.saturating_sub(from_ns) as f64 / 1e9
}

/// The times of all processes in one round.
struct Together {
    first_ns: u64,
    last_ns: u64,
    /// When the value was made.
    made_ns: u64,
    filled: u64,
}

/// Merges the next line of each process.
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

/// The work of a process.
#[derive(Debug, Clone, Args)]
pub struct Task {
    /// The volume
    volume: PathBuf,
    /// The barrier at which the processes begin together
    barrier: PathBuf,
    /// How many keys, one after the other
    keys: u64,
    /// Bytes of each value
    value_bytes: usize,
    /// Milliseconds to make a value
    milliseconds: u64,
}

impl Task {
    fn start(&self) -> Result<Worker> {
        let Self { volume, barrier, keys, value_bytes, milliseconds } = self;
        let paths = [volume, barrier].map(|path| path.display().to_string());
        let numbers = [*keys, *value_bytes as u64, *milliseconds].map(|number| number.to_string());
        let words: Vec<String> = ["fill".to_owned()].into_iter().chain(paths).chain(numbers).collect();
        Worker::start(&words)
    }

    /// The process. Each key has a round that fills it, and a round that only sleeps as long.
    pub fn run(&self) -> Result<()> {
        let store = Volume::open(&self.volume)?;
        let barrier = Barrier::open(&self.barrier)?;
        for key in 0..self.keys {
            barrier.arrive(2 * key)?;
            self.get_or_fill(&store, key)?;
            barrier.arrive(2 * key + 1)?;
            let begin_ns = now_ns();
            self.sleep();
            say(&format!("{begin_ns} {} 0", now_ns()))?;
        }
        Ok(())
    }

    fn sleep(&self) {
        thread::sleep(Duration::from_millis(self.milliseconds));
    }

    /// Writes when it began, when it had the value, and when it had made the value (0 if another process made it).
    fn get_or_fill(&self, store: &Volume, index: u64) -> Result<()> {
        let mut made_ns = 0;
        let begin_ns = now_ns();
        let filled = store.cache().get_or_fill(random::key(index), DEADLINE, &FillOptions::new(), || {
            let mut value = random::filler(6, self.value_bytes);
            load::stamp(&mut value, index);
            self.sleep();
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
}
