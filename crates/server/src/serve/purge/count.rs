//! How many entries a purge means. The purge itself takes as long for one as for a million; counting looks at all entries.

use std::time::{Duration, Instant};

use eyewall::Hit;

use super::steps::Step;
use eyewall_page_cache::store::Store;

/// How long all entries may take. Whoever purges waits for it.
const PATIENCE: Duration = Duration::from_secs(1);
/// Entries between two looks at the clock.
const LOOK_STEP: u64 = 1024;

/// For each step, how many entries it means. `None`: there are too many to look at.
pub(super) fn count(store: &Store, steps: &[Step]) -> Option<Vec<u64>> {
    count_until(store, steps, Instant::now() + PATIENCE)
}

fn count_until(store: &Store, steps: &[Step], deadline: Instant) -> Option<Vec<u64>> {
    let mut counts = vec![0; steps.len()];
    for (number, hit) in (0_u64..).zip(store.entries()) {
        if number.is_multiple_of(LOOK_STEP) && Instant::now() >= deadline {
            return None;
        }
        for (count, step) in counts.iter_mut().zip(steps) {
            *count += u64::from(means(step, &hit));
        }
    }
    Some(counts)
}

fn means(step: &Step, hit: &Hit<'_>) -> bool {
    match step {
        Step::Address(addresses) => addresses.iter().any(|address| {
            hit.key() == address.text().as_bytes()
                || address.tag().is_some_and(|tag| hit.tags().any(|found| found == tag))
        }),
        Step::Tags(tags) => hit.tags().any(|tag| tags.iter().any(|meant| meant == tag)),
        Step::Prefixes(prefixes) => prefixes.iter().any(|prefix| hit.key().starts_with(prefix.as_bytes())),
        Step::Everything => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_too_long_is_not_counted() {
        let cache = eyewall::Options::new().heap().unwrap();
        cache.put("key", "value").unwrap();
        let (store, steps) = (Store::new(cache), [Step::Everything, Step::Prefixes(vec!["x".to_owned()])]);
        assert_eq!(count_until(&store, &steps, Instant::now()), None);
        assert_eq!(count(&store, &steps), Some(vec![1, 0]));
    }
}
