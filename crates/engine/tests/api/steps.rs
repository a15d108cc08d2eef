//! The index adapts to the entries: it takes the slots that they need from the room for data, and gives them back.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use eyewall::{Cache, Options, Purge, PutOptions, Unclean};

use crate::anatomy::{Anatomy, MOVES, SMALL_TAIL, word};
use crate::common;
use crate::common::{Random, fast_folder};

/// A cap, of which some part is to be filled.
const SIZE: u64 = 4 << 20;

fn key(number: u64) -> [u8; 8] {
    number.to_le_bytes()
}

/// Puts values of `bytes` bytes, twice the cap in all. Each gets as many hits as the largest need to stay.
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

/// The percentage of the cap that holds entries.
fn live_percent(cache: &Cache) -> u64 {
    cache.stats().unwrap().live_bytes * 100 / SIZE
}

#[test]
fn a_volume_fills_up_with_entries_of_any_size() {
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

/// Slots for the largest entries only.
const FEW_SLOTS: u32 = 1 << 20;

/// Copying this many takes longer than a step.
const LARGE_BYTES: usize = 2 << 20;

/// How many entries steps have moved to their other bucket, over all stripes.
fn moves(path: &Path) -> u64 {
    let bytes = std::fs::read(path).unwrap();
    let anatomy = Anatomy::of(&bytes);
    (0..anatomy.stripes).map(|stripe| word(&bytes, anatomy.stripe_word(stripe, MOVES))).sum()
}

#[test]
fn a_step_brings_no_purged_entry_back() {
    let (mut moved, mut random) = (0, Random(1));
    for round in 0..20 {
        let folder = fast_folder();
        let path = folder.path().join("volume");
        let cache = Options::new().size(SIZE).entry_size_hint(FEW_SLOTS).open(&path).unwrap();
        let put = |number: u64, tags: &[&str]| {
            cache.put_with(key(number), [7; 20], &PutOptions::new().tags(tags)).unwrap();
        };
        // More slots take room that the log has to leave first.
        for number in 0..6000 {
            cache.put(key(1 << 20 | number), [1; 1000]).unwrap();
        }
        // Until slots are scarce.
        let (before, wanted) = (moves(&path), 1 + random.below(300));
        let mut purged = 0;
        while moves(&path) < before + wanted {
            for _ in 0..50 {
                put(purged, if purged % 8 == 0 { &[] } else { &["gone"] });
                purged += 1;
            }
        }
        cache.purge_tag("gone", if round % 2 == 0 { Purge::Hard } else { Purge::Soft }).unwrap();
        let before = moves(&path);
        // Each put sweeps a bucket and makes a step.
        for number in purged..purged + 1500 {
            put(number, &[]);
        }
        moved += moves(&path) - before;
        // The pass is over, and the notes are forgotten.
        cache.sync().unwrap();
        for number in (0..purged).filter(|number| number % 8 != 0) {
            assert!(cache.get(key(number)).unwrap().is_none(), "round {round}: {number} is back");
        }
    }
    assert!(moved > 100, "{moved} entries were moved");
}

#[test]
fn a_walk_meets_each_remaining_entry_once_while_the_index_grows_and_shrinks() {
    let mut moved = 0;
    for seed in 0..common::soak(30, 500) {
        let folder = fast_folder();
        let path = folder.path().join("volume");
        let cache = Options::new().size(512 << 10).entry_size_hint(FEW_SLOTS).open(&path).unwrap();
        let mut random = Random(seed);
        for number in 0..1500 {
            cache.put(key(number), [1; 20]).unwrap();
        }
        let before: BTreeSet<Vec<u8>> = cache.iter().map(|hit| hit.key().to_vec()).collect();
        let (mut seen, mut next) = (Vec::new(), 10_000);
        let moves_before = moves(&path);
        for hit in &cache {
            seen.push(hit.key().to_vec());
            drop(hit);
            for _ in 0..random.below(4) {
                next += 1;
                let bytes = if random.below(200) == 0 { 20_000 } else { 20 };
                cache.put(key(next), vec![2; bytes]).unwrap();
            }
        }
        moved += moves(&path) - moves_before;
        let once: BTreeSet<Vec<u8>> = seen.iter().cloned().collect();
        assert_eq!(once.len(), seen.len(), "seed {seed}: some entries were met twice");
        let stayed = before.into_iter().filter(|key| cache.contains(key).unwrap());
        let missed: Vec<Vec<u8>> = stayed.filter(|key| !once.contains(key)).collect();
        assert!(missed.is_empty(), "seed {seed}: {} were missed", missed.len());
    }
    assert!(moved > 100, "{moved} entries were moved");
}

#[test]
fn an_abandoned_log_blocks_no_step() {
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let cache = Options::new().size(SIZE).open(&path).unwrap();
    for number in 0..3000 {
        cache.put(key(number), [1; 1000]).unwrap();
    }
    let bytes = std::fs::read(&path).unwrap();
    let anatomy = Anatomy::of(&bytes);
    for stripe in 0..anatomy.stripes {
        let tail = word(&bytes, anatomy.stripe_word(stripe, SMALL_TAIL));
        let file = File::options().write(true).open(&path).unwrap();
        file.write_all_at(&[0xff; 8], anatomy.small_byte(stripe, tail)).unwrap();
    }
    // Nobody asks for statistics meanwhile, which would recount everything.
    fill(&cache, 50, 10_000);
    assert!(cache.stats().unwrap().resets > 0);
    assert!(live_percent(&cache) >= 80, "{} %", live_percent(&cache));
}

#[test]
fn an_emptied_volume_is_left_in_order() {
    let _turn = common::turn();
    let folder = fast_folder();
    let (path, copy) = (folder.path().join("volume"), folder.path().join("copy"));
    let options = Options::new().size(1 << 20).entry_bytes_max(256 << 10);
    fill(&options.open(&path).unwrap(), 50, 0);
    std::fs::copy(&path, &copy).unwrap();
    let cache = Options::new().unclean(Unclean::Clear).open(&copy).unwrap();
    assert_eq!(cache.stats().unwrap().entries, 0);
    // Too large for the small ring, which therefore stays as it is.
    cache.put("large", vec![1; 200_000]).unwrap();
    drop(cache);
    let cache = Cache::open(&copy).unwrap();
    assert!(cache.contains("large").unwrap());
    assert!(cache.verify().unwrap().is_sound());
}

#[test]
fn a_copy_of_a_copy_keeps_new_buckets_of_the_index() {
    let _turn = common::turn();
    let folder = fast_folder();
    let [first, second, third] = ["1", "2", "3"].map(|name| folder.path().join(name));
    drop(Options::new().size(SIZE).open(&first).unwrap());
    std::fs::copy(&first, &second).unwrap();
    let cache = Cache::open(&second).unwrap();
    fill(&cache, 50, 0);
    let entries = cache.stats().unwrap().entries;
    assert!(cache.stats().unwrap().index_steps > 0);
    drop(cache);
    std::fs::copy(&second, &third).unwrap();
    let cache = Cache::open(&third).unwrap();
    assert_eq!(cache.iter().count() as u64, entries);
}

#[test]
fn a_reader_without_pins_reads_a_large_value_during_steps() {
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let writer = Options::new().size(16 << 20).entry_bytes_max(4 << 20).open(&path).unwrap();
    writer.put("large", vec![1; LARGE_BYTES]).unwrap();
    let reader = Options::new().read_only(true).open(&path).unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // In turn small ones, for which the index grows, and large ones.
            for number in 0.. {
                if is_over.load(Relaxed) {
                    return;
                }
                let bytes = if number / 20_000 % 2 == 0 { 20 } else { 2000 };
                writer.put(key(number), vec![2; bytes]).unwrap();
                writer.get("large").unwrap();
            }
        });
        for _ in 0..common::soak(20, 200) {
            if let Some(hit) = reader.get("large").unwrap() {
                assert!(hit.len() == LARGE_BYTES && hit.iter().all(|byte| *byte == 1));
            }
        }
        is_over.store(true, Relaxed);
    });
}
