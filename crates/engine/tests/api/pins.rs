//! Readers hold bytes in place while writers lap the rings many times. Held bytes stay as they are. Writers work
//! around them; if they can't, they say so at once and have evicted nothing.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Barrier, mpsc};
use std::thread;
use std::time::Duration;

use eyewall::{Cache, Error, Hit, Options, OwnedHit};

use crate::common;

const MIB: u64 = 1 << 20;

/// On a slow machine, a hundred threads may wait for a lock longer than the default.
fn volume(size: u64) -> Cache {
    Options::new().size(size).lock_deadline(Duration::from_mins(1)).heap().unwrap()
}

fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

fn put(cache: &Cache, number: u64, bytes: usize) {
    cache.put(key(number), common::value(&key(number), number as u32, bytes)).unwrap();
}

fn held(cache: &Cache, number: u64) -> OwnedHit {
    cache.get(key(number)).unwrap().expect("it was just put").into_owned()
}

fn check(number: u64, hit: &[u8]) {
    assert_eq!(u64::from(common::version_of(&key(number), hit)), number);
}

/// Puts new keys of `bytes` bytes until the whole volume was written `laps` times.
fn lap(cache: &Cache, from: u64, bytes: usize, laps: u64) {
    for number in 0..laps * cache.size() / bytes as u64 {
        put(cache, from + number, bytes);
    }
}

fn assert_sound(cache: &Cache) {
    let stats = cache.stats().unwrap();
    let sum = stats.live_bytes + stats.dead_bytes + stats.filler_bytes + stats.free_bytes;
    assert_eq!(sum, stats.data_bytes, "{stats:?}");
    assert_eq!(cache.verify().unwrap().problems, Vec::<String>::new());
}

#[test]
fn two_hundred_hits_of_one_thread_keep_their_bytes_while_writers_lap_them() {
    let cache = volume(16 * MIB);
    for number in 0..2000 {
        put(&cache, number, 6000);
    }
    let hits: Vec<_> = (0..2000).step_by(10).map(|number| (number, held(&cache, number))).collect();
    thread::scope(|scope| {
        for writer in 1..=2 {
            let cache = &cache;
            scope.spawn(move || lap(cache, writer * MIB, 6000, 6));
        }
    });
    for (number, hit) in &hits {
        check(*number, hit);
        assert!(!hit.is_copy());
    }
    assert_eq!(cache.stats().unwrap().pins, 200);
    drop(hits);
    assert_eq!(cache.stats().unwrap().pins, 0);
    assert_sound(&cache);
}

#[test]
fn two_hundred_threads_hold_one_hit_each() {
    let cache = volume(16 * MIB);
    let (ready, done) = (Arc::new(Barrier::new(201)), Arc::new(Barrier::new(201)));
    for number in 0..200 {
        put(&cache, number, 6000);
    }
    let holders = (0..200).map(|number| {
        let (cache, ready, done) = (cache.clone(), ready.clone(), done.clone());
        thread::spawn(move || {
            let hit = cache.get(key(number)).unwrap().unwrap();
            ready.wait();
            done.wait();
            check(number, &hit);
        })
    });
    let holders: Vec<_> = holders.collect();
    ready.wait();
    assert_eq!(cache.stats().unwrap().pins, 200);
    lap(&cache, MIB, 5000, 8);
    done.wait();
    for holder in holders {
        holder.join().unwrap();
    }
    let stats = cache.stats().unwrap();
    assert_eq!((stats.pins, stats.threads), (0, 0));
    assert_sound(&cache);
}

#[test]
fn readers_that_come_and_go_see_whole_entries_while_writers_lap() {
    let cache = volume(MIB);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for reader in 0..3 {
            let (cache, stop) = (&cache, &stop);
            scope.spawn(move || {
                let mut random = common::Random(reader);
                let mut hits = Vec::new();
                while !stop.load(Relaxed) {
                    let number = random.below(300);
                    if let Some(hit) = cache.get(key(number)).unwrap() {
                        check(number, &hit);
                        hits.push((number, hit));
                    }
                    if hits.len() > 20 {
                        let (number, hit) = hits.swap_remove(random.below(20) as usize);
                        check(number, &hit);
                    }
                }
                for (number, hit) in &hits {
                    check(*number, hit);
                }
            });
        }
        let mut random = common::Random(99);
        for _ in 0..20_000 {
            put(&cache, random.below(300), 16 + random.below(9000) as usize);
        }
        stop.store(true, Relaxed);
    });
    assert_eq!(cache.stats().unwrap().pins, 0);
    assert_sound(&cache);
}

#[test]
fn beyond_an_eighth_new_hits_are_copies_until_enough_is_dropped() {
    let cache = volume(16 * MIB);
    let mut hits = Vec::new();
    for number in 0..100 {
        put(&cache, number, 100_000);
        hits.push((number, cache.get(key(number)).unwrap().unwrap()));
    }
    let pinned = hits.iter().filter(|(_, hit)| !hit.is_copy()).count();
    assert!((20..40).contains(&pinned), "{pinned} of 100 hits are held in place");
    assert!(cache.stats().unwrap().copies >= 60);
    lap(&cache, MIB, 50_000, 3);
    for (number, hit) in &hits {
        check(*number, hit);
    }
    drop(hits);
    // The next puts that need room notice.
    lap(&cache, 2 * MIB, 50_000, 1);
    put(&cache, 5, 1000);
    assert!(!cache.get(key(5)).unwrap().unwrap().is_copy());
    assert_sound(&cache);
}

#[test]
fn copies_have_a_budget_and_stop_counting_when_dropped() {
    let cache = volume(16 * MIB);
    let mut pinned = Vec::new();
    for number in 0..60 {
        put(&cache, number, 100_000);
        pinned.push(cache.get(key(number)).unwrap().unwrap());
    }
    put(&cache, 1000, 900_000);
    let hold = || cache.get(key(1000)).unwrap().unwrap();
    let mut copies = Vec::new();
    while let Some(copy) = Some(hold()).filter(Hit::is_copy) {
        copies.push(copy);
        assert!(copies.len() < 200, "copies without end");
    }
    assert!((60..80).contains(&copies.len()), "{} copies of 0.9 MB", copies.len());
    copies.truncate(30);
    assert!(hold().is_copy());
    for copy in &copies {
        check(1000, copy);
    }
}

#[test]
fn small_pins_all_over_refuse_one_large_put_at_once_and_cost_nothing() {
    let cache = volume(16 * MIB);
    let entries = 4500;
    for number in 0..entries {
        put(&cache, number, 4000);
    }
    let hits: Vec<_> =
        (0..entries).step_by(20).filter_map(|number| Some((number, cache.get(key(number)).unwrap()?))).collect();
    assert!((180..210).contains(&hits.len()), "{} entries are held", hits.len());
    let before = cache.stats().unwrap();
    let present: Vec<_> = (0..entries).filter(|number| cache.contains(key(*number)).unwrap()).collect();
    let large = common::value(&key(MIB), 0, 1_000_000);
    for _ in 0..3 {
        assert!(matches!(cache.put(key(MIB), &large), Err(Error::Pinned { bytes }) if bytes > 1_000_000));
    }
    let after = cache.stats().unwrap();
    assert_eq!(after.entries, before.entries, "a refused put has evicted an entry");
    assert_eq!(after.pinned_refusals, before.pinned_refusals + 3);
    for number in present {
        check(number, &cache.peek(key(number)).unwrap().unwrap());
    }
    for (number, hit) in &hits {
        check(*number, hit);
    }
    // Entries that fit between the pins can still be put.
    lap(&cache, 2 * MIB, 4000, 2);
    drop(hits);
    cache.put(key(MIB), &large).unwrap();
    assert_sound(&cache);
}

#[test]
fn more_holders_than_pins_get_copies() {
    // Roomy buckets, so that none of these entries is evicted for another.
    let cache = Options::new().size(512 << 10).entry_size_hint(100).heap().unwrap();
    for number in 0..400 {
        put(&cache, number, 100);
    }
    let hits: Vec<_> = (0..400).map(|number| (number, cache.get(key(number)).unwrap().unwrap())).collect();
    let copies = hits.iter().filter(|(_, hit)| hit.is_copy()).count();
    assert!(copies > 100 && copies < 300, "{copies} of 400 hits are copies");
    lap(&cache, MIB, 700, 3);
    for (number, hit) in &hits {
        check(*number, hit);
    }
}

#[test]
fn more_threads_than_thread_slots_can_read_and_write() {
    let cache = volume(512 << 10);
    let ready = Arc::new(Barrier::new(100));
    let threads = (0..100).map(|number| {
        let (cache, ready) = (cache.clone(), ready.clone());
        thread::spawn(move || {
            // Every thread that can have a slot has one before any thread ends.
            let _ = cache.get(key(number));
            ready.wait();
            for round in 0..8 {
                put(&cache, 1000 + number, 100 + round * 600);
                if let Some(hit) = cache.get(key(1000 + number)).unwrap() {
                    check(1000 + number, &hit);
                }
            }
            ready.wait();
        })
    });
    let threads: Vec<_> = threads.collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(cache.stats().unwrap().threads, 0);
    assert_sound(&cache);
}

#[test]
fn owned_hits_of_one_entry_share_a_pin() {
    let cache = volume(MIB);
    put(&cache, 1, 3000);
    let hits: Vec<_> = (0..1000).map(|_| held(&cache, 1)).collect();
    assert_eq!(cache.stats().unwrap().pins, 1);
    let clones = hits.clone();
    drop(hits);
    put(&cache, 1, 2000);
    lap(&cache, 10, 2000, 10);
    assert_eq!(cache.stats().unwrap().pins, 1);
    thread::spawn(move || clones.iter().for_each(|hit| check(1, hit))).join().unwrap();
    assert_eq!(cache.stats().unwrap().pins, 0);
}

#[test]
fn hits_outlive_the_threads_that_got_them_and_leak_no_slot() {
    let cache = volume(512 << 10);
    // No buffer: on a busy machine the hits would pile up, and hold an eighth of the volume.
    let (sender, receiver) = mpsc::sync_channel::<(u64, OwnedHit)>(0);
    let dropper = thread::spawn(move || {
        let mut late = Vec::new();
        for (number, hit) in receiver {
            check(number, &hit);
            late.push((number, hit));
            if late.len() > 10 {
                let (number, hit) = late.remove(0);
                check(number, &hit);
            }
        }
    });
    for number in 0..500 {
        let (cache, sender) = (cache.clone(), sender.clone());
        let got = thread::spawn(move || {
            put(&cache, number, 1500);
            let hit = held(&cache, number);
            let copied = hit.is_copy();
            sender.send((number, hit)).unwrap();
            copied
        });
        assert!(!got.join().unwrap(), "after {number} threads a hit is a copy");
    }
    drop(sender);
    dropper.join().unwrap();
    let stats = cache.stats().unwrap();
    assert_eq!(stats.pins, 0);
    assert!(stats.threads <= 12, "{} thread slots are in use", stats.threads);
    assert_sound(&cache);
}

#[test]
fn the_largest_entries_follow_each_other_forever() {
    let cache = Options::new().size(16 * MIB).entry_bytes_max(4 * MIB).heap().unwrap();
    let most = (4 * MIB - 64) as usize;
    for number in 0..60 {
        put(&cache, number, most);
        check(number, &cache.get(key(number)).unwrap().unwrap());
        put(&cache, 1000 + number, 3000);
        check(1000 + number, &cache.get(key(1000 + number)).unwrap().unwrap());
    }
    assert_sound(&cache);
    let too_large = vec![0; 4 * MIB as usize];
    assert!(matches!(cache.put("key", &too_large), Err(Error::EntryTooLarge { .. })));
}

#[test]
fn a_volume_of_hot_entries_of_all_sizes_stays_full() {
    let cache = volume(16 * MIB);
    let mut random = common::Random(5);
    let mut least = 100;
    for number in 0..6000_u64 {
        put(&cache, number, 1000 + random.below(99_000) as usize);
        for _ in 0..3 {
            let recent = number.saturating_sub(random.below(300));
            if let Some(hit) = cache.get(key(recent)).unwrap() {
                check(recent, &hit);
            }
        }
        if number > 1000 && number % 100 == 0 {
            let stats = cache.stats().unwrap();
            least = least.min(stats.live_bytes * 100 / stats.data_bytes);
        }
    }
    assert!(least >= 75, "at times only {least} % of the data was live");
    assert_sound(&cache);
}

#[test]
fn a_large_put_evicts_about_as_much_as_it_needs() {
    let cache = volume(16 * MIB);
    for number in 0..5000 {
        put(&cache, number, 4000);
    }
    let before = cache.stats().unwrap().entries;
    put(&cache, MIB, 1_000_000);
    let lost = before + 1 - cache.stats().unwrap().entries;
    assert!(lost <= 2 * 1_000_000 / 4000, "one put of 1 MB evicted {lost} of {before} entries");
}
