//! Somebody writes into the file of a volume that is open and in use. Callers that look for the damage find it, drop
//! it and count it.

#![cfg(test)]

mod anatomy;
mod common;

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use anatomy::Anatomy;
use common::fast_folder;
use eyewall::{Cache, Check, Counter, Error, Hit, Import, Options, PutOptions, Scrub, Scrubbed, Touch};
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
fn a_damaged_hit_is_a_miss_dropped_and_counted_on_demand() {
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
fn openers_without_the_option_get_damaged_bytes() {
    let (_folder, path, cache) = filled(&Options::new());
    let careful = Options::new().verify_hits(true).open(&path).unwrap();
    damage(&path, 77);
    assert_ne!(cache.get(key(77)).unwrap().unwrap().value(), value(77));
    assert!(careful.get(key(77)).unwrap().is_none());
    assert!(cache.get(key(77)).unwrap().is_none(), "the entry was dropped for all openers");
}

#[test]
fn damage_after_a_verification_is_found() {
    let (_folder, path, cache) = filled(&Options::new().verify_hits(true));
    assert_eq!(cache.get(key(77)).unwrap().unwrap().value(), value(77));
    damage(&path, 77);
    assert!(cache.get(key(77)).unwrap().is_none());
}

#[test]
fn an_overwritten_record_header_costs_its_entry_and_counts_stay_true() {
    let (_folder, path, cache) = filled(&Options::new().verify_hits(true));
    let bytes = std::fs::read(&path).unwrap();
    let name = key(77);
    let at = bytes.windows(name.len()).position(|part| part == name.as_bytes()).unwrap() as u64 - 44;
    // The lengths stay right, the checksums don't.
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
    assert_eq!(cache.get("key").unwrap().unwrap().value(), long, "the volume still has the entry");
}

#[test]
fn rewriting_inside_the_volume_passes_no_damage_on() {
    let (_folder, path, cache) = filled(&Options::new());
    damage(&path, 77);
    damage(&path, 78);
    assert!(!cache.touch(key(77), &Touch::new().metadata(b"new")).unwrap(), "there is no sound entry to touch");
    cache.resize(&Options::new().size(2 * SIZE)).unwrap();
    for number in [77, 78] {
        assert!(cache.get(key(number)).unwrap().is_none(), "{number}");
    }
    assert_eq!(cache.get(key(79)).unwrap().unwrap().value(), value(79));
}

#[test]
fn a_damaged_counter_starts_again() {
    let (_folder, path, cache) = filled(&Options::new());
    let metadata = noisy(1, 100);
    cache.put_with("counter", 5_i64.to_le_bytes(), &PutOptions::new().metadata(&metadata)).unwrap();
    assert_eq!(cache.increment("counter", 2, &Counter::new()).unwrap(), 7);
    let bytes = std::fs::read(&path).unwrap();
    for (at, _) in bytes.windows(metadata.len()).enumerate().filter(|(_, part)| *part == metadata) {
        scribble(&path, at as u64 + 50, &[!metadata[50]]);
    }
    assert_eq!(cache.increment("counter", 2, &Counter::new()).unwrap(), 2);
    assert_eq!(cache.increment("counter", 2, &Counter::new()).unwrap(), 4);
    assert!(cache.get("counter").unwrap().unwrap().metadata().is_empty());
}

#[test]
fn an_export_leaves_out_damaged_entries() {
    let (_folder, path, cache) = filled(&Options::new());
    damage(&path, 77);
    let mut stream = Vec::new();
    assert_eq!(cache.export(&mut stream).unwrap().entries, KEYS as u64 - 1);
    let other = Options::new().size(SIZE).anonymous().unwrap();
    other.import(&stream[..], &Import::new()).unwrap();
    assert!(other.get(key(77)).unwrap().is_none());
    assert_eq!(other.get(key(78)).unwrap().unwrap().value(), value(78));
}

#[test]
fn a_tier_gets_no_copy_of_a_damaged_entry() {
    let (folder, memory) = (fast_folder(), fast_folder());
    let path = folder.path().join("volume");
    let cache = Options::new().size(SIZE).tier(SIZE).tier_folder(memory.path()).open(&path).unwrap();
    cache.put(key(77), value(77)).unwrap();
    damage(&path, 77);
    for _ in 0..1000 {
        // Without `verify_hits`, the damaged bytes are a hit.
        assert_ne!(cache.get(key(77)).unwrap().unwrap().value(), value(77));
    }
    assert_eq!(cache.stats().unwrap().tier.unwrap().hits, 0);
}

#[test]
fn for_a_read_only_opener_a_damaged_hit_is_only_a_miss() {
    let (_folder, path, cache) = filled(&Options::new());
    let reader = Options::new().read_only(true).verify_hits(true).open(&path).unwrap();
    damage(&path, 77);
    assert!(reader.get(key(77)).unwrap().is_none());
    assert_eq!(damaged(&cache), 0);
    assert_eq!(Anatomy::of(&std::fs::read(&path).unwrap()).size, SIZE);
}

/// Numbers without a pattern, equal in each run.
fn noise(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed;
    move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

fn noisy(seed: u64, bytes: usize) -> Vec<u8> {
    let mut next = noise(seed);
    std::iter::repeat_with(|| next().to_le_bytes()).flatten().take(bytes).collect()
}

fn scrubbed(cache: &Cache, pass: Scrub) -> Scrubbed {
    let mut pass = pass;
    assert!(pass.progress() <= 0.0, "the pass hasn't begun");
    while cache.scrub(&mut pass).unwrap() {
        assert!(pass.progress() < 1.0);
    }
    assert!(pass.progress() >= 1.0, "the pass is over");
    pass.found()
}

/// An open volume of 32 MiB with values of all sizes, and blocks of noise written into it from an offset on.
fn riddled(seed: u64, from: impl Fn(&Anatomy) -> u64) -> (TempDir, Cache, usize) {
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let cache = Options::new().size(32 << 20).open(&path).unwrap();
    let keys = 3000;
    for number in 0..keys {
        cache.put(key(number), noisy(number as u64, 100 + number * 7 % 20_000)).unwrap();
    }
    let anatomy = Anatomy::of(&std::fs::read(&path).unwrap());
    let (first, mut next) = (from(&anatomy) / 4096 + 1, noise(seed));
    for block in 0..16 {
        let at = first + next() % (anatomy.size / 4096 - first);
        scribble(&path, at * 4096, &noisy(seed ^ block, 4096));
    }
    (folder, cache, keys)
}

#[test]
fn after_a_scrub_of_a_live_volume_every_get_is_right_or_a_miss() {
    for seed in 1..=4 {
        let (_folder, cache, keys) = riddled(seed, |anatomy| anatomy.data_at);
        let is_right = |number: usize| {
            let found = cache.peek(key(number)).unwrap();
            found.map(|hit| *hit == *noisy(number as u64, 100 + number * 7 % 20_000))
        };
        let wrong = (0..keys).filter(|number| is_right(*number) == Some(false)).count();
        assert!(wrong > 0, "nothing checks entries that were trusted once");
        let before = cache.stats().unwrap();
        let found = scrubbed(&cache, Scrub::new());
        assert!(found.entries_dropped as usize >= wrong, "{seed}: {found:?}, {wrong} were wrong");
        assert_eq!(found.entries_read + found.entries_dropped, before.entries);
        let after = cache.stats().unwrap();
        assert_eq!(after.evictions_damaged, found.entries_dropped, "{seed}");
        assert_eq!(after.entries, before.entries - found.entries_dropped, "{seed}");
        assert_eq!((after.hits, after.misses, after.pins), (before.hits, before.misses, 0));
        assert!((0..keys).all(|number| is_right(number) != Some(false)), "{seed}");
        assert_eq!(scrubbed(&cache, Scrub::new()).entries_dropped, 0, "{seed}: once is enough");
        for number in 0..keys {
            cache.put(key(number), noisy(number as u64, 100 + number * 7 % 20_000)).unwrap();
            assert_eq!(is_right(number), Some(true), "{seed}: the volume goes on");
        }
    }
}

#[test]
fn an_overwritten_index_loses_its_entries_and_leaves_nothing_wrong() {
    for seed in 1..=4 {
        let (_folder, cache, keys) = riddled(seed, |anatomy| anatomy.index_at);
        scrubbed(&cache, Scrub::new());
        for number in 0..keys {
            if let Some(hit) = cache.get(key(number)).unwrap() {
                assert!(*hit == *noisy(number as u64, 100 + number * 7 % 20_000), "{seed}: {number}");
            }
        }
        // A recount gives what is there.
        assert_eq!(cache.stats().unwrap().entries, cache.iter_all().count() as u64, "{seed}");
    }
}

#[test]
fn a_scrub_continues_while_others_put_and_remove() {
    let (_folder, path, cache) = filled(&Options::new());
    let other = Cache::open(&path).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in (0..KEYS).cycle() {
                if done.load(Relaxed) {
                    return;
                }
                other.put(key(number), value(number)).unwrap();
                other.remove(key((number * 7) % KEYS)).unwrap();
            }
        });
        for _ in 0..200 {
            assert_eq!(scrubbed(&cache, Scrub::new()).entries_dropped, 0, "nothing is damaged");
        }
        done.store(true, Relaxed);
    });
    assert!(cache.verify_with(&Check::new().deep(true)).unwrap().is_sound());
}

#[test]
fn an_entry_held_while_it_is_dropped_stays_in_place() {
    let (_folder, path, cache) = filled(&Options::new());
    let hit = cache.get(key(77)).unwrap().unwrap();
    damage(&path, 77);
    let seen = hit.value().to_vec();
    assert_eq!(scrubbed(&cache, Scrub::new()).entries_dropped, 1);
    for round in 0..5 {
        for number in 0..KEYS {
            cache.put(format!("{round} {number}"), value(number)).unwrap();
        }
    }
    assert_eq!(hit.value(), seen);
}

#[test]
fn a_scrub_continues_in_the_volume_after_a_resize() {
    let folder = fast_folder();
    let cache = Options::new().size(8 << 20).open(folder.path().join("volume")).unwrap();
    for number in 0..3000 {
        cache.put(key(number), value(number)).unwrap();
    }
    let entries = cache.stats().unwrap().entries;
    let mut pass = Scrub::new();
    assert!(cache.scrub(&mut pass).unwrap());
    cache.resize(&Options::new().size(16 << 20)).unwrap();
    while cache.scrub(&mut pass).unwrap() {}
    assert!(pass.found().entries_read > entries && pass.found().entries_dropped == 0, "the whole new volume was read");
}

#[test]
fn a_scrub_of_resident_entries_reads_nothing_in() {
    let folder = common::disk_folder();
    let path = folder.path().join("volume");
    let cache = Options::new().size(SIZE).open(&path).unwrap();
    fill(&cache);
    let found = scrubbed(&cache, Scrub::new().only_resident(true));
    assert_eq!((found.entries_read, found.entries_skipped), (KEYS as u64, 0), "all was just written");
    cache.sync().unwrap();
    // The kernel drops pages that nobody maps. If it keeps them, they are read.
    drop(cache);
    common::drop_pages(&path);
    let cache = Cache::open(&path).unwrap();
    let found = scrubbed(&cache, Scrub::new().only_resident(true));
    assert!(found.entries_read + found.entries_skipped <= KEYS as u64 && found.entries_dropped == 0, "{found:?}");
    assert_eq!(scrubbed(&cache, Scrub::new()).entries_read, KEYS as u64);
}

#[test]
fn one_process_has_the_turn_until_it_ends() {
    let (_folder, path, cache) = filled(&Options::new());
    let mut child = common::Child::start("has the turn", &[path.to_str().unwrap()]);
    child.expect("taken");
    assert!(cache.scrub_turn().unwrap().is_none());
    child.kill();
    let turn = cache.scrub_turn().unwrap().unwrap();
    let other = Cache::open(&path).unwrap();
    assert!(other.scrub_turn().unwrap().is_none());
    drop(turn);
    assert!(other.scrub_turn().unwrap().is_some());
    assert!(Options::new().heap().unwrap().scrub_turn().unwrap().is_some());
}

fn has_the_turn(arguments: &[&str]) {
    let cache = Cache::open(arguments[0]).unwrap();
    let _turn = cache.scrub_turn().unwrap().unwrap();
    common::say("taken");
    common::listen();
}

#[test]
fn child() {
    common::play(&[("has the turn", has_the_turn)]);
}

#[test]
fn a_read_only_opener_cannot_scrub() {
    let (_folder, path, _cache) = filled(&Options::new());
    let reader = Options::new().read_only(true).open(&path).unwrap();
    let error = reader.scrub(&mut Scrub::new()).unwrap_err();
    assert!(matches!(error, Error::ReadOnly { .. }), "{error}");
    assert!(matches!(reader.scrub_turn().unwrap_err(), Error::ReadOnly { .. }));
}
