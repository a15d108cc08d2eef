//! Caches that are larger than the memory, each in a process and a control group of its own.

mod group;
mod process;

pub(super) use process::Task;

use std::path::PathBuf;

use serde::Deserialize;
use tempfile::TempDir;

use self::group::Group;
use self::process::Kind;
use super::Procedure;
use crate::child::Worker;
use crate::error::{Error, Result};
use crate::machine;
use crate::peer::Peer;
use crate::scratch::Storage;
use crate::stores::{EYEWALL, EYEWALL_TIER, FILES};
use crate::suite::cell::Cell;
use crate::suite::definition::Definition;
use crate::suite::named::Named;
use crate::suite::size::Bytes;
use crate::suite::value::Case;

/// The name of a group that only tests whether groups can be made.
const PROBE_BYTES: u64 = 64 << 20;

/// `cap` is a multiple of the memory. The procedure goes through it with all processes running.
pub(super) struct Oversized;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// Memory of each group.
    memory: Bytes,
    /// The size of a tier, in percent of the memory.
    tier_percent: u64,
    /// Objects for each MB of the memory. On average they have about 10 KB.
    objects_a_mb: u64,
    threads: u64,
    /// The longest time to fill a store, and the length of its turn.
    fill_seconds: f64,
    seconds: f64,
}

impl Procedure for Oversized {
    fn within(&self) -> &'static [&'static str] {
        &["cap"]
    }

    fn skip(&self, _definition: &Definition) -> Option<String> {
        Group::create("probe", PROBE_BYTES).err()
    }

    fn measure(&self, cell: &mut Cell<'_>) -> Result<()> {
        let settings: Settings = cell.settings()?;
        if let Some(kib) = machine::read_ahead_kib(cell.scratch().directory(Storage::Disk)) {
            cell.note(format!(
                "the kernel reads {kib} KiB ahead from this disk, for maps that ask for nothing else, too"
            ));
        }
        let mut started = Vec::new();
        for case in cell.cases(self.within()) {
            for peer in cell.peers() {
                cell.show(&format!("{} is filled, cap {} x", peer.name, case.number("cap")?));
                let begun = Started::new(cell, &settings, &case, peer, started.len());
                started.extend(cell.attempt(peer.name, begun)?);
            }
        }
        cell.show("turns");
        cell.turns(&mut started, |cell, started, repetition| {
            cell.scratch().settle(Storage::Disk)?;
            let mut worker = started.worker.borrow_mut();
            worker.go()?;
            // In the order in which the process reports them.
            let [operations, took_ns, gets, hits, p99_ns, read_bytes] =
                worker.numbers()?.map(|number: u64| number as f64);
            let seconds = took_ns.max(1.0) / 1e9;
            let (case, name) = (&started.case, started.name);
            cell.sample(case, name, "operations", repetition, operations / seconds)?;
            cell.sample(case, name, "hits", repetition, 100.0 * hits / gets.max(1.0))?;
            cell.sample(case, name, "hit_p99", repetition, p99_ns / 1e9)?;
            cell.sample(case, name, "read", repetition, read_bytes / seconds)
        })
    }
}

/// A process at work. The order of the fields matters: the process has to be dropped before its group.
struct Started {
    worker: std::cell::RefCell<Worker>,
    name: &'static str,
    case: Case,
    _group: Group,
    _directory: Option<TempDir>,
    /// The directory of its tier's file. Dropping the worker kills the process, which leaves this file behind.
    _tier_directory: TempDir,
}

impl Started {
    /// Starts a process, and waits until its store is filled.
    fn new(cell: &Cell<'_>, settings: &Settings, case: &Case, peer: &Peer, number: usize) -> Result<Self> {
        cell.breathe()?;
        let kind = kind_of(peer)?;
        let scratch = cell.scratch();
        let (path, directory): (PathBuf, _) = if kind == Kind::Files {
            (scratch.make_until_end(Storage::Disk)?, None)
        } else {
            let directory = scratch.make(Storage::Disk)?;
            (directory.path().to_owned(), Some(directory))
        };
        let tier_directory = scratch.make(Storage::Shm)?;
        let group = Group::create(&number.to_string(), settings.memory.0).map_err(Error::Invalid)?;
        let milliseconds = |seconds: f64| (seconds * 1e3) as u64;
        let mut worker = Task {
            group: group.path().to_owned(),
            directory: path,
            tier_directory: tier_directory.path().to_owned(),
            kind,
            cap_bytes: (settings.memory.0 as f64 * case.number("cap")?) as u64,
            tier_bytes: settings.memory.0 * settings.tier_percent / 100,
            objects: (settings.memory.0 >> 20) * settings.objects_a_mb,
            threads: settings.threads,
            fill_ms_max: milliseconds(settings.fill_seconds),
            duration_ms: milliseconds(settings.seconds),
            seed: cell.seed(),
        }
        .start()?;
        worker.line()?;
        Ok(Self {
            worker: worker.into(),
            name: peer.name,
            case: case.clone(),
            _group: group,
            _directory: directory,
            _tier_directory: tier_directory,
        })
    }
}

impl Named for Started {
    fn name(&self) -> &str {
        self.name
    }
}

fn kind_of(peer: &Peer) -> Result<Kind> {
    let kinds = [(EYEWALL, Kind::Eyewall), (EYEWALL_TIER, Kind::Tiered), (FILES, Kind::Files)];
    let found = kinds.iter().find(|(known, _)| known.name == peer.name);
    found.map(|(_, kind)| *kind).ok_or_else(|| Error::Invalid(format!("{} has no process of its own here", peer.name)))
}
