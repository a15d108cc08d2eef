//! A workload as data: the content of `bench/workloads/NAME.toml` (bench/workloads/README.md).

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::size::Bytes;
use super::value::{Case, Value};
use crate::error::{Error, Result};
use crate::memory;
use crate::scratch::{Scratch, Storage};

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// The whole workload.
    Whole,
    /// A first look, too short to be quoted.
    Quick,
}

/// A value that is smaller in a quick run.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scaled<T> {
    whole: T,
    quick: T,
}

impl<T: Copy> Scaled<T> {
    /// The value for this run.
    pub fn at(&self, scale: Scale) -> T {
        match scale {
            Scale::Whole => self.whole,
            Scale::Quick => self.quick,
        }
    }
}

/// A parameter, whose values make cases.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// A text for people.
    pub title: String,
    /// The unit of numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// In the order in which they are shown and measured.
    pub values: Vec<Value>,
    /// The values of a quick run, which are fewer.
    #[serde(default, skip_serializing)]
    quick: Option<Vec<Value>>,
}

/// A measure. The explorer uses the other fields (bench/RECORD.md).
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Measure {
    /// The unit of all of its samples.
    pub unit: String,
    /// `higher` or `lower`; none if neither is better.
    #[serde(default)]
    pub better: Option<String>,
    #[serde(flatten)]
    rest: serde_json::Map<String, serde_json::Value>,
}

/// The bar of a comparison, for its median.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bar {
    /// This value and higher ones meet it.
    AtLeast(f64),
    /// This value and lower ones meet it.
    AtMost(f64),
}

/// A comparison (bench/RECORD.md).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Comparison {
    /// The measure.
    pub measure: String,
    /// The whole case.
    pub case: Case,
    /// A store.
    pub of: String,
    /// The stores to compare with.
    pub to: Vec<String>,
    /// The case of the other side, if it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_case: Option<Case>,
    /// `ratio`, `difference` or `value`.
    pub how: String,
    /// A text for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
    /// The bar.
    #[serde(default)]
    pub bar: Option<Bar>,
    /// The aim.
    #[serde(default)]
    pub aim: Option<f64>,
    /// Whether to test also if they differ at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<bool>,
    /// A caution for readers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The program that orders the turns of the stores.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Turns {
    /// The suite: it requests one repetition of one store at a time from a driver.
    #[default]
    Suite,
    /// The driver: the suite requests all at once.
    Driver,
}

/// The space for a run, for all of its stores together. If the machine has less, the suite skips the workload.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Needs {
    /// Main memory, shared memory included.
    memory: Option<Scaled<Bytes>>,
    /// Space on the disk.
    disk: Option<Scaled<Bytes>>,
    /// Shared memory.
    shm: Option<Scaled<Bytes>>,
}

impl Needs {
    /// What this machine lacks, for people; `None` if it has all.
    pub fn lacking(&self, scale: Scale, scratch: &Scratch) -> Result<Option<String>> {
        let disk = scratch.free_bytes(Storage::Disk)?;
        let shm = scratch.free_bytes(Storage::Shm)?;
        // If the kernel can't tell, this assumes that there is enough.
        let memory = memory::available().unwrap_or(u64::MAX);
        let wanted = [
            (self.memory, memory, "memory is available"),
            (self.disk, disk, "the disk directory is free; --disk-dir names another"),
            (self.shm, shm, "the shared-memory directory is free; --shm-dir names another"),
        ];
        let lacking = wanted.into_iter().find_map(|(wanted, there, place)| {
            let Bytes(wanted) = wanted?.at(scale);
            let mib = |bytes: u64| bytes >> 20;
            (wanted > there).then(|| format!("it needs {} MB, and {} MB of {place}", mib(wanted), mib(there)))
        });
        Ok(lacking)
    }
}

/// The content of a definition's file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// The file's name.
    #[serde(skip)]
    pub name: String,
    /// A text for people.
    pub title: String,
    /// The description of the work, the warm-up included.
    pub about: String,
    /// Its place in a record.
    pub order: u32,
    /// The name of its group, which chooses all of its workloads.
    #[serde(default)]
    pub group: String,
    /// The procedure.
    pub procedure: String,
    /// The command lines of drivers: other programs, which do the same work on stores of their own.
    #[serde(default)]
    pub drivers: Vec<Vec<String>>,
    /// The program that interleaves the stores.
    #[serde(default)]
    pub turns: Turns,
    /// If the driver interleaves: the suite makes a request for each combination of these parameters. The driver goes
    /// through the others.
    #[serde(default)]
    pub cells: Vec<String>,
    /// The seed of keys, sizes and orders.
    pub seed: u64,
    /// The number of repetitions.
    pub repetitions: Scaled<usize>,
    /// The minutes on two cores, without builds. The display of the time left uses them.
    pub minutes: Scaled<f64>,
    /// The stores that take part, in the order of their turns.
    pub stores: Vec<String>,
    /// The space for a run.
    #[serde(default)]
    pub needs: Needs,
    /// The settings of the procedure.
    #[serde(default)]
    settings: toml::Table,
    /// The parameters, which make the cases.
    #[serde(default)]
    pub parameters: IndexMap<String, Parameter>,
    /// The measures.
    pub measures: IndexMap<String, Measure>,
    /// The views of the explorer.
    views: Vec<serde_json::Value>,
    /// The comparisons.
    #[serde(default)]
    pub comparisons: Vec<Comparison>,
    /// The case to show first.
    #[serde(default)]
    pub first: Case,
    /// Traces that the user gave, by their names, which are values of `trace`.
    #[serde(skip)]
    given_traces: IndexMap<String, PathBuf>,
}

impl Definition {
    /// Reads a definition for a run of this scale. Parameters and settings get the values of the scale.
    pub fn read(path: &Path, scale: Scale) -> Result<Self> {
        let text = fs::read_to_string(path).map_err(Error::path("read", path))?;
        let wrong = |what: String| Error::Definition { path: path.to_owned(), what };
        let mut definition: Self = toml::from_str(&text).map_err(|failure| wrong(failure.to_string()))?;
        let name = path.file_stem().and_then(|stem| stem.to_str());
        name.ok_or_else(|| wrong("its name is no text".to_owned()))?.clone_into(&mut definition.name);
        // Checks before it leaves out some values: a mistake in a value is an error even if a quick run has no case for
        // the value.
        definition.check().map_err(wrong)?;
        definition.settle(scale);
        Ok(definition)
    }

    /// The settings, in the procedure's type.
    pub fn settings<T: DeserializeOwned>(&self) -> Result<T> {
        let table = toml::Value::Table(self.settings.clone());
        table.try_into().map_err(|failure| Error::Invalid(format!("{}: settings: {failure}", self.name)))
    }

    /// The settings in the form of the file, with the values for this run.
    pub fn raw_settings(&self) -> &toml::Table {
        &self.settings
    }

    /// The values of a parameter; none if there is no such parameter.
    pub fn values(&self, name: &str) -> &[Value] {
        self.parameters.get(name).map_or(&[], |parameter| &parameter.values)
    }

    /// If the workload replays traces, it replays these, too. Each is a value of the parameter `trace`, with the name
    /// of its file.
    pub fn give_traces(&mut self, paths: &[PathBuf]) -> Result<()> {
        let Some(parameter) = self.parameters.get_mut("trace").filter(|_| self.procedure == "replay") else {
            return Ok(());
        };
        for path in paths {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let value = Value::Text(name.clone());
            if !path.is_file() || parameter.values.contains(&value) {
                let what = "is no file, or there is a trace of that name already; give it another name";
                return Err(Error::Invalid(format!("the trace {} {what}", path.display())));
            }
            parameter.values.push(value);
            self.given_traces.insert(name, path.clone());
        }
        Ok(())
    }

    /// The traces that the user gave.
    pub fn given_traces(&self) -> &IndexMap<String, PathBuf> {
        &self.given_traces
    }

    /// The definition in the form of a record. It leaves out the stores of a comparison for which `is_measured` knows
    /// no figure. If no store is left to compare, it leaves out the comparison.
    pub fn recorded(&self, scale: Scale, is_measured: impl Fn(&str, &str, &Case) -> bool) -> Recorded<'_> {
        let among_measured = |comparison: &Comparison| {
            let Comparison { measure, case, of, to, to_case, .. } = comparison;
            let other = to_case.as_ref().unwrap_or(case);
            let left: Vec<String> = to.iter().filter(|store| is_measured(store, measure, other)).cloned().collect();
            let is_left = is_measured(of, measure, case) && (to.is_empty() || !left.is_empty());
            is_left.then(|| Comparison { to: left, ..comparison.clone() })
        };
        Recorded {
            name: &self.name,
            title: &self.title,
            about: &self.about,
            seed: self.seed,
            repetitions: self.repetitions.at(scale),
            parameters: &self.parameters,
            measures: &self.measures,
            settings: &self.settings,
            views: &self.views,
            comparisons: self.comparisons.iter().filter_map(among_measured).collect(),
            first: &self.first,
            skipped: None,
        }
    }

    fn settle(&mut self, scale: Scale) {
        settle_table(&mut self.settings, scale);
        if scale == Scale::Whole {
            return;
        }
        for parameter in self.parameters.values_mut() {
            if let Some(quick) = parameter.quick.take() {
                parameter.values = quick;
            }
        }
        let parameters = &self.parameters;
        let is_there =
            |name: &str, value: &Value| parameters.get(name).is_some_and(|known| known.values.contains(value));
        let is_case = |case: &Case| case.iter().all(|(name, value)| is_there(name, value));
        self.comparisons
            .retain(|comparison| is_case(&comparison.case) && comparison.to_case.as_ref().is_none_or(is_case));
        let gone: Vec<String> =
            self.first.iter().filter(|(name, value)| !is_there(name, value)).map(|(name, _)| name.to_owned()).collect();
        let gone: Vec<&str> = gone.iter().map(String::as_str).collect();
        self.first = std::mem::take(&mut self.first).without(&gone);
    }

    /// Checks that a record's own check doesn't make, or makes too late.
    fn check(&self) -> std::result::Result<(), String> {
        for comparison in &self.comparisons {
            if !self.measures.contains_key(&comparison.measure) {
                return Err(format!("a comparison is of {}, which is no measure", comparison.measure));
            }
            for store in comparison.to.iter().chain([&comparison.of]) {
                if !self.stores.contains(store) {
                    return Err(format!("a comparison names {store}, which is none of its stores"));
                }
            }
            for (name, value) in comparison.case.iter().chain(comparison.to_case.iter().flat_map(Case::iter)) {
                if !self.values(name).contains(value) {
                    return Err(format!("a comparison's case has {name} {value}, which no parameter says"));
                }
            }
        }
        if let Some(name) = self.cells.iter().find(|name| !self.parameters.contains_key(*name)) {
            return Err(format!("cells names {name}, which is no parameter"));
        }
        if !self.cells.is_empty() && self.turns == Turns::Suite {
            return Err("cells is for workloads whose driver lets the stores take their turns".to_owned());
        }
        if self.turns == Turns::Driver && self.drivers.len() != 1 {
            return Err("where the driver lets the stores take their turns, there is one driver".to_owned());
        }
        Ok(())
    }
}

impl Recorded<'_> {
    /// The comparisons of a definition that are missing in the record, or lack a store, for people.
    pub fn left_out<'a>(&'a self, definition: &'a Definition) -> impl Iterator<Item = String> + 'a {
        let lacks = |comparison: &&Comparison| !self.comparisons.contains(comparison);
        definition.comparisons.iter().filter(lacks).map(|comparison| {
            let Comparison { measure, case, of, to, .. } = comparison;
            let against = if to.is_empty() { String::new() } else { format!(" against {}", to.join(", ")) };
            format!("{}: not all was measured of the comparison of {measure} of {of}{against} ({case})", self.name)
        })
    }
}

/// A workload in record.json.
#[derive(Debug, Serialize)]
pub struct Recorded<'a> {
    name: &'a str,
    title: &'a str,
    about: &'a str,
    seed: u64,
    repetitions: usize,
    parameters: &'a IndexMap<String, Parameter>,
    measures: &'a IndexMap<String, Measure>,
    settings: &'a toml::Table,
    views: &'a [serde_json::Value],
    comparisons: Vec<Comparison>,
    first: &'a Case,
    /// Why it did not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
}

/// Replaces each table that has only `whole` and `quick` by the value for this scale.
fn settle_table(table: &mut toml::Table, scale: Scale) {
    for (_, value) in table.iter_mut() {
        let toml::Value::Table(inner) = value else { continue };
        if inner.len() == 2 && inner.contains_key("whole") && inner.contains_key("quick") {
            let name = if scale == Scale::Quick { "quick" } else { "whole" };
            if let Some(chosen) = inner.remove(name) {
                *value = chosen;
            }
        } else {
            settle_table(inner, scale);
        }
    }
}

/// The definitions in a directory, in their order: those whose name or group is given, or all.
pub fn read_all(directory: &Path, names: &[String], scale: Scale) -> Result<Vec<Definition>> {
    let entries = fs::read_dir(directory).map_err(Error::path("list", directory))?;
    let mut definitions = Vec::new();
    for entry in entries {
        let path = entry.map_err(Error::path("list", directory))?.path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            definitions.push(Definition::read(&path, scale)?);
        }
    }
    definitions.sort_by(|a, b| (a.order, &a.name).cmp(&(b.order, &b.name)));
    let is_meant = |definition: &Definition, name: &String| [&definition.name, &definition.group].contains(&name);
    for name in names {
        if !definitions.iter().any(|definition| is_meant(definition, name)) {
            let known: Vec<&str> = definitions.iter().map(|definition| definition.name.as_str()).collect();
            let groups: BTreeSet<&str> = definitions.iter().map(|definition| definition.group.as_str()).collect();
            let groups: Vec<&str> = groups.into_iter().filter(|group| !group.is_empty()).collect();
            let (known, groups) = (known.join(", "), groups.join(", "));
            return Err(Error::Invalid(format!(
                "there is no workload {name}; there are {known}, and the groups {groups}"
            )));
        }
    }
    definitions.retain(|definition| names.is_empty() || names.iter().any(|name| is_meant(definition, name)));
    Ok(definitions)
}
