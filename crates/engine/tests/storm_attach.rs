//! Writers are killed in the middle of their work, and another process attaches. It reads everything and writes, and
//! what it finds is sound. That process may be killed, too.

#![cfg(test)]

mod common;

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};

use common::{Child, Random, disk_folder, fast_folder, fork, play, read_all, say, soak, value, version_of};
use eyewall::{Cache, Error, Options, seams};

#[test]
fn child() {
    play(&[("writes", writes), ("kills attachers", kills_attachers)]);
}

fn key(number: u64) -> Vec<u8> {
    format!("key {number}").into_bytes()
}

/// Puts forever.
fn writes(arguments: &[&str]) {
    let cache = Cache::open(arguments[0]).unwrap();
    let mut random = Random(arguments[1].parse().unwrap());
    let mut held = std::collections::VecDeque::new();
    say("writing");
    for version in 0.. {
        let key = key(random.below(200));
        let bytes = 10 + random.below(if version % 16 == 0 { 60_000 } else { 2000 }) as usize;
        match cache.put(&key, value(&key, version, bytes)) {
            Ok(_) => held.extend(cache.get(&key).unwrap()),
            Err(Error::Pinned { .. }) => held.clear(),
            Err(error) => panic!("{error}"),
        }
        if held.len() > 20 {
            held.pop_front();
        }
    }
}

#[test]
fn a_process_that_attaches_after_a_kill_reads_everything_and_writes() {
    let _turn = common::turn();
    for (folder, rounds) in [(fast_folder(), soak(40, 200)), (disk_folder(), soak(20, 100))] {
        let path = folder.path().join("volume");
        // The successor of a killed writer is alone, and puts the volume in order.
        drop(Options::new().size(1 << 20).open(&path).unwrap());
        let mut random = Random(7);
        for round in 0..rounds {
            let mut writer = Child::start("writes", &[path.to_str().unwrap(), &round.to_string()]);
            writer.expect("writing");
            // Not needed for correctness; it catches the writer at work.
            std::thread::sleep(std::time::Duration::from_micros(random.below(10_000)));
            writer.kill();
            let cache = Options::new().create(false).open(&path).unwrap();
            let report = cache.verify().unwrap();
            assert!(report.is_sound(), "round {round}: {report:?}");
            assert_eq!(read_all(&cache), report.entries, "round {round}");
            cache.put("ours", value(b"ours", 1, 5000)).unwrap();
            assert_eq!(version_of(b"ours", &cache.get("ours").unwrap().unwrap()), 1);
            let stats = cache.stats().unwrap();
            assert_eq!((stats.processes, stats.pins, stats.resets), (1, 0, 0), "round {round}: {stats:?}");
            assert_eq!(stats.entries, stats.index_live);
        }
    }
}

/// Kills writers at their n-th store until one leaves work to the next process, and kills that one at it.
fn kills_attachers(arguments: &[&str]) {
    let path = PathBuf::from(arguments[0]);
    drop(Options::new().size(512 << 10).open(&path).unwrap());
    let mut random = Random(3);
    let (mut found, wanted) = (0, soak(2, 20));
    for _ in 0..soak(20_000, 200_000) {
        let (stores, seed) = (random.below(2000) as i64, random.next());
        let writer = fork(|| write_until_killed(&path, stores, seed)).wait();
        assert_eq!(writer.signal(), Some(libc::SIGKILL));
        let attacher = fork(|| {
            seams::die_after(0);
            drop(Cache::open(&path).unwrap());
        });
        let died = attacher.wait().signal().is_some();
        fork(|| check(&path)).finish();
        found += usize::from(died);
        if found == wanted {
            return say("found");
        }
    }
    say("never found");
}

/// Many small pins make the hand skip again and again, since a skip can be left half done.
fn write_until_killed(path: &Path, stores: i64, seed: u64) {
    let cache = Cache::open(path).unwrap();
    let mut random = Random(seed);
    // New entries, which lie in the small ring.
    let keys: Vec<_> = (0..60).map(|number| key(seed ^ number)).collect();
    for key in &keys {
        cache.put(key, value(key, 0, 300)).unwrap();
    }
    let _held: Vec<_> = keys.iter().filter_map(|key| cache.get(key).unwrap()).collect();
    seams::die_after(stores);
    loop {
        let key = key(random.below(2000));
        cache.put(&key, value(&key, 0, 10 + random.below(800) as usize)).unwrap();
    }
}

fn check(path: &Path) {
    let cache = Cache::open(path).unwrap();
    let report = cache.verify().unwrap();
    assert!(report.is_sound(), "{report:?}");
    assert_eq!(read_all(&cache), report.entries);
    let stats = cache.stats().unwrap();
    assert_eq!((stats.resets, stats.pins), (0, 0), "no ring was given up");
}

#[test]
fn an_attacher_that_dies_while_it_repairs_leaves_the_repair_to_the_next() {
    let _turn = common::turn();
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let mut driver = Child::start("kills attachers", &[path.to_str().unwrap()]);
    driver.expect("found");
    driver.finish();
}
