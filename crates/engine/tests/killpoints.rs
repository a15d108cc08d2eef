//! Every store is a kill point. A process works on a volume and is killed before its first store. Then the same
//! happens on a new volume before its second store, and so on, until the process survives. The next process finds a
//! sound volume, with nothing lost except what was being changed, and continues.
//!
//! Each scenario runs twice: once with this process attached beside the dying one, so that it takes over the lock,
//! and once without, so that the next process to attach puts things in order.
#![cfg(test)]

mod anatomy;
mod common;

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;

use anatomy::{Anatomy, MOVES, word};
use common::{Child, Random, fork, soak, value, version_of};
use eyewall::{Cache, Change, Committed, Options, OwnedHit, PutOptions, Updated, Writer, seams};

const VALUE_BYTES: usize = 900;

/// The work before, during and after the deaths.
struct Scenario {
    name: &'static str,
    /// Prepares the volume, and holds what is to be held.
    set_up: fn(&Cache) -> Vec<OwnedHit>,
    /// What the dying process does.
    act: fn(&Cache),
    /// What must be true afterwards. The flag says whether the process survived.
    check: fn(&Cache, bool),
    /// Whether the scenario makes sense without this process.
    alone: bool,
}

const SCENARIOS: &[Scenario] = &[
    Scenario { name: "new", set_up: set_up_few, act: |cache| put(cache, "key", 1), check: check_new, alone: true },
    Scenario {
        name: "overwrite",
        set_up: set_up_few_and_key,
        act: |cache| put(cache, "key", 2),
        check: check_overwrite,
        alone: true,
    },
    Scenario {
        name: "remove",
        set_up: set_up_few_and_key,
        act: |cache| assert!(cache.remove("key").unwrap()),
        check: check_remove,
        alone: true,
    },
    Scenario { name: "update", set_up: set_up_few_and_key, act: update, check: check_overwrite, alone: true },
    Scenario {
        name: "evict",
        set_up: set_up_full,
        act: |cache| put_others(cache, 5000, 25),
        check: check_last,
        alone: true,
    },
    Scenario {
        name: "promote",
        set_up: set_up_hot,
        act: |cache| put_others(cache, 5000, 110),
        check: check_hot,
        alone: true,
    },
    Scenario { name: "reinsert", set_up: set_up_all_hot, act: put_and_get_others, check: check_reinsert, alone: true },
    Scenario {
        name: "move",
        set_up: set_up_few,
        act: |cache| put_others(cache, 5000, 70),
        check: check_move,
        alone: true,
    },
    Scenario {
        name: "skip",
        set_up: set_up_held,
        act: |cache| put_others(cache, 5000, 80),
        check: check_skip,
        alone: false,
    },
    Scenario { name: "wrap", set_up: set_up_full, act: put_odd_sizes, check: check_some, alone: true },
    Scenario { name: "large", set_up: set_up_few, act: put_large_twice, check: check_large, alone: true },
    Scenario { name: "writer", set_up: set_up_few_and_key, act: write_in_pieces, check: check_writer, alone: true },
    Scenario { name: "writer full", set_up: set_up_full, act: write_in_pieces, check: check_writer_full, alone: true },
    Scenario {
        name: "writer moves",
        set_up: set_up_few_and_key,
        act: write_beside_others,
        check: check_writer,
        alone: true,
    },
    Scenario { name: "abort", set_up: set_up_few_and_key, act: write_and_abort, check: check_abort, alone: true },
    Scenario {
        name: "clear",
        set_up: set_up_few,
        act: |cache| assert!(cache.clear().unwrap() >= FEW),
        check: check_clear,
        alone: true,
    },
    Scenario {
        name: "reset",
        set_up: set_up_damaged,
        act: |cache| put_others(cache, 5000, 3),
        check: check_reset,
        alone: true,
    },
    Scenario { name: "split", set_up: set_up_few, act: |cache| put_tiny(cache, 150), check: check_split, alone: true },
    Scenario { name: "merge", set_up: set_up_tiny, act: put_large_ones, check: check_merge, alone: true },
    Scenario {
        name: "displace",
        set_up: set_up_full,
        act: |cache| put_tiny(cache, 900),
        check: check_displaced,
        alone: true,
    },
    Scenario {
        name: "repair",
        set_up: set_up_dead,
        act: |cache| put_others(cache, 6000, 3),
        check: check_repair,
        alone: true,
    },
];

fn key(number: u64) -> String {
    format!("key {number:06}")
}

fn put(cache: &Cache, key: &str, version: u32) {
    cache.put(key, value(key.as_bytes(), version, VALUE_BYTES)).unwrap();
}

fn get(cache: &Cache, key: &str) -> Option<u32> {
    cache.get(key).unwrap().map(|hit| version_of(key.as_bytes(), &hit))
}

fn put_others(cache: &Cache, from: u64, count: u64) {
    (from..from + count).for_each(|number| put(cache, &key(number), 1));
}

fn put_and_get_others(cache: &Cache) {
    for number in 5000..5040 {
        put(cache, &key(number), 1);
        get(cache, &key(number));
        get(cache, &key(number - 1));
    }
}

fn put_odd_sizes(cache: &Cache) {
    let mut random = Random(7);
    for number in 5000..5050 {
        let key = key(number);
        cache.put(&key, value(key.as_bytes(), 1, 10 + random.below(2500) as usize)).unwrap();
    }
}

fn put_large_twice(cache: &Cache) {
    for version in [1, 2] {
        cache.put("large", value(b"large", version, 20_000)).unwrap();
    }
}

/// Smaller than the entries that the index has slots for.
fn put_tiny(cache: &Cache, count: u64) {
    for key in (7000..7000 + count).map(key) {
        cache.put(&key, value(key.as_bytes(), 1, 20)).unwrap();
    }
}

fn put_large_ones(cache: &Cache) {
    for key in (5000..5066).map(key) {
        cache.put(&key, value(key.as_bytes(), 1, 3000)).unwrap();
    }
}

/// Long enough for the room to grow.
const WRITTEN_BYTES: usize = 28_000;

fn write_and(cache: &Cache, beside: impl Fn(u64)) -> Writer {
    let options = PutOptions::new().metadata(b"m");
    let mut writer = cache.writer("key", &options, Some(1000)).unwrap();
    for (number, piece) in value(b"key", 2, WRITTEN_BYTES).chunks(7000).enumerate() {
        beside(number as u64);
        writer.write_all(piece).unwrap();
    }
    writer
}

fn write_in_pieces(cache: &Cache) {
    assert!(matches!(write_and(cache, |_| ()).commit().unwrap(), Committed::Stored(_)));
}

fn write_beside_others(cache: &Cache) {
    let writer = write_and(cache, |number| put(cache, &key(5000 + number), 1));
    assert!(matches!(writer.commit().unwrap(), Committed::Stored(_)));
}

fn write_and_abort(cache: &Cache) {
    write_and(cache, |_| ()).abort();
}

fn update(cache: &Cache) {
    let updated = cache.update("key", &PutOptions::new(), |hit| {
        assert_eq!(version_of(b"key", hit.unwrap()), 1);
        Change::Put(value(b"key", 2, VALUE_BYTES))
    });
    assert!(matches!(updated.unwrap(), Updated::Stored(_)));
}

/// Fewer than fit the small ring.
const FEW: u64 = 50;

fn set_up_few(cache: &Cache) -> Vec<OwnedHit> {
    put_others(cache, 0, FEW);
    Vec::new()
}

fn set_up_few_and_key(cache: &Cache) -> Vec<OwnedHit> {
    put(cache, "key", 1);
    set_up_few(cache)
}

fn set_up_full(cache: &Cache) -> Vec<OwnedHit> {
    put_others(cache, 0, 700);
    Vec::new()
}

fn set_up_tiny(cache: &Cache) -> Vec<OwnedHit> {
    set_up_few(cache);
    put_tiny(cache, 150);
    Vec::new()
}

/// The five newest are hot.
fn set_up_hot(cache: &Cache) -> Vec<OwnedHit> {
    set_up_full(cache);
    for number in (695..700).cycle().take(35) {
        assert_eq!(get(cache, &key(number)), Some(1));
    }
    Vec::new()
}

fn set_up_all_hot(cache: &Cache) -> Vec<OwnedHit> {
    set_up_full(cache);
    for number in 0..1400 {
        get(cache, &key(number % 700));
    }
    Vec::new()
}

/// Every ninth entry is held.
fn set_up_held(cache: &Cache) -> Vec<OwnedHit> {
    set_up_full(cache);
    let present = (0..700).filter_map(|number| cache.get(key(number)).unwrap());
    present.step_by(9).map(eyewall::Hit::into_owned).collect()
}

/// The oldest record of the small ring can't be read any more.
fn set_up_damaged(cache: &Cache) -> Vec<OwnedHit> {
    set_up_full(cache);
    let path = cache.path().unwrap();
    let file = File::options().write(true).open(path).unwrap();
    let bytes = std::fs::read(path).unwrap();
    let anatomy = Anatomy::of(&bytes);
    let tail = word(&bytes, anatomy.stripe_word(0, anatomy::SMALL_TAIL));
    file.write_all_at(&[0xff; 8], anatomy.small_byte(0, tail)).unwrap();
    Vec::new()
}

/// Somebody has already died in the middle of evicting.
fn set_up_dead(cache: &Cache) -> Vec<OwnedHit> {
    set_up_full(cache);
    let status = fork(|| {
        seams::die_after(23);
        put_others(cache, 5000, 25);
    });
    assert_eq!(status.wait().signal(), Some(libc::SIGKILL));
    Vec::new()
}

fn check_few(cache: &Cache, _: bool) {
    (0..FEW).for_each(|number| assert_eq!(get(cache, &key(number)), Some(1), "entry {number} was lost"));
}

fn check_new(cache: &Cache, survived: bool) {
    check_few(cache, survived);
    let found = get(cache, "key");
    assert!(found == Some(1) || found.is_none() && !survived, "{found:?}");
}

fn check_overwrite(cache: &Cache, survived: bool) {
    check_few(cache, survived);
    let found = get(cache, "key");
    assert!(found == Some(2) || found == Some(1) && !survived, "{found:?}");
    // The claim of a dead process is void.
    let updated = cache.update("key", &PutOptions::new(), |_| Change::Put(value(b"key", 3, 50)));
    assert!(matches!(updated.unwrap(), Updated::Stored(_)));
}

fn check_written(cache: &Cache, survived: bool) {
    let found = get(cache, "key");
    assert!(found == Some(2) || matches!(found, None | Some(1)) && !survived, "{found:?}");
    assert!(cache.follow("key").unwrap().is_none(), "the dead writer writes nothing");
    // The claim of a dead process is void.
    let mut writer = cache.writer("key", &PutOptions::new(), None).unwrap();
    writer.write_all(&value(b"key", 3, 50)).unwrap();
    assert!(matches!(writer.commit().unwrap(), Committed::Stored(_)));
}

fn check_writer(cache: &Cache, survived: bool) {
    check_few(cache, survived);
    check_written(cache, survived);
}

fn check_writer_full(cache: &Cache, survived: bool) {
    check_some(cache, survived);
    check_written(cache, survived);
}

fn check_abort(cache: &Cache, survived: bool) {
    check_few(cache, survived);
    assert_eq!(get(cache, "key"), Some(1));
    assert!(matches!(cache.writer("key", &PutOptions::new(), None).unwrap().commit().unwrap(), Committed::Stored(_)));
    assert!(cache.remove("key").unwrap());
}

fn check_remove(cache: &Cache, survived: bool) {
    check_few(cache, survived);
    let found = get(cache, "key");
    assert!(found.is_none() || found == Some(1) && !survived, "{found:?}");
}

fn check_some(cache: &Cache, _: bool) {
    let entries = cache.stats().unwrap().entries;
    assert!(entries > 150, "{entries} entries are left");
}

fn check_last(cache: &Cache, survived: bool) {
    check_some(cache, survived);
    assert!(!survived || get(cache, &key(5024)) == Some(1));
}

fn check_hot(cache: &Cache, survived: bool) {
    check_some(cache, survived);
    (695..700).for_each(|number| assert_eq!(get(cache, &key(number)), Some(1), "hot entry {number} was lost"));
    assert!(!survived || cache.stats().unwrap().promotions > 0);
}

fn check_reinsert(cache: &Cache, survived: bool) {
    check_some(cache, survived);
    assert!(!survived || cache.stats().unwrap().reinsertions > 0);
}

fn check_move(cache: &Cache, survived: bool) {
    check_few(cache, survived);
    assert!(!survived || cache.stats().unwrap().moved > 0);
}

fn check_skip(cache: &Cache, survived: bool) {
    check_some(cache, survived);
    assert!(!survived || cache.stats().unwrap().filler_bytes > 0);
}

fn check_repair(cache: &Cache, survived: bool) {
    check_some(cache, survived);
    assert!(cache.stats().unwrap().repairs > 0);
}

fn check_large(cache: &Cache, survived: bool) {
    check_few(cache, survived);
    let found = get(cache, "large");
    assert!(found == Some(2) || !survived && matches!(found, None | Some(1)), "{found:?}");
}

fn check_clear(cache: &Cache, survived: bool) {
    let left = (0..FEW).filter(|number| get(cache, &key(*number)) == Some(1)).count();
    assert!(!survived || left == 0, "{left} entries survived");
}

/// The slots of the index, and those that it should have.
fn slots(cache: &Cache) -> (u64, u64) {
    let stripe = &cache.details().unwrap().stripes[0];
    (stripe.index_slots, stripe.index_slots_wanted)
}

fn check_split(cache: &Cache, survived: bool) {
    check_few(cache, survived);
    let (slots, wanted) = slots(cache);
    assert!(!survived || slots >= 1200 && wanted >= slots, "{slots} of {wanted}");
}

fn check_merge(cache: &Cache, survived: bool) {
    check_few(cache, survived);
    let (slots, wanted) = slots(cache);
    assert!(!survived || slots <= 3000 && wanted < slots, "{slots} of {wanted}");
}

fn check_displaced(cache: &Cache, survived: bool) {
    let bytes = std::fs::read(cache.path().unwrap()).unwrap();
    let moves = word(&bytes, Anatomy::of(&bytes).stripe_word(0, MOVES));
    assert!(!survived || moves > 0, "no entry was moved to its other bucket");
}

fn check_reset(cache: &Cache, survived: bool) {
    let stats = cache.stats().unwrap();
    assert!(stats.resets == 1 || !survived, "{stats:?}");
    assert!(stats.entries > 300, "main was lost, too: {} entries are left", stats.entries);
}

/// No contradiction, no leak, and every entry is complete.
fn check_sound(cache: &Cache, pins: u64) {
    let stats = cache.stats().unwrap();
    let sum = stats.live_bytes + stats.dead_bytes + stats.filler_bytes + stats.free_bytes;
    assert_eq!(sum, stats.data_bytes, "{stats:?}");
    assert_eq!((stats.pins, stats.processes), (pins, 1), "{stats:?}");
    assert_eq!(cache.verify().unwrap().problems, Vec::<String>::new());
    let mut entries = 0;
    for hit in cache {
        version_of(hit.key(), &hit);
        entries += 1;
    }
    assert_eq!(entries, stats.entries);
}

/// Puts of all sizes continue, and evict what they must.
fn go_on(cache: &Cache) {
    let mut random = Random(3);
    for number in 9000..9120 {
        let key = key(number);
        let bytes = if number % 40 == 0 { 15_000 } else { 10 + random.below(3000) as usize };
        cache.put(&key, value(key.as_bytes(), 1, bytes)).unwrap();
        assert_eq!(get(cache, &key), Some(1));
    }
}

/// Lets a process die before store number `stores`. Returns true if it survived.
fn one_death(scenario: &Scenario, path: &Path, stores: i64, alone: bool) -> bool {
    let _ = std::fs::remove_file(path);
    // Roomy buckets, unless the scenario needs others, so that no entry is lost because its own are full.
    let hint = if scenario.name == "displace" { 4000 } else { 200 };
    let options = Options::new().size(512 << 10).entry_size_hint(hint);
    let mut cache = Some(options.open(path).unwrap());
    let held = (scenario.set_up)(cache.as_ref().unwrap());
    if alone {
        drop(cache.take());
    }
    let status = fork(|| {
        seams::die_after(stores);
        match &cache {
            Some(cache) => (scenario.act)(cache),
            None => (scenario.act)(&options.open(path).unwrap()),
        }
        seams::die_after(i64::MAX);
    });
    let status = status.wait();
    let survived = status.success();
    assert!(survived || status.signal() == Some(libc::SIGKILL), "store {stores}: {status}");
    let cache = cache.unwrap_or_else(|| options.open(path).unwrap());
    check_sound(&cache, held.len() as u64);
    (scenario.check)(&cache, survived);
    for hit in &held {
        version_of(hit.key(), hit);
    }
    go_on(&cache);
    check_sound(&cache, held.len() as u64);
    for hit in &held {
        version_of(hit.key(), hit);
    }
    drop(held);
    check_sound(&cache, 0);
    survived
}

fn run(name: &str) {
    let scenario = SCENARIOS.iter().find(|scenario| scenario.name == name).unwrap();
    let folder = common::fast_folder();
    let path = folder.path().join("volume");
    for alone in [false, true].into_iter().take(1 + usize::from(scenario.alone)) {
        let mut stores = 0;
        while !one_death(scenario, &path, stores, alone) {
            // The short form tries each of the first stores, then some of the others in turn.
            stores += if stores < 40 { 1 } else { soak(stores / 8, 1) };
            assert!(stores < 1 << 20, "it never survives");
        }
        eprintln!("{name}: {stores} stores, {}", if alone { "alone" } else { "beside us" });
    }
}

#[test]
fn child() {
    common::play(&[("scenario", |arguments| run(arguments[0]))]);
}

fn survive(scenario: &str) {
    Child::start("scenario", &[scenario]).finish();
}

#[test]
fn a_death_in_a_put_of_a_new_key_loses_nothing_else() {
    survive("new");
}

#[test]
fn a_death_in_an_overwrite_leaves_the_old_value_or_the_new_one() {
    survive("overwrite");
}

#[test]
fn a_death_in_a_remove_leaves_the_entry_or_none() {
    survive("remove");
}

#[test]
fn a_death_in_an_update_frees_the_claim() {
    survive("update");
}

#[test]
fn a_death_in_an_eviction_leaves_a_sound_volume() {
    survive("evict");
}

#[test]
fn a_death_in_a_promotion_loses_no_hot_entry() {
    survive("promote");
}

#[test]
fn a_death_in_a_reinsertion_leaves_a_sound_volume() {
    survive("reinsert");
}

#[test]
fn a_death_while_entries_move_to_main_loses_none() {
    survive("move");
}

#[test]
fn a_death_in_a_skip_over_held_entries_leaves_them_held() {
    survive("skip");
}

#[test]
fn a_death_where_a_ring_wraps_leaves_a_sound_volume() {
    survive("wrap");
}

#[test]
fn a_death_in_a_large_put_leaves_the_old_value_or_the_new_one() {
    survive("large");
}

#[test]
fn a_death_in_a_writer_leaves_the_old_value_or_the_new_one() {
    survive("writer");
    survive("writer full");
}

#[test]
fn a_death_in_a_writer_whose_room_moves_leaves_the_old_value_or_the_new_one() {
    survive("writer moves");
}

#[test]
fn a_death_in_an_abort_leaves_the_old_value() {
    survive("abort");
}

#[test]
fn a_death_while_the_index_grows_loses_nothing() {
    survive("split");
}

#[test]
fn a_death_while_the_index_shrinks_loses_nothing() {
    survive("merge");
}

#[test]
fn a_death_while_an_entry_goes_to_its_other_bucket_leaves_a_sound_volume() {
    survive("displace");
}

#[test]
fn a_death_in_a_clear_leaves_the_entries_not_yet_removed() {
    survive("clear");
}

#[test]
fn a_death_while_a_damaged_ring_is_emptied_leaves_the_other_one() {
    survive("reset");
}

#[test]
fn a_death_in_the_repair_after_a_death_is_repaired() {
    survive("repair");
}
