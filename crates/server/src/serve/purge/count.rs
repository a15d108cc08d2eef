//! Counts the entries of purge targets. A purge takes as long for one entry as for a million; counting reads all entries.

use std::time::{Duration, Instant};

use eyewall::Hit;

use super::targets::Target;
use eyewall_page_cache::store::Store;

/// The time for counting all entries, for which the operator waits.
const PATIENCE: Duration = Duration::from_secs(1);
/// The clock is read once per this many entries.
const LOOK_STEP: u64 = 1024;

/// For each target, the number of its entries; `None` if the volume has too many to count.
pub(super) fn count(store: &Store, targets: &[Target]) -> Option<Vec<u64>> {
    count_until(store, targets, Instant::now() + PATIENCE)
}

fn count_until(store: &Store, targets: &[Target], deadline: Instant) -> Option<Vec<u64>> {
    let mut counts = vec![0; targets.len()];
    for (number, hit) in (0_u64..).zip(store.entries()) {
        if number.is_multiple_of(LOOK_STEP) && Instant::now() >= deadline {
            return None;
        }
        for (count, target) in counts.iter_mut().zip(targets) {
            *count += u64::from(means(target, &hit));
        }
    }
    Some(counts)
}

fn means(target: &Target, hit: &Hit<'_>) -> bool {
    match target {
        Target::Address(addresses) => addresses.iter().any(|address| {
            hit.key() == address.text().as_bytes()
                || address.tag().is_some_and(|tag| hit.tags().any(|found| found == tag))
        }),
        Target::Tags(tags) => hit.tags().any(|tag| tags.iter().any(|meant| meant == tag)),
        Target::Prefixes(prefixes) => prefixes.iter().any(|prefix| hit.key().starts_with(prefix.as_bytes())),
        Target::KeyPrefix(prefix) => hit.key().starts_with(prefix),
        Target::Everything => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counting_ends_at_its_deadline() {
        let cache = eyewall::Options::new().heap().unwrap();
        cache.put("key", "value").unwrap();
        let (store, targets) = (Store::new(cache), [Target::Everything, Target::Prefixes(vec!["x".to_owned()])]);
        assert_eq!(count_until(&store, &targets, Instant::now()), None);
        assert_eq!(count(&store, &targets), Some(vec![1, 0]));
    }
}
