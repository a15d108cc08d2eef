//! A run of the suite: its cells in their order, and its record.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::machine as host;
use crate::peer::{Kind, Peer};
use crate::procedure;
use crate::scratch::Scratch;
use crate::simulate;
use crate::suite::cell::{Bench, Cell, Contestant};
use crate::suite::definition::{Definition, Scale, Turns};
use crate::suite::driver::Driver;
use crate::suite::interrupt::Interrupt;
use crate::suite::machine;
use crate::suite::progress::{Progress, spoken};
use crate::suite::recorder::{FORMAT, Head, Recorder, StoreFacts};
use crate::suite::value::{self, Case};

/// The options of a run.
#[derive(Debug)]
pub struct Setting {
    /// Whole or quick.
    pub scale: Scale,
    /// The record's directory.
    pub folder: PathBuf,
    /// Whether to resume the record.
    pub resume: bool,
    /// The directories of stores.
    pub scratch: Scratch,
    /// The commit of the sources.
    pub commit: Option<String>,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It ended, and measured everything. Notes name the stores that failed somewhere.
    Finished,
    /// It ended, but some measures or cells of a workload are missing. The record's notes say why.
    Incomplete,
    /// A Ctrl-C ended it. The record has the results until then.
    Interrupted,
}

/// A run of some workloads.
#[derive(Debug)]
pub struct Session<'a> {
    definitions: Vec<Definition>,
    peers: &'a [Peer],
    setting: Setting,
    interrupt: Interrupt,
    recorder: Recorder,
    head: Head,
    /// The drivers, and those that have a given store. If workloads have drivers of their own, several drivers may have
    /// it.
    drivers: Vec<Driver>,
    driven: HashMap<String, Vec<usize>>,
    /// Why a workload did not run.
    skipped: HashMap<String, String>,
    /// Workloads with a cell that failed as a whole.
    failed: HashSet<String>,
}

impl<'a> Session<'a> {
    /// Examines the machine and the stores, and begins or resumes a record.
    pub fn begin(
        definitions: Vec<Definition>,
        peers: &'a [Peer],
        setting: Setting,
        interrupt: Interrupt,
    ) -> Result<Self> {
        let (recorder, head) = if setting.resume {
            let (recorder, head) = Recorder::resume(&setting.folder)?;
            check_same(&head, &setting, &definitions)?;
            (recorder, head)
        } else {
            let head = new_head(&setting)?;
            (Recorder::create(&setting.folder)?, head)
        };
        let mut session = Self {
            definitions,
            peers,
            setting,
            interrupt,
            recorder,
            head,
            drivers: Vec::new(),
            driven: HashMap::new(),
            skipped: HashMap::new(),
            failed: HashSet::new(),
        };
        session.find_stores()?;
        session.write_head(false)?;
        Ok(session)
    }

    /// Measures everything that the record doesn't have yet.
    pub fn run(&mut self) -> Result<Ended> {
        let cells = self.cells()?;
        let expected = cells.iter().map(|planned| planned.minutes).sum();
        let mut progress = Progress::begin(expected);
        for planned in cells {
            match self.measure(&planned, &progress) {
                Err(Error::Interrupted) => {
                    progress.clear();
                    return Ok(Ended::Interrupted);
                }
                measured => measured?,
            }
            progress.advance(planned.minutes);
        }
        progress.clear();
        eprintln!("measured for {}", spoken(progress.elapsed()));
        self.write_head(true)?;
        Ok(if self.head.complete { Ended::Finished } else { Ended::Incomplete })
    }

    /// The record's directory.
    pub fn folder(&self) -> &Path {
        self.recorder.folder()
    }

    /// The cells to measure, each with its part of the workload's time.
    fn cells(&mut self) -> Result<Vec<Planned>> {
        let mut cells = Vec::new();
        for (number, definition) in self.definitions.iter().enumerate() {
            if let Some(reason) = self.reason_to_skip(definition)? {
                self.skipped.insert(definition.name.clone(), reason);
                continue;
            }
            let procedure = procedure::named(&definition.procedure);
            let within = match (procedure, definition.turns) {
                (_, Turns::Driver) => {
                    let is_within = |name: &&str| !definition.cells.iter().any(|cell| cell == name);
                    definition.parameters.keys().map(String::as_str).filter(is_within).collect()
                }
                (Some(procedure), Turns::Suite) => procedure.within().to_vec(),
                (None, Turns::Suite) => Vec::new(),
            };
            let outer = definition.parameters.iter().filter(|(name, _)| !within.contains(&name.as_str()));
            let cases = value::cases(&Case::default(), outer.map(|(name, it)| (name.as_str(), it.values.as_slice())));
            let minutes = definition.minutes.at(self.setting.scale) / cases.len() as f64;
            let is_left = |case: &Case| !self.recorder.has_any(&definition.name, case);
            cells.extend(cases.into_iter().filter(is_left).map(|case| Planned { definition: number, case, minutes }));
        }
        Ok(cells)
    }

    /// Why a workload can't run here, and what to do about it.
    fn reason_to_skip(&self, definition: &Definition) -> Result<Option<String>> {
        let absent = |name: &String| Some(format!("{name}: {}", self.head.stores.get(name)?.absent.as_ref()?));
        let reasons: Vec<String> = definition.stores.iter().filter_map(absent).collect();
        if reasons.len() == definition.stores.len() {
            return Ok(Some(format!("none of its stores can be had: {}", reasons.join("; "))));
        }
        if let Some(lacking) = definition.needs.lacking(self.setting.scale, &self.setting.scratch)? {
            return Ok(Some(lacking));
        }
        Ok(procedure::named(&definition.procedure).and_then(|procedure| procedure.skip(definition)))
    }

    fn measure(&mut self, planned: &Planned, progress: &Progress) -> Result<()> {
        let definition = &self.definitions[planned.definition];
        let bench =
            Bench { scale: self.setting.scale, scratch: &self.setting.scratch, interrupt: &self.interrupt, progress };
        let contestants = self.contestants(definition);
        let colon = if planned.case == Case::default() { "" } else { ": " };
        progress.begin_cell(&format!("{}{colon}{}", definition.name, planned.case));
        let mut cell = Cell::new(definition, planned.case.clone(), contestants, bench);
        let measured = match (procedure::named(&definition.procedure), definition.turns) {
            (_, Turns::Driver) => cell.turns_of_driver(),
            (Some(procedure), Turns::Suite) => procedure.measure(&mut cell),
            (None, Turns::Suite) => {
                cell.turns_of_all(|_, peer, _| Err(Error::Invalid(format!("{}: only drivers do this", peer.name))))
            }
        };
        let is_measured = cell.attempt("the cell", measured)?.is_some();
        let (name, found) = (definition.name.clone(), cell.into_found());
        if !is_measured {
            self.failed.insert(name);
        }
        progress.clear();
        for note in found.notes {
            self.head.notes.push(note.clone());
            eprintln!("{note}");
        }
        self.recorder.append(&found.samples, &found.distributions)?;
        self.write_head(false)
    }

    fn contestants(&self, definition: &Definition) -> Vec<Contestant<'_>> {
        let find = |name: &'_ String| {
            let facts = self.head.stores.get(name)?;
            if facts.absent.is_some() {
                return None;
            }
            let is_its = |driver: &&Driver| definition.drivers.iter().any(|command| command == driver.command());
            if let Some((name, numbers)) = self.driven.get_key_value(name)
                && let Some(driver) = numbers.iter().map(|number| &self.drivers[*number]).find(is_its)
            {
                return Some(Contestant::Driven(name, driver));
            }
            self.all_peers().find(|peer| peer.name == *name).map(Contestant::Peer)
        };
        definition.stores.iter().filter_map(find).collect()
    }

    /// The stores of this program, the policies that it simulates, and the ways to open files.
    fn all_peers(&self) -> impl Iterator<Item = &'a Peer> + use<'a> {
        self.peers.iter().chain(&simulate::REFERENCES).chain(&procedure::OPENERS)
    }

    /// The named stores that are available.
    fn find_stores(&mut self) -> Result<()> {
        let mut found: BTreeMap<String, StoreFacts> = BTreeMap::new();
        for definition in &self.definitions {
            for command in &definition.drivers {
                let driver = Driver::new(command)?;
                if self.drivers.contains(&driver) {
                    continue;
                }
                let number = self.drivers.len();
                match driver.list(&self.interrupt) {
                    Ok(stores) => {
                        for name in stores.keys() {
                            self.driven.entry(name.clone()).or_default().push(number);
                        }
                        found.extend(stores);
                    }
                    Err(Error::Interrupted) => return Err(Error::Interrupted),
                    Err(failure) => self.head.notes.push(format!("{}: {failure}", definition.name)),
                }
                self.drivers.push(driver);
            }
            for name in &definition.stores {
                if let Some(peer) = self.all_peers().find(|peer| peer.name == *name) {
                    found.entry(name.clone()).or_insert_with(|| facts_of(peer));
                }
            }
        }
        let named = self.definitions.iter().flat_map(|definition| &definition.stores);
        for name in named {
            let unknown = || StoreFacts {
                kind: Kind::Other,
                version: None,
                absent: Some("neither this program nor a driver of the workload has it".to_owned()),
            };
            let facts = found.get(name).cloned().unwrap_or_else(unknown);
            match self.head.stores.get(name) {
                Some(begun) if *begun != facts => return Err(changed(name, begun, &facts)),
                _ => self.head.stores.insert(name.clone(), facts),
            };
        }
        Ok(())
    }

    fn write_head(&mut self, is_over: bool) -> Result<()> {
        let mut workloads = Vec::new();
        for definition in &self.definitions {
            let is_measured = |store: &str, measure: &str, case: &Case| {
                !is_over || self.recorder.has_series(&definition.name, store, measure, case)
            };
            let mut recorded = definition.recorded(self.setting.scale, is_measured);
            recorded.skipped = self.skipped.get(&definition.name).cloned();
            if is_over && recorded.skipped.is_none() {
                self.head.notes.extend(recorded.left_out(definition));
            }
            workloads.push(
                serde_json::to_value(recorded)
                    .map_err(|failure| Error::Invalid(format!("{} can't be written: {failure}", definition.name)))?,
            );
        }
        self.head.workloads = serde_json::Value::Array(workloads);
        let is_there = |definition: &Definition| {
            self.skipped.contains_key(&definition.name)
                || !self.failed.contains(&definition.name)
                    && definition.measures.keys().all(|measure| self.recorder.has_measure(&definition.name, measure))
        };
        self.head.complete = is_over && self.definitions.iter().all(is_there);
        if is_over && !self.head.complete {
            let missing: Vec<&str> =
                self.definitions.iter().filter(|one| !is_there(one)).map(|one| one.name.as_str()).collect();
            self.head.notes.push(format!("Not all was measured of {}; the notes say why.", missing.join(", ")));
        }
        self.recorder.write_head(&self.head)
    }
}

/// A cell to measure.
#[derive(Debug)]
struct Planned {
    definition: usize,
    case: Case,
    minutes: f64,
}

fn facts_of(peer: &Peer) -> StoreFacts {
    let (version, absent) = match (peer.look)() {
        Ok(version) => (version, None),
        Err(reason) => (None, Some(reason.to_string())),
    };
    StoreFacts { kind: peer.kind, version, absent }
}

/// The error if a store has changed between the beginning of a run and its resumption.
fn changed(name: &str, begun: &StoreFacts, now: &StoreFacts) -> Error {
    let words = |facts: &StoreFacts| match (&facts.absent, &facts.version) {
        (Some(_), _) => "absent".to_owned(),
        (None, Some(version)) => version.clone(),
        (None, None) => "there".to_owned(),
    };
    let (begun, now) = (words(begun), words(now));
    Error::Invalid(format!("the run began with {name} {begun}, and it is {now} now: figures of two don't mix"))
}

fn new_head(setting: &Setting) -> Result<Head> {
    let id = setting.folder.file_name().and_then(|name| name.to_str());
    let is_plain = |id: &&str| {
        let is_small = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        id.bytes().next().is_some_and(is_small) && id.bytes().all(|byte| is_small(byte) || b"._-".contains(&byte))
    };
    let id = id.filter(is_plain).ok_or_else(|| {
        let folder = setting.folder.display();
        Error::Invalid(format!("{folder} is no name for a record, which has small letters, digits, `.`, `_` and `-`"))
    })?;
    let mut notes = Vec::new();
    if cfg!(debug_assertions) {
        notes.push("This was not a release build: the figures mean nothing.".to_owned());
    }
    notes.extend(host::busy());
    Ok(Head {
        format: FORMAT,
        id: id.to_owned(),
        title: format!("The suite, {}", host::today()),
        began: host::now_in_utc(),
        kind: setting.scale,
        complete: false,
        machine: machine::look(&setting.scratch)?,
        commit: setting.commit.clone(),
        seed: None,
        stores: BTreeMap::new(),
        workloads: serde_json::Value::Array(Vec::new()),
        notes,
    })
}

/// A resumed run has to be the same run.
fn check_same(head: &Head, setting: &Setting, definitions: &[Definition]) -> Result<()> {
    let folder = setting.folder.display();
    if head.kind != setting.scale {
        return Err(Error::Invalid(format!(
            "{folder} is of the other scale: go on with it as it was begun (--quick or not)"
        )));
    }
    if head.commit != setting.commit {
        let began = head.commit.as_deref().unwrap_or("sources unknown");
        return Err(Error::Invalid(format!(
            "{folder} was begun with other sources ({began}): figures of two don't mix"
        )));
    }
    let wanted: Vec<String> = definitions.iter().map(|definition| definition.name.clone()).collect();
    let begun = head.workload_names();
    if begun != wanted {
        return Err(Error::Invalid(format!("{folder} is of the workloads {}: name the same", begun.join(" "))));
    }
    Ok(())
}
