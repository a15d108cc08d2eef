//! The paths whose responses begin latest, by the last requests of the sample.

use std::collections::HashMap;

use serde::Serialize;

use super::part::Part;

/// The last records of a worker that count. So nobody has to look at all of them, and what is over soon no longer counts.
const RECORDS_MAX: usize = 4096;

/// A path, and how late its responses begin.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct SlowPath {
    /// Host and path.
    pub(crate) path: String,
    pub(crate) site: String,
    /// The requests that were looked at.
    pub(crate) requests: u64,
    /// The seconds until the response began that half of them stay below, and 95 % of them.
    pub(crate) quantiles: [f64; 2],
}

/// The paths with the greatest times that 95 % of their requests stay below, the slowest first.
pub(crate) fn slowest<'a>(parts: impl IntoIterator<Item = &'a Part>, limit: usize) -> Vec<SlowPath> {
    let mut paths: HashMap<u64, (SlowPath, Vec<u32>)> = HashMap::new();
    for part in parts {
        let seen = part.lock();
        for record in seen.records.iter().rev().take(RECORDS_MAX) {
            let new = || {
                let path = seen.paths.get(&record.unit).map(ToString::to_string).unwrap_or_default();
                let site = seen.names.name(record.site).to_owned();
                (SlowPath { path, site, requests: 0, quantiles: [0.0; 2] }, Vec::new())
            };
            paths.entry(record.unit).or_insert_with(new).1.push(record.micros);
        }
    }
    let mut all: Vec<SlowPath> = paths.into_values().map(|(path, times)| measured(path, times)).collect();
    all.sort_by(|one, other| other.quantiles[1].total_cmp(&one.quantiles[1]).then_with(|| one.path.cmp(&other.path)));
    all.truncate(limit);
    all
}

fn measured(path: SlowPath, mut micros: Vec<u32>) -> SlowPath {
    micros.sort_unstable();
    let quantiles = [0.5, 0.95].map(|share: f64| {
        let rank = (share * micros.len() as f64).ceil() as usize;
        micros.get(rank.saturating_sub(1)).map_or(0.0, |micros| f64::from(*micros) / 1e6)
    });
    SlowPath { requests: micros.len() as u64, quantiles, ..path }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_times() {
        let path = || SlowPath { path: "a/b".to_owned(), site: "a".to_owned(), requests: 0, quantiles: [0.0; 2] };
        let found = measured(path(), (1..=100).rev().map(|millis| millis * 1000).collect());
        let millis = |path: SlowPath| path.quantiles.map(|seconds| (seconds * 1e3).round() as u64);
        assert_eq!(found.requests, 100);
        assert_eq!(millis(found), [50, 95]);
        assert_eq!(millis(measured(path(), vec![2_000_000])), [2_000, 2_000]);
    }
}
