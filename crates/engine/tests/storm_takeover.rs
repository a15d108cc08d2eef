//! A process dies at any of its stores while it holds a stripe's lock. A waiter of this or another process gets the
//! lock soon, and what the dead process had published is there.

#![cfg(test)]

mod common;

use std::path::Path;
use std::time::{Duration, Instant};

use common::{Child, Random, fast_folder, fork, play, read_all, say, soak, value};
use eyewall::{Cache, Change, Options, PutOptions, seams};

#[test]
fn child() {
    play(&[("heirs", heirs)]);
}

fn key(number: u64) -> Vec<u8> {
    format!("key {number}").into_bytes()
}

fn work_until_killed(path: &Path, seed: u64) {
    let cache = Options::new().lock_deadline(Duration::from_mins(1)).open(path).unwrap();
    let mut random = Random(seed);
    // Its pins and its claim die with it, too.
    let _held: Vec<_> = (0..30).filter_map(|number| cache.get(key(number)).unwrap()).collect();
    let claimed = cache.update("claimed", &PutOptions::new(), |_| {
        seams::die_after(random.below(300) as i64);
        loop {
            let (key, bytes) = (key(random.below(300)), 10 + random.below(9000) as usize);
            match random.below(8) {
                0 => drop(cache.remove(&key).unwrap()),
                _ => drop(cache.put(&key, value(&key, 1, bytes)).unwrap()),
            }
        }
    });
    panic!("{claimed:?}");
}

/// For each death, measures how long the next put and the next update take.
fn heirs(arguments: &[&str]) {
    let path = Path::new(arguments[0]);
    let cache = Options::new().size(512 << 10).lock_deadline(Duration::from_mins(1)).open(path).unwrap();
    let mut random = Random(11);
    let mut waits: Vec<Duration> = Vec::new();
    let mut longest_live = Duration::ZERO;
    for round in 0..soak(150, 2000) {
        let seed = random.next();
        let dead = fork(|| work_until_killed(path, seed));
        // Until it dies, we work beside it. At some moment the lock that we wait for belongs to a dead process.
        let mut number = 0;
        while !dead.is_dead() {
            number += 1;
            let start = Instant::now();
            cache.put(key(number % 300), value(&key(number % 300), round, 500)).unwrap();
            longest_live = longest_live.max(start.elapsed());
        }
        let start = Instant::now();
        cache.put("heir", value(b"heir", round, 100)).unwrap();
        waits.push(start.elapsed());
        let start = Instant::now();
        cache.update("claimed", &PutOptions::new(), |_| Change::Remove).unwrap();
        waits.push(start.elapsed());
        dead.reap();
        if round % 10 == 0 {
            assert_sound(&cache);
        }
    }
    assert_sound(&cache);
    let stats = cache.stats().unwrap();
    waits.sort();
    let at = |percent: usize| waits[(waits.len() - 1) * percent / 100];
    say(&format!(
        "{} takeovers; after a death: p50 {:?}, p99 {:?}, longest {:?}; while one died: longest {longest_live:?}",
        stats.repairs,
        at(50),
        at(99),
        at(100)
    ));
}

fn assert_sound(cache: &Cache) {
    let stats = cache.stats().unwrap();
    assert_eq!((stats.pins, stats.processes, stats.resets), (0, 1, 0));
    let report = cache.verify().unwrap();
    assert!(report.is_sound(), "{report:?}");
    assert_eq!(read_all(cache), report.entries);
}

#[test]
fn the_lock_claims_and_pins_of_the_dead_pass_on() {
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let mut heirs = Child::start("heirs", &[path.to_str().unwrap()]);
    println!("{}", heirs.hear());
    heirs.finish();
}
