//! The sizes to try, the sampling rate of each, and the recommended size.

use super::trace::Trace;

/// The smallest volume.
pub(crate) const SIZE_MIN: u64 = 512 << 10;
/// The largest entry that `eyewall create` allows by default is a sixteenth of the volume, at most this.
const ENTRY_MAX: u64 = 4 << 20;
/// In smaller volumes the tables take more than their share.
const SCALED_MIN: u64 = 4 << 20;
/// Two volumes of up to this size are in memory at the same time.
const SCALED_MAX: u64 = 256 << 20;
/// The wanted number of requests for a size; there are more if the sampled volume would be too small otherwise.
const VISITS: f64 = 1e6;
/// The smallest default size is this part of what all entries take.
const SMALLEST_PART: u64 = 128;
const DEFAULT_SIZES_MAX: usize = 64;

/// The largest entry of a volume of this size, as `eyewall create` makes it.
pub(crate) fn entry_bytes_max(size: u64) -> u64 {
    (size / 16).min(ENTRY_MAX)
}

/// Powers of two, and the sizes half-way between, from a small part of the log's footprint to where all of it fits.
pub(crate) fn defaults(trace: &Trace) -> Vec<u64> {
    let footprint = trace.footprint_bytes();
    let least = SIZE_MIN.max((SCALED_MIN as f64 / trace.rate) as u64 * u64::from(trace.rate < 1.0));
    let mut size = (footprint / SMALLEST_PART).next_power_of_two().max(least.next_power_of_two());
    let mut sizes = vec![size];
    // Index and tables need an eighth more than the entries.
    while size < footprint.saturating_add(footprint / 8) && sizes.len() < DEFAULT_SIZES_MAX {
        sizes.extend([size / 2 * 3, size * 2]);
        size *= 2;
    }
    sizes
}

/// The share of the keys for a volume of `size`. It is as small as the wanted number of requests allows, but large enough
/// for the sampled volume to behave like the full one, and to hold every entry that the full one would.
pub(crate) fn rate(trace: &Trace, size: u64) -> f64 {
    if trace.is_exact {
        return trace.rate;
    }
    let largest = trace.keys.iter().map(super::trace::Key::entry_bytes).max().unwrap_or(0);
    let least = SCALED_MIN.max(4 * largest.min(entry_bytes_max(size)));
    let rate = (VISITS / trace.totals.requests.max(1) as f64).max(least as f64 / size as f64);
    rate.min(SCALED_MAX as f64 / size as f64).min(trace.rate)
}

/// The size of the sampled volume for `size`, or `None` if the sample is too small for that.
pub(crate) fn scaled(size: u64, rate: f64) -> Option<u64> {
    let scaled = (size as f64 * rate).round() as u64;
    // The engine refuses a size that is too small at any rate.
    (scaled >= SIZE_MIN || rate >= 1.0).then_some(scaled)
}

/// The knee: the smallest size from which no doubling gains a percentage point. `hit_ratios` are of growing sizes. Between
/// them, the ratio is taken to grow with the logarithm of the size, and beyond the last not at all.
pub(crate) fn knee(hit_ratios: &[(u64, f64)]) -> Option<u64> {
    const POINT: f64 = 0.01;
    let buys = |(size, ratio): &(u64, f64)| at(hit_ratios, size.saturating_mul(2)) - ratio >= POINT;
    let beyond = hit_ratios.iter().rposition(buys).map_or(0, |last| last + 1);
    hit_ratios.get(beyond).map(|(size, _)| *size)
}

/// The ratio at any size.
fn at(hit_ratios: &[(u64, f64)], size: u64) -> f64 {
    let above = hit_ratios.partition_point(|(known, _)| *known < size);
    match (above.checked_sub(1).and_then(|below| hit_ratios.get(below)), hit_ratios.get(above)) {
        (Some((small, low)), Some((large, high))) => {
            let way = (size as f64 / *small as f64).ln() / (*large as f64 / *small as f64).ln();
            low + (high - low) * way
        }
        (Some((_, only)), None) | (None, Some((_, only))) => *only,
        (None, None) => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::trace::Collector;
    use super::*;

    fn trace(keys: u64, bytes: u64) -> Trace {
        let mut collector = Collector::new(false);
        for key in 0..keys {
            collector.add(&key.to_le_bytes(), bytes);
        }
        collector.finish()
    }

    #[test]
    fn the_defaults_reach_from_a_part_of_the_footprint_to_more_than_all_of_it() {
        let sizes = defaults(&trace(10_000, 10_000));
        assert!(sizes.is_sorted(), "{sizes:?}");
        assert_eq!((sizes[0], sizes[1], sizes[2]), (1 << 20, 3 << 19, 2 << 20));
        assert_eq!(sizes.last(), Some(&(128 << 20)));
        assert_eq!(defaults(&trace(1, 1)), [SIZE_MIN], "the smallest volume holds all of it");
    }

    #[test]
    fn a_sample_is_no_smaller_than_a_volume_of_its_entries_needs() {
        let small = trace(1000, 100);
        assert!((rate(&small, 1 << 20) - 1.0).abs() < 1e-9);
        assert!((rate(&small, 512 << 20) - 0.5).abs() < 1e-9, "two volumes have to fit into memory");
        let mut many = trace(1000, 100);
        many.totals.requests = 10_000_000;
        assert!((rate(&many, 16 << 20) - 0.25).abs() < 1e-9);
        assert!((rate(&many, 256 << 20) - 0.1).abs() < 1e-9);
        let mut large = trace(1, 100 << 20);
        large.totals.requests = 10_000_000;
        assert!((rate(&large, 64 << 20) - 0.25).abs() < 1e-9, "an entry of 4 MiB is a quarter of the volume");
        assert_eq!(scaled(64 << 20, 0.001), None);
    }

    #[test]
    fn the_knee_is_after_the_last_doubling_that_gains_a_point() {
        let curve = [(1, 0.1), (2, 0.3), (4, 0.305), (8, 0.309), (16, 0.6), (32, 0.7), (64, 0.705), (128, 0.706)];
        assert_eq!(knee(&curve), Some(32), "a plateau before a step is no knee");
        assert_eq!(knee(&[(1, 0.5), (2, 0.501)]), Some(1));
        assert_eq!(knee(&[(1, 0.1), (4, 0.5)]), Some(4));
        assert_eq!(knee(&[]), None);
    }
}
