//! The index follows the entries: it gets the slots that they need, out of the room for data, and gives them back.

#![cfg(test)]

use eyewall::{Cache, Options};

/// A cap of which some part is to be filled.
const SIZE: u64 = 4 << 20;

fn key(number: u64) -> [u8; 8] {
    number.to_le_bytes()
}

/// Puts values of `bytes` bytes, twice the cap in all, each of which is asked for as often as makes the largest stay.
fn fill(cache: &Cache, bytes: usize, first: u64) -> u64 {
    let value = vec![bytes as u8; bytes];
    let count = 2 * SIZE / (bytes as u64 + 52);
    for number in first..first + count {
        cache.put(key(number), &value).unwrap();
        for _ in 0..5 {
            assert_eq!(cache.get(key(number)).unwrap().unwrap().len(), bytes);
        }
    }
    first + count
}

/// What part of the cap holds entries, in percent.
fn live_percent(cache: &Cache) -> u64 {
    cache.stats().unwrap().live_bytes * 100 / SIZE
}

#[test]
fn a_volume_takes_what_is_put_whatever_its_size() {
    let sizes = [(50, 80), (100, 84), (1000, 88), (10_000, 88)];
    for (first, _) in sizes {
        let cache = Options::new().size(SIZE).heap().unwrap();
        let next = fill(&cache, first, 0);
        for (then, percent) in sizes {
            let next = fill(&cache, then, next);
            let stats = cache.stats().unwrap();
            assert!(live_percent(&cache) >= percent, "{first}, then {then}: {} % {stats:#?}", live_percent(&cache));
            assert!(cache.verify().unwrap().is_sound(), "{:?}", cache.verify().unwrap());
            fill(&cache, first, next + (1 << 40));
        }
    }
}
