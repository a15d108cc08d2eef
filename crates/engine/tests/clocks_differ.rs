//! Two processes know by a few milliseconds less or more how long the machine has slept; or one of them comes later.

#![cfg(test)]

mod common;

use std::time::Duration;

use common::{fast_folder, fork};
use eyewall::{Cache, Lookup, Options, Purge, PutOptions, seams};

#[test]
fn what_was_just_put_is_found_by_whose_clock_is_behind() {
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
    assert!(cache.contains("a").unwrap(), "nobody drops it either");
}

#[test]
fn what_was_purged_softly_is_stale_for_whose_clock_is_behind_when_the_purge_is_forgotten() {
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let cache = Options::new().size(1 << 20).open(&path).unwrap();
    let minutes = |minutes| Duration::from_mins(minutes);
    cache.put_with("a", "value", &PutOptions::new().ttl(minutes(1)).stale(minutes(10))).unwrap();
    cache.purge_prefix("a", Purge::Soft).unwrap();
    fork(|| {
        // For this one its time to live is over already.
        seams::shift_clock(61_000);
        Cache::open(&path).unwrap().sweep().unwrap();
    })
    .finish();
    assert!(matches!(cache.lookup("a").unwrap(), Lookup::Stale(_)));
}

#[test]
fn a_sweep_drops_all_that_has_lived_its_time_wherever_puts_had_swept_before() {
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let cache = Options::new().size(1 << 20).open(&path).unwrap();
    for number in 0..200 {
        cache.put_with(format!("{number}"), "value", &PutOptions::new().ttl(Duration::from_mins(1))).unwrap();
    }
    cache.purge_tag("another", Purge::Hard).unwrap();
    // Each sweeps a bucket: not all of them.
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
