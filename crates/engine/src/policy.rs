//! Which entries earn their stay: S3-FIFO (Yang et al., SOSP 2023) with thresholds that grow with size.

/// How many hits an entry needs to stay, by its size in units of the mean size: up to 1, 4, 16 means, and above.
const HITS_NEEDED: [(u64, u64); 3] = [(1, 1), (4, 2), (16, 3)];
const HITS_NEEDED_ABOVE: u64 = 5;
/// How many earlier requests a key that is put needs to contend for main, likewise.
const REQUESTS_NEEDED: [(u64, u64); 2] = [(4, 1), (16, 2)];
const REQUESTS_NEEDED_ABOVE: u64 = 3;
/// An entry this many times below the mean size leaves the small ring for main without a hit. In main, it survives one
/// more lap without a hit, on average; from the second number on two, from the third on three.
const SPARED_BELOW: [u64; 3] = [3, 8, 20];

/// The number for this size in a table of such.
fn by_size(table: &[(u64, u64)], above: u64, bytes: u64, mean_bytes: u64) -> u64 {
    table.iter().find(|(means, _)| bytes <= mean_bytes.saturating_mul(*means)).map_or(above, |(_, number)| *number)
}

/// Whether an entry stays that was hit `frequency` times since it last survived.
pub(crate) fn is_hot(frequency: u64, bytes: u64, mean_bytes: u64) -> bool {
    frequency >= by_size(&HITS_NEEDED, HITS_NEEDED_ABOVE, bytes, mean_bytes)
}

/// Whether a key that is put contends for main, after so many requests for it.
pub(crate) fn is_wanted(requests: u64, bytes: u64, mean_bytes: u64) -> bool {
    requests >= by_size(&REQUESTS_NEEDED, REQUESTS_NEEDED_ABOVE, bytes, mean_bytes)
}

/// Whether an entry is so small that it moves from the small ring to main without a hit.
pub(crate) fn is_tiny(bytes: u64, mean_bytes: u64) -> bool {
    laps_spared(bytes, mean_bytes) > 0
}

/// Whether an entry of main without enough hits stays because it is so small. `dice` is any number that differs from
/// lap to lap: so the entry needs no count of its laps, and goes sooner or later.
pub(crate) fn is_spared(bytes: u64, mean_bytes: u64, dice: u64) -> bool {
    let laps = laps_spared(bytes, mean_bytes);
    !mixed(dice).is_multiple_of(laps + 1)
}

/// Whether it is the turn of one thing out of as many as make up `all`, of which each makes up `part`. `dice` is any
/// number that differs from thing to thing.
pub(crate) fn is_due(dice: u64, part: u64, all: u64) -> bool {
    mixed(dice) % all.max(1) < part
}

fn mixed(dice: u64) -> u64 {
    dice.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
}

fn laps_spared(bytes: u64, mean_bytes: u64) -> u64 {
    SPARED_BELOW.iter().filter(|times| bytes.saturating_mul(**times) <= mean_bytes).count() as u64
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
    fn larger_newcomers_need_more_requests() {
        for (bytes, needed) in [(10, 1), (400, 1), (401, 2), (1600, 2), (1601, 3)] {
            assert!(is_wanted(needed, bytes, 100) && !is_wanted(needed - 1, bytes, 100), "{bytes}");
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

    #[test]
    fn each_part_has_its_turn_once_in_a_whole_on_average() {
        for (part, expected) in [(1, 100), (10, 1000), (50, 5000), (100, 10_000), (1000, 10_000)] {
            let turns = (0..10_000_usize).filter(|dice| is_due(*dice as u64, part, 100)).count();
            assert!(turns.abs_diff(expected) < 100, "{part}: {turns}");
        }
    }

    #[test]
    fn tiny_entries_survive_as_many_laps_as_they_are_spared() {
        for (bytes, laps) in [(1000, 0), (334, 0), (333, 1), (125, 2), (50, 3), (1, 3)] {
            assert_eq!(is_tiny(bytes, 1000), laps > 0, "{bytes}");
            let stays = (0..10_000).filter(|dice| is_spared(bytes, 1000, *dice)).count();
            let expected = 10_000 * laps / (laps + 1);
            assert!(stays.abs_diff(expected) < 100, "{bytes}: {stays}");
        }
    }
}
