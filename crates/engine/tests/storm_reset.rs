//! A ring's log turns out to be damaged while threads read, hold and write, some of them in the middle of a large
//! put. The ring is emptied once nobody holds bytes in it. Held bytes stay, and no slot is left that names freed
//! ones.
#![cfg(test)]

mod anatomy;
mod common;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use anatomy::Anatomy;
use common::{Random, soak, value};
use eyewall::{Cache, Error, Options};

fn put(cache: &Cache, number: u64, bytes: u64) {
    let key = number.to_le_bytes();
    match cache.put(key, value(&key, number as u32, bytes as usize)) {
        Ok(_) | Err(Error::Pinned { .. }) => {}
        Err(error) => panic!("{error:?}"),
    }
}

fn get(cache: &Cache, number: u64) -> Option<eyewall::Hit<'_>> {
    let hit = cache.get(number.to_le_bytes()).unwrap()?;
    check(&hit);
    Some(hit)
}

/// Checks every byte. The damage may have hit a value that was just written where the oldest record lay.
fn check(hit: &eyewall::Hit<'_>) {
    let number = u64::from_le_bytes(hit.key().try_into().unwrap());
    let wanted = value(hit.key(), number as u32, hit.len());
    let wrong = hit.iter().zip(&wanted).position(|(found, wanted)| found != wanted && *found != DAMAGE);
    assert_eq!(wrong, None, "a wrong byte in a value of {} bytes of key {number}", hit.len());
}

const DAMAGE: u8 = 0xff;

/// Makes the oldest record of a ring unreadable.
fn damage(path: &Path, main: bool) {
    let file = File::options().read(true).write(true).open(path).unwrap();
    let mut tables = vec![0; 32 << 10];
    file.read_exact_at(&mut tables, 0).unwrap();
    let anatomy = Anatomy::of(&tables);
    let at = if main {
        anatomy.main_byte(0, anatomy::word(&tables, anatomy.stripe_word(0, anatomy::MAIN_TAIL)))
    } else {
        anatomy.small_byte(0, anatomy::word(&tables, anatomy.stripe_word(0, anatomy::SMALL_TAIL)))
    };
    file.write_all_at(&[DAMAGE; 8], at).unwrap();
}

fn write_and_read(cache: &Cache, seed: u64, stop: &AtomicBool) {
    let mut random = Random(seed);
    let mut held = Vec::new();
    while !stop.load(Relaxed) {
        let number = random.below(500);
        match random.below(4) {
            // Filled outside of the lock.
            0 => put(cache, number, 9000 + random.below(20_000)),
            1 => put(cache, number, 10 + random.below(2000)),
            _ => held.extend(get(cache, number)),
        }
        // Nobody may wait for a thread that waits for a ring to be released.
        if held.len() > 3 || random.below(3) == 0 {
            let Some(hit) = held.pop() else { continue };
            check(&hit);
        }
    }
}

#[test]
fn a_ring_damaged_during_use_is_emptied_and_leaves_no_slot() {
    let folder = common::fast_folder();
    let path = folder.path().join("volume");
    let cache = Options::new().size(512 << 10).open(&path).unwrap();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for seed in 0..3 {
            let (cache, stop) = (&cache, &stop);
            scope.spawn(move || write_and_read(cache, seed, stop));
        }
        let mut random = Random(7);
        let mut rounds = 0;
        while cache.stats().unwrap().resets < soak(30, 3000) {
            rounds += 1;
            assert!(rounds < 1 << 16, "no ring is reset");
            damage(&path, rounds % 2 == 0);
            for _ in 0..200 {
                put(&cache, 1000 + random.below(300), 10 + random.below(1500));
                get(&cache, 1000 + random.below(300));
            }
        }
        stop.store(true, Relaxed);
    });
    // All remaining damage is found when both rings have turned.
    for number in 0..8000 {
        put(&cache, 2000 + number, 1000);
        get(&cache, 2000 + number);
    }
    let stats = cache.stats().unwrap();
    assert_eq!(stats.pins, 0);
    assert_eq!(cache.verify().unwrap().problems, Vec::<String>::new());
    assert_eq!(cache.iter().count() as u64, stats.entries);
}
