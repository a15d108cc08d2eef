//! A tier stands before a volume: hits come out of it, and never give what was changed since, by this process or by one that
//! knows nothing of the tier.

#![cfg(test)]

mod common;

use eyewall::{Cache, Options};
use tempfile::TempDir;

struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        Self { folder: common::fast_folder() }
    }
    fn open(&self) -> Cache {
        Options::new()
            .size(4 << 20)
            .tier(1 << 20)
            .tier_folder(self.folder.path())
            .open(self.folder.path().join("volume"))
            .unwrap()
    }
}

#[test]
fn smoke() {
    let place = Place::new();
    let cache = place.open();
    cache.put("key", "value").unwrap();
    for _ in 0..5 {
        assert_eq!(&*cache.get("key").unwrap().unwrap(), b"value");
    }
    println!("{:?}", cache.stats().unwrap().tier);
    cache.put("key", "value 2").unwrap();
    for _ in 0..5 {
        assert_eq!(&*cache.get("key").unwrap().unwrap(), b"value 2");
    }
    println!("{:?} {:?}", cache.stats().unwrap().tier, cache.tier_path());
    assert!(cache.tier_path().unwrap().exists());
    let path = cache.tier_path().unwrap().to_owned();
    drop(cache);
    assert!(!path.exists());
}
