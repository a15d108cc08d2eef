//! The paths of the sample that stand out.

use std::collections::HashMap;

use super::report::PathShare;
use crate::serve::sample::{Record, Snapshot};

/// The most paths of each kind.
const PATHS_MAX: usize = 10;

/// What the sample has of a path.
#[derive(Default)]
struct Sums {
    requests: u64,
    misses: u64,
    micros: u64,
    site: u8,
}

/// The paths with most requests, and those whose responses began latest on average.
pub(super) fn outstanding(snapshot: &Snapshot) -> [Vec<PathShare>; 2] {
    let mut sums: HashMap<u64, Sums> = HashMap::new();
    for record in &snapshot.records {
        let Record { unit, site, micros, .. } = *record;
        let sum = sums.entry(unit).or_default();
        sum.requests += 1;
        sum.misses += u64::from(!record.is_hit());
        (sum.micros, sum.site) = (sum.micros + u64::from(micros), site);
    }
    let mut paths: Vec<(u64, Sums)> = sums.into_iter().collect();
    paths.sort_unstable_by_key(|(unit, sum)| (std::cmp::Reverse(sum.requests), *unit));
    let hottest = shown(snapshot, &paths);
    paths.sort_unstable_by_key(|(unit, sum)| (std::cmp::Reverse(sum.micros / sum.requests.max(1)), *unit));
    [hottest, shown(snapshot, &paths)]
}

fn shown(snapshot: &Snapshot, paths: &[(u64, Sums)]) -> Vec<PathShare> {
    let shares = paths.iter().take(PATHS_MAX).map(|(unit, sum)| PathShare {
        path: snapshot.path(*unit).to_owned(),
        site: snapshot.name(sum.site).to_owned(),
        requests: sum.requests,
        request_ratio: sum.requests as f64 / snapshot.requests.max(1) as f64,
        hit_ratio: 1.0 - sum.misses as f64 / sum.requests.max(1) as f64,
        first_byte_us: sum.micros / sum.requests.max(1),
    });
    shares.collect()
}
