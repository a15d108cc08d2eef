//! Estimates for the whole log from a sample, and their errors.

use eyewall::Stats;
use serde::Serialize;

use super::trace::Totals;

/// Keys fall into this many groups. Each group is a sample of its own; the spread of the groups gives the error of the
/// whole sample.
const GROUPS: usize = 32;

/// A number for each group of keys.
#[derive(Debug, Clone, Default)]
pub(crate) struct Groups([f64; GROUPS]);

impl Groups {
    /// Adds to the group of a key. The high bits of the hash decide on the sample, so the low ones are free.
    pub(crate) fn add(&mut self, hash: u64, number: u64) {
        self.0[hash as usize % GROUPS] += number as f64;
    }

    fn sum(&self) -> f64 {
        self.0.iter().sum()
    }
}

/// The result of replaying a sample through a volume.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    /// The size of the full volume, which the sampled volume represents.
    pub(crate) size_bytes: u64,
    pub(crate) sample_rate: f64,
    pub(crate) missed_requests: Groups,
    pub(crate) missed_bytes: Groups,
    /// Bytes of the entries at the end.
    pub(crate) held_bytes: Groups,
    /// Misses that could not be put.
    pub(crate) too_large: u64,
    pub(crate) index: Index,
}

/// The index of the volume at the end, and its cost. For a sample, this is the index of the smaller volume.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(crate) struct Index {
    /// The share of its slots that name an entry.
    #[serde(rename = "index_load_ratio")]
    pub(crate) load_ratio: f64,
    /// The share of all evictions that were for want of a slot.
    pub(crate) slot_evictions_ratio: f64,
    /// Steps that the index made towards its goal.
    #[serde(rename = "index_steps")]
    pub(crate) steps: u64,
}

impl Index {
    pub(crate) fn of(stats: &Stats) -> Self {
        let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        let evictions = stats.evictions_cold + stats.evictions_expired + stats.evictions_index;
        Self {
            load_ratio: share(stats.index_live, stats.index_slots),
            slot_evictions_ratio: share(stats.evictions_index, evictions),
            steps: stats.index_steps,
        }
    }
}

/// A share of the whole log, estimated from a sample.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Estimate {
    pub(crate) ratio: f64,
    /// The standard error of the sample of keys; 0 for the whole log.
    pub(crate) error: f64,
}

/// The results of a volume of one size.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Point {
    pub(crate) size_bytes: u64,
    /// The share of requests that hit.
    pub(crate) object_hits: Estimate,
    /// The share of bytes that were sent for hits.
    pub(crate) byte_hits: Estimate,
    /// Requests for objects that are larger than an entry may be. They miss.
    pub(crate) too_large_requests: u64,
    /// The share of keys that was replayed.
    pub(crate) sample_rate: f64,
    #[serde(flatten)]
    pub(crate) index: Index,
}

/// The curve through tallies of growing sizes.
pub(crate) fn points(tallies: &[Tally], totals: &Totals) -> Vec<Point> {
    let curve = |total: u64, missed: fn(&Tally) -> &Groups| {
        let ratios: Vec<f64> = tallies.iter().map(|tally| ratio(missed(tally), total, tally.sample_rate)).collect();
        let error = |at: usize| error(&tallies[at], missed(&tallies[at]), total, slope(tallies, &ratios, at));
        let errors: Vec<f64> = (0..ratios.len()).map(error).collect();
        let estimates = ratios.into_iter().zip(errors).map(|(ratio, error)| Estimate { ratio, error });
        estimates.collect::<Vec<_>>()
    };
    let objects = curve(totals.requests, |tally| &tally.missed_requests);
    let bytes = curve(totals.bytes, |tally| &tally.missed_bytes);
    let point = |((tally, object_hits), byte_hits): ((&Tally, _), _)| Point {
        size_bytes: tally.size_bytes,
        object_hits,
        byte_hits,
        too_large_requests: (tally.too_large as f64 / tally.sample_rate).round() as u64,
        sample_rate: tally.sample_rate,
        index: tally.index,
    };
    tallies.iter().zip(objects).zip(bytes).map(point).collect()
}

/// The hit ratio of the whole log from the misses of a sample.
///
/// It scales the misses up, and takes all other requests of the log as hits. A very popular key hardly ever misses, so it
/// matters little whether the sample has it; an estimate that scaled hits up would depend on that. (The authors of the
/// method call this correction `adj`.)
fn ratio(missed: &Groups, total: u64, rate: f64) -> f64 {
    if total == 0 { 0.0 } else { (1.0 - missed.sum() / (total as f64 * rate)).clamp(0.0, 1.0) }
}

/// How much the ratio grows when the size grows e-fold, from the neighbouring points.
fn slope(tallies: &[Tally], ratios: &[f64], at: usize) -> f64 {
    let (low, high) = (at.saturating_sub(1), (at + 1).min(ratios.len() - 1));
    let wide = (tallies[high].size_bytes as f64 / tallies[low].size_bytes as f64).ln();
    if wide > 0.0 { ((ratios[high] - ratios[low]) / wide).max(0.0) } else { 0.0 }
}

/// The standard error of a ratio. A sample differs from the whole in two ways. Its keys miss more or less often; and its
/// entries are larger or smaller, so that its volume holds fewer or more of them. The second difference affects all groups
/// alike, and doesn't show in the spread of their misses. So each group is also charged with the misses that its room
/// causes in other groups: the slope of the curve times its share of the volume.
fn error(tally: &Tally, missed: &Groups, total: u64, slope: f64) -> f64 {
    let (whole, groups) = (total as f64 * tally.sample_rate, GROUPS as f64);
    if total == 0 {
        return 0.0;
    }
    let per_byte = slope * whole / tally.held_bytes.sum().max(1.0);
    let parts: Vec<f64> =
        missed.0.iter().zip(tally.held_bytes.0).map(|(missed, held)| missed + per_byte * held).collect();
    let mean = parts.iter().sum::<f64>() / groups;
    let squares: f64 = parts.iter().map(|part| (part - mean).powi(2)).sum();
    (squares * groups / (groups - 1.0) * (1.0 - tally.sample_rate).max(0.0)).sqrt() / whole
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(size_bytes: u64, sample_rate: f64, misses: [f64; GROUPS]) -> Tally {
        let held_bytes = Groups([100.0; GROUPS]);
        Tally { size_bytes, sample_rate, missed_requests: Groups(misses), held_bytes, ..Tally::default() }
    }

    fn estimates(tallies: &[Tally], requests: u64) -> Vec<Estimate> {
        let totals = Totals { requests, ..Totals::default() };
        points(tallies, &totals).iter().map(|point| point.object_hits).collect()
    }

    #[test]
    fn the_whole_log_has_no_error_and_a_sample_has_the_error_of_its_groups() {
        let mut misses = [10.0; GROUPS];
        assert_eq!(estimates(&[tally(1, 1.0, misses)], 640), [Estimate { ratio: 0.5, error: 0.0 }]);
        assert_eq!(estimates(&[tally(1, 0.1, misses)], 6400), [Estimate { ratio: 0.5, error: 0.0 }], "all are alike");
        (misses[0], misses[1]) = (0.0, 20.0);
        let some = estimates(&[tally(1, 0.1, misses)], 6400)[0];
        // Two groups of 32 are off by 10: the variance of the sum is 200 * 32 / 31, less the tenth that was looked at.
        assert!((some.error - (200.0 * 32.0 / 31.0 * 0.9_f64).sqrt() / 640.0).abs() < 1e-12, "{some:?}");
        assert!(estimates(&[tally(1, 0.1, misses)], 100)[0].ratio <= 0.0, "more misses than can be");
        assert_eq!(estimates(&[tally(1, 0.1, misses)], 0), [Estimate { ratio: 0.0, error: 0.0 }]);
        assert_eq!(estimates(&[], 5), []);
    }

    #[test]
    fn the_sizes_of_entries_add_to_the_error_where_more_room_helps() {
        let mut uneven = tally(1, 0.1, [10.0; GROUPS]);
        (uneven.held_bytes.0[0], uneven.held_bytes.0[1]) = (0.0, 200.0);
        let flat = [uneven.clone(), tally(2, 0.1, [10.0; GROUPS])];
        assert!(estimates(&flat, 6400)[0].error <= 0.0);
        let steep = [uneven, tally(2, 0.1, [5.0; GROUPS])];
        // The hit ratio grows by a quarter in a doubling, and the room of the groups varies by 20,000 * 32 / 31.
        let expected = 0.25 / 2_f64.ln() * (20_000.0 * 32.0 / 31.0 * 0.9_f64).sqrt() / 3200.0;
        assert!((estimates(&steep, 6400)[0].error - expected).abs() < 1e-12);
    }
}
