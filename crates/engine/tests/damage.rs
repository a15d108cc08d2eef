//! Somebody writes into the file of a volume that is open and in use, behind everybody's back: what is damaged is found by those
//! who look for it, dropped and counted.

#![cfg(test)]

mod anatomy;
mod common;

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use anatomy::Anatomy;
use common::fast_folder;
use eyewall::{Cache, Check, Hit, Options, PutOptions, Touch};
use tempfile::TempDir;

const SIZE: u64 = 1 << 20;
const KEYS: usize = 200;

fn key(number: usize) -> String {
    format!("key {number}")
}

fn value(number: usize) -> Vec<u8> {
    vec![number as u8; 1000 + number]
}

fn fill(cache: &Cache) {
    for number in 0..KEYS {
        cache.put_with(key(number), value(number), &PutOptions::new().metadata(b"text")).unwrap();
    }
}

fn filled(options: &Options) -> (TempDir, PathBuf, Cache) {
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let cache = options.clone().size(SIZE).open(&path).unwrap();
    fill(&cache);
    (folder, path, cache)
}

fn scribble(path: &Path, at: u64, bytes: &[u8]) {
    File::options().write(true).open(path).unwrap().write_all_at(bytes, at).unwrap();
}

/// Changes a byte in the middle of an entry's value.
fn damage(path: &Path, number: usize) {
    let (bytes, value) = (std::fs::read(path).unwrap(), value(number));
    let at = bytes.windows(value.len()).position(|part| part == value).unwrap();
    scribble(path, at as u64 + 500, &[!(number as u8)]);
}

fn damaged(cache: &Cache) -> u64 {
    cache.stats().unwrap().evictions_damaged
}

type Get = (&'static str, fn(&Cache, &str) -> Option<Vec<u8>>);

fn bytes(hit: &Hit<'_>) -> Vec<u8> {
    hit.value().to_vec()
}

const GETS: [Get; 7] = [
    ("get", |cache, key| cache.get(key).unwrap().as_ref().map(bytes)),
    ("peek", |cache, key| cache.peek(key).unwrap().as_ref().map(bytes)),
    ("get_if", |cache, key| cache.get_if(key, |_| true).unwrap().as_ref().map(bytes)),
    ("lookup", |cache, key| cache.lookup(key).unwrap().fresh().as_ref().map(bytes)),
    ("get_many", |cache, key| cache.get_many(&[key]).unwrap()[0].as_ref().map(bytes)),
    ("get_into", |cache, key| {
        let mut value = Vec::new();
        cache.get_into(key, &mut value).unwrap().map(|_| value)
    }),
    ("iter", |cache, key| cache.iter().find(|hit| hit.key() == key.as_bytes()).as_ref().map(bytes)),
];

#[test]
fn each_hit_is_verified_on_demand_and_a_wrong_one_is_a_dropped_and_counted_miss() {
    for (name, get) in GETS {
        let (_folder, path, cache) = filled(&Options::new().verify_hits(true));
        damage(&path, 77);
        assert_eq!(get(&cache, &key(77)), None, "{name}");
        assert_eq!(damaged(&cache), 1, "{name}");
        for number in (0..KEYS).filter(|number| *number != 77) {
            assert_eq!(get(&cache, &key(number)), Some(value(number)), "{name}");
        }
        let stats = cache.stats().unwrap();
        assert_eq!((stats.entries, stats.evictions_damaged), (KEYS as u64 - 1, 1), "{name}");
        assert!(cache.verify_with(&Check::new().deep(true)).unwrap().is_sound(), "{name}: nothing else was touched");
        cache.put(key(77), value(77)).unwrap();
        assert_eq!(get(&cache, &key(77)), Some(value(77)), "{name}: its key can be stored again");
    }
}

#[test]
fn others_that_did_not_ask_for_it_get_what_is_there() {
    let (_folder, path, cache) = filled(&Options::new());
    let careful = Options::new().verify_hits(true).open(&path).unwrap();
    damage(&path, 77);
    assert_ne!(cache.get(key(77)).unwrap().unwrap().value(), value(77));
    assert!(careful.get(key(77)).unwrap().is_none());
    assert!(cache.get(key(77)).unwrap().is_none(), "it was dropped for all");
}

#[test]
fn what_is_damaged_after_it_was_verified_is_verified_again() {
    let (_folder, path, cache) = filled(&Options::new().verify_hits(true));
    assert_eq!(cache.get(key(77)).unwrap().unwrap().value(), value(77));
    damage(&path, 77);
    assert!(cache.get(key(77)).unwrap().is_none());
}

#[test]
fn a_header_that_was_overwritten_costs_its_entry_and_the_counts_stay_true() {
    let (_folder, path, cache) = filled(&Options::new().verify_hits(true));
    let bytes = std::fs::read(&path).unwrap();
    let name = key(77);
    let at = bytes.windows(name.len()).position(|part| part == name.as_bytes()).unwrap() as u64 - 44;
    // Its lengths stay, its sums don't.
    scribble(&path, at + 8, &[0x11; 8]);
    assert!(cache.get(&name).unwrap().is_none());
    assert_eq!((damaged(&cache), cache.stats().unwrap().entries), (1, KEYS as u64 - 1));
    assert!(cache.verify().unwrap().is_sound());
}

#[test]
fn a_hit_of_a_tier_is_verified_too() {
    let (folder, memory) = (fast_folder(), fast_folder());
    let path = folder.path().join("volume");
    let options = Options::new().size(SIZE).tier(SIZE).tier_folder(memory.path()).verify_hits(true);
    let cache = options.open(&path).unwrap();
    let long = vec![7; 5000];
    cache.put("key", &long).unwrap();
    let is_copied = || cache.stats().unwrap().tier.unwrap().hits > 0;
    for _ in 0..1000 {
        assert_eq!(cache.get("key").unwrap().unwrap().value(), long);
    }
    assert!(is_copied());
    let tier = cache.tier_path().unwrap().to_owned();
    let bytes = std::fs::read(&tier).unwrap();
    let at = bytes.windows(long.len()).position(|part| part == long).unwrap() as u64;
    scribble(&tier, at + 100, &[8]);
    assert_eq!(cache.get("key").unwrap().unwrap().value(), long, "the volume has it");
}

#[test]
fn what_is_stored_anew_inside_the_volume_carries_no_damage_on() {
    let (_folder, path, cache) = filled(&Options::new());
    damage(&path, 77);
    damage(&path, 78);
    assert!(!cache.touch(key(77), &Touch::new().metadata(b"new")).unwrap(), "there is nothing to be touched");
    cache.resize(&Options::new().size(2 * SIZE)).unwrap();
    for number in [77, 78] {
        assert!(cache.get(key(number)).unwrap().is_none(), "{number}");
    }
    assert_eq!(cache.get(key(79)).unwrap().unwrap().value(), value(79));
}

#[test]
fn where_nothing_may_be_written_a_wrong_hit_is_only_a_miss() {
    let (_folder, path, cache) = filled(&Options::new());
    let reader = Options::new().read_only(true).verify_hits(true).open(&path).unwrap();
    damage(&path, 77);
    assert!(reader.get(key(77)).unwrap().is_none());
    assert_eq!(damaged(&cache), 0);
    assert_eq!(Anatomy::of(&std::fs::read(&path).unwrap()).size, SIZE);
}
