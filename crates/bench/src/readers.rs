//! Gets in several processes that share one store: the work of each, and how they begin and end together.
//!
//! A process says that it is ready when it has attached to the store. For each lap, the parent tells it what to do with
//! a value, when to begin (by the clock that all processes share), and for how long. The process answers with its lap.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum as _};

use crate::child::{Worker, hear_words, say};
use crate::clock::{Lap, now_ns};
use crate::error::{Error, Result};
use crate::load::{Gets, Population, Sequences};
use crate::peer::Peer;
use crate::store::Place;
use crate::touch::Touch;

/// Time between the word and the beginning of a lap. By the beginning, all processes have read the word, and sleep.
const AHEAD_NS: u64 = 4_000_000;
const AHEAD_NS_EACH: u64 = 250_000;

/// The task of a process.
#[derive(Debug, Clone, Args)]
pub struct Task {
    /// The store's name
    pub(crate) store: String,
    /// The store's place
    pub(crate) directory: PathBuf,
    /// Bytes that it may hold
    pub(crate) cap_bytes: u64,
    /// Objects in it
    pub(crate) objects: u64,
    /// Bytes of each
    pub(crate) value_bytes: usize,
    /// Number of processes
    pub(crate) processes: u64,
    /// Number of this process, counted from 0
    pub(crate) process: u64,
    /// Threads of each
    pub(crate) threads: usize,
    /// Number of keys before the order repeats, for all processes together; each thread has at least one
    pub(crate) keys: usize,
    /// Seed of the keys
    pub(crate) seed: u64,
}

impl Task {
    /// The arguments from which clap reads it.
    fn arguments(&self) -> Vec<String> {
        let Self { store, directory, cap_bytes, objects, value_bytes, processes, process, threads, keys, seed } = self;
        let words = ["gets".to_owned(), store.clone(), directory.display().to_string()];
        let numbers =
            [*cap_bytes, *objects, *value_bytes as u64, *processes, *process, *threads as u64, *keys as u64, *seed];
        words.into_iter().chain(numbers.map(|number| number.to_string())).collect()
    }

    /// The process: attaches, and does laps until the parent requests no more.
    pub fn run(&self, peers: &[Peer]) -> Result<()> {
        let peer = peers
            .iter()
            .find(|peer| peer.name == self.store)
            .ok_or_else(|| Error::Invalid(format!("this program has no store of the name {}", self.store)))?;
        let store = peer.attach(&Place::new(&self.directory, self.cap_bytes, self.value_bytes))?;
        let population = Population { objects: self.objects, value_bytes: self.value_bytes };
        // Together, the processes read every object.
        store.check_part(population, self.process, self.processes)?;
        let sequences = self.sequences(population);
        say("ready")?;
        while let Some(words) = hear_words()? {
            let Turn { touch, begin_ns, duration } = Turn::read(&words)?;
            let gets = Gets { sequences: sequences.clone(), touch, duration };
            let lap = store.gets_from(&gets, begin_ns)?;
            say(&format!("{} {} {}", lap.operations, lap.begin_ns, lap.end_ns))?;
        }
        Ok(())
    }

    /// The keys of this process's threads. They are the same as if all threads were in one process.
    fn sequences(&self, population: Population) -> Sequences {
        let keys = (self.keys / self.processes as usize).max(self.threads);
        Sequences::random(population, self.threads, keys, self.seed ^ (self.process << 32))
    }
}

/// The parameters of a lap that a process gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Turn {
    touch: Touch,
    begin_ns: u64,
    duration: Duration,
}

impl Turn {
    fn words(self) -> String {
        let touch = self.touch.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned());
        format!("{touch} {} {}", self.begin_ns, self.duration.as_nanos())
    }

    fn read(words: &str) -> Result<Self> {
        let wrong = || Error::Invalid(format!("a child was told {words:?}"));
        let [touch, begin_ns, duration_ns] = words.split(' ').collect::<Vec<_>>().try_into().map_err(|_| wrong())?;
        Ok(Self {
            touch: Touch::from_str(touch, false).map_err(|_| wrong())?,
            begin_ns: begin_ns.parse().map_err(|_| wrong())?,
            duration: Duration::from_nanos(duration_ns.parse().map_err(|_| wrong())?),
        })
    }
}

/// Processes at work on one store, which this process has open.
#[derive(Debug)]
pub(crate) struct Readers(Vec<Worker>);

impl Readers {
    /// Starts the processes of a task, and waits until all have attached.
    ///
    /// # Errors
    /// The error of the first process that fails.
    pub(crate) fn start(task: &Task) -> Result<Self> {
        let of_process = |process| Worker::start(&Task { process, ..task.clone() }.arguments());
        let mut workers = (0..task.processes).map(of_process).collect::<Result<Vec<_>>>()?;
        workers.iter_mut().try_for_each(|worker| worker.line().map(|_| ()))?;
        Ok(Self(workers))
    }

    /// Lets all processes get for a time, and merges their laps. After an error, don't use the processes any more.
    pub(crate) fn lap(&mut self, touch: Touch, duration: Duration) -> Result<Lap> {
        let begin_ns = now_ns() + AHEAD_NS + AHEAD_NS_EACH * self.0.len() as u64;
        let words = Turn { touch, begin_ns, duration }.words();
        self.0.iter_mut().try_for_each(|worker| worker.tell(&words))?;
        let mut whole: Option<Lap> = None;
        for worker in &mut self.0 {
            let lap = worker.lap()?;
            whole = Some(whole.map_or(lap, |whole| whole.join(lap)));
        }
        whole.ok_or_else(|| Error::Invalid("no process".to_owned()))
    }

    /// Lets all processes leave the store cleanly.
    pub(crate) fn end(mut self) -> Result<()> {
        self.0.iter_mut().try_for_each(Worker::end)
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, Command, FromArgMatches as _};

    use super::*;

    fn task() -> Task {
        Task {
            store: "eyewall, copied".to_owned(),
            directory: "/a folder".into(),
            cap_bytes: 16 << 20,
            objects: 50,
            value_bytes: 100,
            processes: 4,
            process: 3,
            threads: 2,
            keys: 64,
            seed: 7,
        }
    }

    #[test]
    fn a_task_is_read_from_its_words() {
        let matches = Task::augment_args(Command::new("gets")).get_matches_from(task().arguments());
        let read = Task::from_arg_matches(&matches).expect("a task");
        assert_eq!(format!("{read:?}"), format!("{:?}", task()));
    }

    #[test]
    fn a_turn_is_read_from_its_words() {
        let turn = Turn { touch: Touch::Every, begin_ns: 12, duration: Duration::from_millis(3) };
        assert_eq!(Turn::read(&turn.words()).expect("a turn"), turn);
        for wrong in ["", "go", "every 1", "none 1 2", "every one 2", "every 1 2 3"] {
            assert!(Turn::read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn processes_ask_for_what_threads_of_one_process_ask_for() {
        let population = Population { objects: 50, value_bytes: 100 };
        let threads = Task { processes: 1, process: 0, threads: 4, ..task() }.sequences(population);
        for process in 0..4 {
            let alone = Task { process, threads: 1, ..task() }.sequences(population);
            assert_eq!(alone.of_thread(0), threads.of_thread(process as usize));
        }
        assert_eq!(Task { keys: 0, ..task() }.sequences(population).of_thread(1).len(), 1);
    }
}
