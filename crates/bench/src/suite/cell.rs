//! A cell: the part of a workload that is measured together. All of its stores take turns.
//!
//! A procedure goes through some of the workload's parameters with the stores open. Each combination of the others is a
//! cell.

use std::path::{Path, PathBuf};

use hdrhistogram::Histogram;
use serde::de::DeserializeOwned;

use super::definition::{Definition, Scale};
use super::driver::{Answer, Driver, Measure, Places, Request};
use super::entrant::{Entrant, Room};
use super::interrupt::Interrupt;
use super::progress::Progress;
use super::recorder::{Distribution, Sample};
use super::value::{self, Case, Value};
use crate::error::{Error, Result};
use crate::peer::Peer;
use crate::scratch::{Scratch, Storage};

/// The stores that take part.
#[derive(Debug, Clone)]
pub enum Contestant<'a> {
    /// A store of this program.
    Peer(&'a Peer),
    /// A store of a driver.
    Driven(&'a str, &'a Driver),
}

impl Contestant<'_> {
    /// The store's name in records.
    pub fn name(&self) -> &str {
        match self {
            Self::Peer(peer) => peer.name,
            Self::Driven(name, _) => name,
        }
    }
}

/// The environment of a measurement.
#[derive(Debug, Clone, Copy)]
pub struct Bench<'a> {
    /// Whole or quick.
    pub scale: Scale,
    /// The directories of stores.
    pub scratch: &'a Scratch,
    /// Whether the run has to end.
    pub interrupt: &'a Interrupt,
    /// The display of the progress.
    pub progress: &'a Progress,
}

/// The results of a cell.
#[derive(Debug, Default)]
pub struct Found {
    /// Figures.
    pub samples: Vec<Sample>,
    /// Latencies.
    pub distributions: Vec<Distribution>,
    /// Notes for readers.
    pub notes: Vec<String>,
}

/// A cell under measurement.
#[derive(Debug)]
pub struct Cell<'a> {
    definition: &'a Definition,
    case: Case,
    contestants: Vec<Contestant<'a>>,
    bench: Bench<'a>,
    found: Found,
}

impl<'a> Cell<'a> {
    /// A cell without results.
    pub fn new(definition: &'a Definition, case: Case, contestants: Vec<Contestant<'a>>, bench: Bench<'a>) -> Self {
        Self { definition, case, contestants, bench, found: Found::default() }
    }

    /// The results.
    pub fn into_found(self) -> Found {
        self.found
    }

    /// The part that all cases of the cell share.
    pub fn case(&self) -> &Case {
        &self.case
    }

    /// The cell's cases, along these parameters of the workload.
    pub fn cases(&self, within: &[&str]) -> Vec<Case> {
        value::cases(&self.case, within.iter().map(|name| (*name, self.definition.values(name))))
    }

    /// The values of a parameter.
    pub fn values(&self, parameter: &str) -> &'a [Value] {
        self.definition.values(parameter)
    }

    /// The file of a trace that the user gave.
    pub fn given_trace(&self, name: &str) -> Option<&'a Path> {
        self.definition.given_traces().get(name).map(PathBuf::as_path)
    }

    /// The procedure's settings.
    pub fn settings<T: DeserializeOwned>(&self) -> Result<T> {
        self.definition.settings()
    }

    /// The stores that take part, in the order of their turns.
    pub fn contestants(&self) -> Vec<Contestant<'a>> {
        self.contestants.clone()
    }

    /// The stores of this program that take part.
    pub fn peers(&self) -> Vec<&'a Peer> {
        let as_peer = |contestant: &Contestant<'a>| match contestant {
            Contestant::Peer(peer) => Some(*peer),
            Contestant::Driven(..) => None,
        };
        self.contestants.iter().filter_map(as_peer).collect()
    }

    /// The number of repetitions for each median.
    pub fn repetitions(&self) -> usize {
        self.definition.repetitions.at(self.bench.scale)
    }

    /// The seed of keys, sizes and orders.
    pub fn seed(&self) -> u64 {
        self.definition.seed
    }

    /// The storage of the stores: the parameter `storage`, or the disk without it.
    pub fn storage(&self) -> Result<Storage> {
        match self.case.get("storage") {
            None => Ok(Storage::Disk),
            Some(Value::Text(name)) if name == "disk" => Ok(Storage::Disk),
            Some(Value::Text(name)) if name == "shm" => Ok(Storage::Shm),
            other => Err(Error::parameter("storage", other, "disk or shm")),
        }
    }

    /// The directories of stores.
    pub fn scratch(&self) -> &'a Scratch {
        self.bench.scratch
    }

    /// An error if the run has to end. Procedures call it at least about once a second.
    pub fn breathe(&self) -> Result<()> {
        self.bench.interrupt.check()
    }

    /// Displays the work under way.
    pub fn show(&self, what: &str) {
        self.bench.progress.show(&format!("{}: {what}", self.definition.name));
    }

    /// Opens an empty store.
    pub fn open(&self, peer: &Peer, room: Room) -> Result<Entrant> {
        self.breathe()?;
        Entrant::open(peer, room, self.bench.scratch, self.storage()?)
    }

    /// Opens all stores and makes each ready. If a store fails, a note says so, and it takes no part.
    pub fn open_all(
        &mut self,
        room: impl Fn(&Peer) -> Room,
        mut ready: impl FnMut(&Entrant) -> Result<()>,
    ) -> Result<Vec<Entrant>> {
        let mut entrants = Vec::new();
        for peer in self.peers() {
            self.show(&format!("{} is filled", peer.name));
            let opened = self.open(peer, room(peer)).and_then(|entrant| ready(&entrant).map(|()| entrant));
            entrants.extend(self.attempt(peer.name, opened)?);
        }
        Ok(entrants)
    }

    /// The result of a store's work. If it failed, a note says so, and the result is `None`. An interruption is an
    /// error.
    pub fn attempt<T>(&mut self, store: &str, made: Result<T>) -> Result<Option<T>> {
        match made {
            Ok(made) => Ok(Some(made)),
            Err(Error::Interrupted) => Err(Error::Interrupted),
            // The same Ctrl-C has ended the child.
            Err(_) if self.bench.interrupt.is_wanted() => Err(Error::Interrupted),
            Err(failure) => {
                self.note(format!("{store} failed in {}: {failure}", self.named_case()));
                Ok(None)
            }
        }
    }

    /// Records a figure of a repetition. Drops those of repetition 0, which isn't counted.
    pub fn sample(&mut self, case: &Case, store: &str, measure: &str, repetition: usize, value: f64) -> Result<()> {
        self.sample_along(case, store, measure, repetition, value, None)
    }

    /// Records a figure along the measure's axis.
    pub fn sample_along(
        &mut self,
        case: &Case,
        store: &str,
        measure: &str,
        repetition: usize,
        value: f64,
        at: Option<f64>,
    ) -> Result<()> {
        let unit = self.unit_of(measure)?;
        if !value.is_finite() {
            return Err(Error::Invalid(format!("{store} gave {value} for {measure}")));
        }
        if repetition > 0 {
            let (workload, case) = (self.definition.name.clone(), case.clone());
            let (store, measure) = (store.to_owned(), measure.to_owned());
            self.found.samples.push(Sample { workload, measure, case, store, repetition, unit, value, at });
        }
        Ok(())
    }

    /// Records the distribution of a counted repetition's times in nanoseconds.
    pub fn distribution(
        &mut self,
        case: &Case,
        store: &str,
        measure: &str,
        repetition: usize,
        times_ns: &Histogram<u64>,
    ) -> Result<()> {
        let bucket = |found: hdrhistogram::iterators::IterationValue<u64>| {
            (times_ns.highest_equivalent(found.value_iterated_to()), found.count_at_value())
        };
        self.buckets(case, store, measure, repetition, times_ns.iter_recorded().map(bucket).collect())
    }

    fn buckets(
        &mut self,
        case: &Case,
        store: &str,
        measure: &str,
        repetition: usize,
        buckets: Vec<(u64, u64)>,
    ) -> Result<()> {
        self.unit_of(measure)?;
        if repetition > 0 && !buckets.is_empty() {
            let (workload, case) = (self.definition.name.clone(), case.clone());
            let (store, measure, unit) = (store.to_owned(), measure.to_owned(), "ns".to_owned());
            self.found.distributions.push(Distribution { workload, measure, case, store, repetition, unit, buckets });
        }
        Ok(())
    }

    /// Records a note for readers of the figures; equal notes only once.
    pub fn note(&mut self, text: impl Into<String>) {
        let text = format!("{}: {}", self.definition.name, text.into());
        if !self.found.notes.contains(&text) {
            self.found.notes.push(text);
        }
    }

    /// Lets a driver do these repetitions for some of its stores.
    pub fn drive(&mut self, driver: &Driver, stores: &[&str], repetitions: &[usize]) -> Result<()> {
        let scratch = [self.bench.scratch.make(Storage::Disk)?, self.bench.scratch.make(Storage::Shm)?];
        let [disk, shm] = scratch.each_ref().map(|directory| directory.path().to_owned());
        let definition = self.definition;
        let case = self.case.clone();
        let request = Request::Measure(Box::new(Measure {
            workload: &definition.name,
            procedure: &definition.procedure,
            case: &case,
            settings: definition.raw_settings(),
            parameters: definition.parameters.iter().map(|(name, it)| (name.as_str(), it.values.as_slice())).collect(),
            stores: stores.to_vec(),
            repetitions: repetitions.to_vec(),
            seed: definition.seed,
            quick: self.bench.scale == Scale::Quick,
            scratch: Places { disk, shm },
        }));
        let interrupt = self.bench.interrupt;
        driver.ask(&request, interrupt, |answer| self.take(&case, answer))
    }

    fn take(&mut self, base: &Case, answer: Answer) -> Result<()> {
        let whole = |more: Case| more.iter().fold(base.clone(), |case, (name, value)| case.with(name, value.clone()));
        match answer {
            Answer::Sample { store, measure, repetition, value, case, at } => {
                self.sample_along(&whole(case), &store, &measure, repetition, value, at)
            }
            Answer::Histogram { store, measure, repetition, buckets, case } => {
                self.buckets(&whole(case), &store, &measure, repetition, buckets)
            }
            Answer::Store { store, absent: Some(reason), .. } => {
                self.note(format!("{store} is absent: {reason}"));
                Ok(())
            }
            Answer::Store { .. } => Ok(()),
            Answer::Note(text) => {
                self.note(text);
                Ok(())
            }
            Answer::Progress(text) => {
                self.show(&text);
                Ok(())
            }
        }
    }

    fn unit_of(&self, measure: &str) -> Result<String> {
        let known = self.definition.measures.get(measure);
        known.map(|measure| measure.unit.clone()).ok_or_else(|| {
            Error::Invalid(format!(
                "{}: the procedure measured {measure}, which its definition doesn't name",
                self.definition.name
            ))
        })
    }

    fn named_case(&self) -> String {
        let case = self.case.to_string();
        if case.is_empty() { "its only case".to_owned() } else { case }
    }
}
