//! The file of a tier is truncated, or resized as if it were a volume, while caches use it. They continue with the
//! volume alone, and return nothing wrong.

#![cfg(test)]

mod common;

use std::fs::File;

use common::tiered::{Tiered, tier_stats, warm};
use common::{value, version_of};
use eyewall::{Cache, Options, Purge, PutOptions};

fn key(number: u32) -> [u8; 4] {
    number.to_le_bytes()
}

fn fill(cache: &Cache) {
    for number in 0..100 {
        cache.put(key(number), value(&key(number), 0, 3000)).unwrap();
        for _ in 0..5 {
            cache.get(key(number)).unwrap();
        }
    }
    assert!(tier_stats(cache).hits > 0);
}

fn use_it(cache: &Cache) {
    let mut copied = Vec::new();
    for round in 0..20 {
        for number in 0..100 {
            let hit = cache.get(key(number)).unwrap().unwrap();
            let read = hit.to_vec();
            // A copy at the present end of the tier's file may have lost a part of its value.
            if hit.is_intact() {
                assert_eq!(version_of(&key(number), &read), round);
            }
            drop(hit);
            assert!(cache.get_into(key(number), &mut copied).unwrap().is_some());
            assert_eq!(version_of(&key(number), &copied), round);
            cache.put(key(number), value(&key(number), round + 1, 3000)).unwrap();
            assert!(cache.lookup(key(number)).unwrap().fresh().is_some());
        }
        let keys: Vec<[u8; 4]> = (0..100).map(key).collect();
        assert!(cache.get_many(&keys).unwrap().iter().all(Option::is_some));
        cache.stats().unwrap();
    }
    cache.put_with("tagged", "value", &PutOptions::new().tags(&["tag"])).unwrap();
    cache.purge_tag("tag", Purge::Hard).unwrap();
    assert!(cache.get("tagged").unwrap().is_none());
    cache.sweep().unwrap();
    assert!(cache.verify().unwrap().is_sound() && !cache.is_failed());
}

#[test]
fn a_truncated_tier_is_left_out() {
    for bytes in [0, 4096, 64 << 10, 512 << 10, (1 << 20) - 4096] {
        let place = Tiered::new();
        let cache = place.options(4 << 20, 1 << 20).survive_sigbus(true).open(place.path()).unwrap();
        fill(&cache);
        warm(&cache, "\0\0\0\0");
        let held = cache.get(key(0)).unwrap().unwrap();
        assert!(held.is_intact());
        let tier = cache.tier_path().unwrap().to_owned();
        File::options().write(true).open(tier).unwrap().set_len(bytes).unwrap();
        use_it(&cache);
        if bytes == 0 {
            assert!(held.iter().all(|byte| *byte == 0) && !held.is_intact());
            assert_eq!(cache.stats().unwrap().tier, None);
        }
        drop(held);
        cache.resize(&Options::new().size(8 << 20)).unwrap();
        warm(&cache, "\0\0\0\0");
    }
}

#[test]
fn a_resized_tier_serves_nothing_wrong() {
    let place = Tiered::new();
    let cache = place.open();
    fill(&cache);
    let tier = Options::new().open(cache.tier_path().unwrap()).unwrap();
    tier.resize(&Options::new().size(2 << 20)).unwrap();
    drop(tier);
    use_it(&cache);
}
