//! Two processes know by a few milliseconds less or more how long the machine has slept.

#![cfg(test)]

mod common;

use std::time::Duration;

use common::{fast_folder, fork};
use eyewall::{Cache, Options, PutOptions, seams};

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
