//! Two processes differ by a few milliseconds about how long the machine has slept, or one of them attaches later.

#![cfg(test)]

mod common;

use std::time::Duration;

use common::{fast_folder, fork};
use eyewall::{Cache, Lookup, Options, Purge, PutOptions, seams};

#[test]
fn a_process_whose_clock_is_behind_finds_a_new_entry() {
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let cache = Options::new().size(1 << 20).open(&path).unwrap();
    fork(|| {
        seams::shift_clock(500);
        let ahead = Cache::open(&path).unwrap();
        ahead.put_with("a", "value", &PutOptions::new().ttl(Duration::from_mins(1))).unwrap();
    })
    .finish();
    assert!(cache.contains("a").unwrap());
    cache.sweep().unwrap();
    assert!(cache.contains("a").unwrap(), "nobody has dropped it either");
}

#[test]
fn a_softly_purged_entry_stays_stale_for_a_clock_that_is_behind() {
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let cache = Options::new().size(1 << 20).open(&path).unwrap();
    let minutes = |minutes| Duration::from_mins(minutes);
    cache.put_with("a", "value", &PutOptions::new().ttl(minutes(1)).stale(minutes(10))).unwrap();
    cache.purge_prefix("a", Purge::Soft).unwrap();
    fork(|| {
        // For this process, its time to live is already over.
        seams::shift_clock(61_000);
        Cache::open(&path).unwrap().sweep().unwrap();
    })
    .finish();
    assert!(matches!(cache.lookup("a").unwrap(), Lookup::Stale(_)));
}

#[test]
fn a_sweep_drops_all_expired_entries_wherever_puts_have_swept() {
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let cache = Options::new().size(1 << 20).open(&path).unwrap();
    for number in 0..200 {
        cache.put_with(format!("{number}"), "value", &PutOptions::new().ttl(Duration::from_mins(1))).unwrap();
    }
    cache.purge_tag("another", Purge::Hard).unwrap();
    // Each put sweeps one bucket, so not all of them.
    for _ in 0..50 {
        cache.put("key", "value").unwrap();
    }
    fork(|| {
        seams::shift_clock(61_000);
        assert_eq!(Cache::open(&path).unwrap().sweep().unwrap(), 200);
    })
    .finish();
    assert_eq!(cache.stats().unwrap().entries, 1);
}
