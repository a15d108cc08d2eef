//! Two processes overwrite a few keys without a pause, in a volume with room for them. A reader always finds them:
//! neither the overwrite nor contention counts as absence. A read-only opener, which can't hold an entry in place,
//! may get `Busy`, but never a miss.

#![cfg(test)]

mod common;

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use common::{Child, Random, fast_folder, play, say, soak, value, version_of};
use eyewall::{Cache, Error, Options};

const KEYS: [&[u8]; 4] = [b"one", b"two", b"three", b"four"];

#[test]
fn child() {
    play(&[("overwrites", overwrites)]);
}

fn put(cache: &Cache, random: &mut Random, version: u32) {
    let key = KEYS[random.below(4) as usize];
    let bytes = match random.below(4) {
        0 => 9000 + random.below(20_000),
        _ => 10 + random.below(3000),
    };
    cache.put(key, value(key, version, bytes as usize)).unwrap();
}

fn overwrites(arguments: &[&str]) {
    let cache = Options::new().lock_deadline(Duration::from_mins(1)).open(arguments[0]).unwrap();
    let mut random = Random(arguments[1].parse().unwrap());
    for version in 0..soak(15_000, 400_000) {
        put(&cache, &mut random, version);
    }
    say("done");
}

#[test]
fn an_overwritten_entry_is_never_missed() {
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let cache = Options::new().size(4 << 20).open(&path).unwrap();
    for key in KEYS {
        cache.put(key, value(key, 0, 100)).unwrap();
    }
    let reader = Options::new().read_only(true).open(&path).unwrap();
    let stop = AtomicBool::new(false);
    let mut children: Vec<_> =
        ["1", "2"].iter().map(|seed| Child::start("overwrites", &[path.to_str().unwrap(), seed])).collect();
    std::thread::scope(|scope| {
        let hits = scope.spawn(|| read_until(&cache, &stop));
        let copies = scope.spawn(|| read_until(&reader, &stop));
        for child in &mut children {
            child.expect("done");
        }
        stop.store(true, Relaxed);
        for (who, reads) in [("with pins", hits), ("by copies", copies)] {
            let (found, busy) = reads.join().unwrap();
            println!("{who}: {found} found, {busy} busy");
            assert!(found > 0);
        }
    });
    assert_eq!((cache.stats().unwrap().misses, cache.stats().unwrap().evictions_index), (0, 0));
}

/// How often an entry was found, and how often none could be read.
fn read_until(cache: &Cache, stop: &AtomicBool) -> (u64, u64) {
    let (mut found, mut busy) = (0, 0);
    while !stop.load(Relaxed) {
        for key in KEYS {
            match cache.get(key) {
                Ok(hit) => {
                    version_of(key, &hit.unwrap());
                    found += 1;
                }
                Err(Error::Busy { .. }) if cache.is_read_only() => busy += 1,
                Err(error) => panic!("{error}"),
            }
        }
    }
    (found, busy)
}
