//! The changes between two records that exceed their noise.

use std::fmt::Write as _;
use std::path::Path;

use indexmap::IndexMap;

use super::figure::figure;
use super::recorder::{self, Head, Sample};
use crate::error::Result;
use crate::spread::Spread;

/// The series of some samples, for people, in the order of the first samples.
type Series = IndexMap<(String, String, String, String), Vec<f64>>;

/// A series that both records have.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Workload, case, measure and store.
    pub what: String,
    /// The unit of both.
    pub unit: String,
    /// The figures in the old record.
    pub old: Spread,
    /// The figures in the new record.
    pub new: Spread,
    /// Whether the change is better; `None` if the measure has no better direction.
    pub is_better: Option<bool>,
}

/// The comparison of two records.
#[derive(Debug, Clone, Default)]
pub struct Compared {
    /// Changes beyond noise, by workload.
    pub changes: Vec<Change>,
    /// Series in both.
    pub common: usize,
    /// Series in one of them only.
    pub unmatched: usize,
    /// Reasons to be careful with conclusions.
    pub warnings: Vec<String>,
}

/// Compares the series that two records have in common. A change counts as beyond noise if the ranges of their
/// repetitions don't overlap, and the medians differ by at least `percent_min`. If both records have 5 repetitions from
/// one distribution, the ranges are apart in 0.8 % of cases; for 3 repetitions, in 10 % (rank sum test, two-sided).
pub fn compare(old: &Path, new: &Path, percent_min: f64) -> Result<Compared> {
    let (old_head, old_series) = read(old)?;
    let (new_head, new_series) = read(new)?;
    let mut compared = Compared { warnings: warnings(&old_head, &new_head), ..Compared::default() };
    for (key, samples) in &new_series {
        let Some(before) = old_series.get(key) else {
            compared.unmatched += 1;
            continue;
        };
        compared.common += 1;
        let (old, new) = (Spread::of(before), Spread::of(samples));
        // The noise of a single repetition is unknown.
        let are_apart = before.len().min(samples.len()) > 1 && (old.max < new.min || new.max < old.min);
        let percent = 100.0 * (new.median / old.median - 1.0).abs();
        if !are_apart || percent < percent_min {
            continue;
        }
        let (workload, case, measure, store) = key;
        let (unit, better) = of_measure(&new_head, workload, measure);
        let is_better = better.map(|better| (better == "higher") == (new.median > old.median));
        let case = if case.is_empty() { String::new() } else { format!(", {case}") };
        let what = format!("{workload}{case}: {measure} of {store}");
        compared.changes.push(Change { what, unit, old, new, is_better });
    }
    compared.unmatched += old_series.keys().filter(|key| !new_series.contains_key(*key)).count();
    Ok(compared)
}

impl Compared {
    /// The comparison as text, with a line for each change.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for warning in &self.warnings {
            let _ = writeln!(text, "note: {warning}");
        }
        for change in &self.changes {
            let word = match change.is_better {
                Some(true) => "better",
                Some(false) => "worse",
                None => "other",
            };
            let percent = 100.0 * (change.new.median / change.old.median - 1.0);
            let spread = |spread: &Spread| {
                format!("{} ({} to {})", figure(spread.median), figure(spread.min), figure(spread.max))
            };
            let Change { what, unit, old, new, .. } = change;
            let _ = writeln!(text, "{word:<6} {percent:+7.1} %  {what}: {} -> {} {unit}", spread(old), spread(new));
        }
        let count = |is: Option<bool>| self.changes.iter().filter(|change| change.is_better == is).count();
        let _ = writeln!(
            text,
            "{} of {} figures changed beyond noise: {} better, {} worse; {} are in one of the records only",
            self.changes.len(),
            self.common,
            count(Some(true)),
            count(Some(false)),
            self.unmatched
        );
        text
    }
}

/// The head of a record, and the figures of each series, one for each repetition.
fn read(folder: &Path) -> Result<(Head, Series)> {
    let head = recorder::read_head(folder)?;
    let samples: Vec<Sample> = recorder::read_lines(&folder.join("samples.jsonl"))?;
    // If a repetition has several samples, its figure is their median.
    let mut repetitions: IndexMap<_, IndexMap<usize, Vec<f64>>> = IndexMap::new();
    for sample in samples {
        let key = (sample.workload, sample.case.to_string(), sample.measure, sample.store);
        repetitions.entry(key).or_default().entry(sample.repetition).or_default().push(sample.value);
    }
    let median = |figures: Vec<f64>| Spread::of(&figures).median;
    let series = repetitions.into_iter().map(|(key, of)| (key, of.into_values().map(median).collect()));
    Ok((head, series.collect()))
}

fn warnings(old: &Head, new: &Head) -> Vec<String> {
    let mut warnings = Vec::new();
    let name = |head: &Head| head.machine["name"].as_str().unwrap_or("an unnamed machine").to_owned();
    if name(old) != name(new) {
        warnings.push(format!("the machines differ ({}, {}): compare ratios, not figures", name(old), name(new)));
    }
    if old.kind != new.kind {
        warnings.push("one of them is a quick run, which is too short to be quoted".to_owned());
    }
    for name in new.workload_names() {
        // The words of a definition may differ, but not the work.
        let done = |head: &Head| {
            let workload =
                head.workloads.as_array()?.iter().find(|workload| workload["name"] == name.as_str())?.clone();
            Some((workload["seed"].clone(), workload["settings"].clone()))
        };
        if done(old).is_some_and(|before| Some(before) != done(new)) {
            warnings.push(format!("the settings of {name} differ: its figures are of different work"));
        }
    }
    for head in [old, new] {
        if !head.complete {
            warnings.push(format!("{} is not complete", head.id));
        }
    }
    warnings
}

/// The unit of a measure, and its better direction.
fn of_measure(head: &Head, workload: &str, measure: &str) -> (String, Option<String>) {
    let workloads = head.workloads.as_array().into_iter().flatten();
    let found = workloads.filter(|one| one["name"] == workload).map(|one| &one["measures"][measure]).next();
    let text = |field: &str| found.and_then(|found| found[field].as_str()).map(ToOwned::to_owned);
    (text("unit").unwrap_or_default(), text("better"))
}
