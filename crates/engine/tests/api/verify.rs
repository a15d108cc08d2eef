//! Somebody verifies a volume of which single bytes have changed. Verify reports what it finds, drops what is damaged
//! on demand, and leaves the rest.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use eyewall::{Cache, Check, Options, PutOptions};
use tempfile::TempDir;

use crate::anatomy::{Anatomy, BUCKETS_CHECK, word};
use crate::common::fast_folder;

const KEYS: usize = 200;

fn key(number: usize) -> String {
    format!("key {number}")
}

fn fill(cache: &Cache) {
    let options = PutOptions::new().tags(&["tag"]).metadata(b"text");
    for number in 0..KEYS {
        cache.put_with(key(number), vec![number as u8; 1000 + number], &options).unwrap();
    }
}

fn filled() -> (TempDir, PathBuf, Cache) {
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let cache = Options::new().size(1 << 20).open(&path).unwrap();
    fill(&cache);
    (folder, path, cache)
}

/// Changes bytes of the file, and so of the map.
fn scribble(path: &Path, at: u64, bytes: &[u8]) {
    File::options().write(true).open(path).unwrap().write_all_at(bytes, at).unwrap();
}

fn find(bytes: &[u8], what: &[u8]) -> u64 {
    bytes.windows(what.len()).position(|part| part == what).unwrap() as u64
}

fn all() -> Check {
    Check::new().deep(true)
}

#[test]
fn a_sound_volume_is_read_to_its_last_entry() {
    let cache = Options::new().size(4 << 20).heap().unwrap();
    fill(&cache);
    let shallow = cache.verify_with(&Check::new()).unwrap();
    assert_eq!((shallow.is_sound(), shallow.entries_read), (true, 0));
    let deep = cache.verify_with(&all().repair(true)).unwrap();
    assert!(deep.is_sound() && deep.repairs == shallow.repairs, "{deep:?}");
    assert_eq!((deep.entries_read, deep.bytes_read), (KEYS as u64, cache.stats().unwrap().live_bytes));
}

#[test]
fn a_damaged_value_is_found_only_by_reading_and_costs_only_its_entry() {
    let (_folder, path, cache) = filled();
    let value = vec![77; 1077];
    scribble(&path, find(&std::fs::read(&path).unwrap(), &value) + 500, &[0]);
    assert!(cache.verify().unwrap().is_sound(), "logs and index are intact");
    let report = cache.verify_with(&all()).unwrap();
    assert_eq!(report.problems.len(), 1, "{report:?}");
    assert!(report.problems[0].contains("fails its checksum"), "{report:?}");
    assert_eq!(report.repairs.entries_dropped, 0);
    let repaired = cache.verify_with(&all().repair(true)).unwrap();
    assert_eq!((repaired.problems.len(), repaired.repairs.entries_dropped), (1, 1));
    assert!(cache.verify_with(&all()).unwrap().is_sound());
    assert_eq!(cache.iter().count(), KEYS - 1);
    assert!(cache.get(key(77)).unwrap().is_none());
}

#[test]
fn slots_that_name_no_entry_of_theirs_are_dropped() {
    let (_folder, path, cache) = filled();
    let bytes = std::fs::read(&path).unwrap();
    let anatomy = Anatomy::of(&bytes);
    let slots = anatomy.slots(&bytes, 0).into_iter();
    let is_live = |at: &u64| (word(&bytes, *at) >> 40) & 3 == 1;
    let live: Vec<_> = slots.clone().filter(is_live).collect();
    let empty: Vec<_> = slots.filter(|at| !is_live(at)).collect();
    let (twin, astray) = (word(&bytes, live[0]), word(&bytes, live[1]) + 1);
    // Its own bucket may be full; the twin is then in a bucket that isn't its key's.
    scribble(&path, empty[0], &twin.to_le_bytes());
    scribble(&path, live[1], &astray.to_le_bytes());
    let found = cache.verify().unwrap();
    assert!(!found.is_sound());
    let repaired = cache.verify_with(&Check::new().repair(true)).unwrap();
    assert_eq!((repaired.repairs.slots_dropped, repaired.repairs.rings_emptied), (2, 0), "{repaired:?}");
    assert!(cache.verify_with(&all()).unwrap().is_sound());
    assert_eq!(cache.iter().count(), KEYS - 1);
    assert_eq!(cache.stats().unwrap().entries, KEYS as u64 - 1);
}

#[test]
fn a_ring_with_an_unreadable_log_is_emptied_once_nobody_holds_it() {
    let (_folder, path, cache) = filled();
    let bytes = std::fs::read(&path).unwrap();
    let anatomy = Anatomy::of(&bytes);
    let ring_of = |number: usize| (find(&bytes, &vec![number as u8; 1000]) - anatomy.data_at) < anatomy.small;
    let (in_small, in_main) = ((1..KEYS).rfind(|number| ring_of(*number)), (1..KEYS).find(|number| !ring_of(*number)));
    let (held, other) = (in_main.unwrap(), in_small.unwrap());
    let hit = cache.get(key(held)).unwrap().unwrap();
    // A record's first word, in the middle of main's log: nothing behind it can be read.
    let another = (held + 1..KEYS).find(|number| !ring_of(*number)).unwrap();
    scribble(&path, find(&bytes, key(another).as_bytes()) - 44, &[0xff; 8]);
    assert!(!cache.verify().unwrap().is_sound());
    let repaired = cache.verify_with(&Check::new().repair(true)).unwrap();
    assert_eq!((repaired.repairs.rings_emptied, repaired.repairs.rings_held), (0, 1), "{repaired:?}");
    assert_eq!(hit.value()[..], vec![held as u8; 1000 + held][..], "what is held stays as it is");
    drop(hit);
    let repaired = cache.verify_with(&Check::new().repair(true)).unwrap();
    assert_eq!(repaired.repairs.rings_emptied, 1, "{repaired:?}");
    assert!(cache.verify_with(&all()).unwrap().is_sound());
    assert!(cache.get(key(held)).unwrap().is_none() && cache.get(key(other)).unwrap().is_some());
    cache.put(key(held), "new").unwrap();
    assert_eq!(&*cache.get(key(held)).unwrap().unwrap(), b"new");
}

#[test]
fn a_read_only_opener_cannot_verify() {
    let folder = fast_folder();
    let path = folder.path().join("volume");
    drop(Options::new().size(1 << 20).open(&path).unwrap());
    let cache = Options::new().read_only(true).open(&path).unwrap();
    assert!(matches!(cache.verify_with(&all()), Err(eyewall::Error::ReadOnly { .. })));
}

#[test]
fn a_count_of_buckets_without_its_complement_is_reported_and_mended() {
    let (_folder, path, cache) = filled();
    let bytes = std::fs::read(&path).unwrap();
    let at = Anatomy::of(&bytes).stripe_word(0, BUCKETS_CHECK);
    scribble(&path, at, &(word(&bytes, at) ^ 4).to_le_bytes());
    let told = cache.verify().unwrap();
    assert!(told.problems.iter().any(|problem| problem.contains("describe its index")), "{:?}", told.problems);
    fill(&cache);
    assert!(!cache.verify_with(&all().repair(true)).unwrap().is_sound());
    assert!(cache.verify_with(&all()).unwrap().is_sound());
    let entries = cache.stats().unwrap().entries;
    drop(cache);
    assert_eq!(Cache::open(&path).unwrap().stats().unwrap().entries, entries);
}
