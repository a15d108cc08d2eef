//! Which entries earn their stay: S3-FIFO (Yang et al., SOSP 2023) with thresholds that grow with size.

/// How many hits an entry needs to stay, by its size in units of the mean size: up to 1, 4, 16 means, and above.
const HITS_NEEDED: [(u64, u64); 3] = [(1, 1), (4, 2), (16, 3)];
const HITS_NEEDED_ABOVE: u64 = 5;

/// Whether an entry stays that was hit `frequency` times since it last survived.
pub(crate) fn is_hot(frequency: u64, bytes: u64, mean_bytes: u64) -> bool {
    let needed = HITS_NEEDED
        .iter()
        .find(|(means, _)| bytes <= mean_bytes.saturating_mul(*means))
        .map_or(HITS_NEEDED_ABOVE, |(_, hits)| *hits);
    frequency >= needed
}

/// The frequency of an entry after it has survived the hand in main.
pub(crate) fn after_survival(frequency: u64) -> u64 {
    frequency.saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn larger_entries_need_more_hits() {
        for (bytes, needed) in [(10, 1), (100, 1), (101, 2), (400, 2), (401, 3), (1600, 3), (1601, 5)] {
            assert!(is_hot(needed, bytes, 100) && !is_hot(needed - 1, bytes, 100), "{bytes}");
        }
    }

    #[test]
    fn every_hot_entry_goes_cold_without_hits() {
        let mut frequency = crate::format::slot::FREQUENCY_MAX;
        for _ in 0..crate::format::slot::FREQUENCY_MAX {
            frequency = after_survival(frequency);
        }
        assert!(!is_hot(frequency, 1, 1000));
    }
}
