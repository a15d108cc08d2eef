//! The sample of all workers at one time.

use std::collections::HashMap;

use super::names::Names;
use super::part::Part;
use super::record::Record;

/// The sample of all workers.
pub(crate) struct Snapshot {
    /// In the order of time.
    pub(crate) records: Vec<Record>,
    /// The share of the paths that it has.
    pub(crate) rate: f64,
    /// The requests of the same time, sampled or not.
    pub(crate) requests: u64,
    /// The time from the first record to the last one.
    pub(crate) seconds: f64,
    paths: HashMap<u64, Box<str>>,
    names: Names,
}

impl Snapshot {
    /// The sample that these parts have together: at the lowest of their limits, since all of them have everything.
    pub(crate) fn of<'a>(parts: impl IntoIterator<Item = &'a Part>) -> Self {
        let parts: Vec<&Part> = parts.into_iter().collect();
        let limit = parts.iter().map(|part| part.limit()).min().unwrap_or(u64::MAX);
        let (mut records, mut paths, mut names) = (Vec::new(), HashMap::new(), Names::default());
        let (mut requests, mut begun) = (0, 0);
        for part in &parts {
            let seen = part.lock();
            requests += u64::from(part.requests().wrapping_sub(seen.sequence));
            if seen.has_forgotten {
                begun = begun.max(seen.records.first().map_or(0, |record| record.at_ms));
            }
            let mut renamed = |number: u8| names.number(seen.names.name(number));
            for record in seen.records.iter().filter(|record| record.unit <= limit) {
                let [site, reason, vary] = [record.site, record.reason, record.vary].map(&mut renamed);
                records.push(Record { site, reason, vary, ..*record });
            }
            let of_sample = seen.paths.iter().filter(|(unit, _)| **unit <= limit);
            paths.extend(of_sample.map(|(unit, path)| (*unit, path.clone())));
        }
        let all = records.len().max(1);
        records.retain(|record| record.at_ms >= begun);
        // The parts that remember more than others.
        let requests = (requests as f64 * records.len() as f64 / all as f64).round() as u64;
        records.sort_by_key(|record| record.at_ms);
        let ends = records.first().zip(records.last());
        let seconds = ends.map_or(0.0, |(first, last)| (last.at_ms - first.at_ms) as f64 / 1e3);
        Self { records, rate: (limit as f64 + 1.0) / 2_f64.powi(64), requests, seconds, paths, names }
    }

    /// Host and path of a hash.
    pub(crate) fn path(&self, unit: u64) -> &str {
        self.paths.get(&unit).map_or("", |path| path)
    }

    pub(crate) fn name(&self, number: u8) -> &str {
        self.names.name(number)
    }
}
