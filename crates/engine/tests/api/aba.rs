//! A reader finds a key's slot, and stops. Meanwhile the ring wraps, and other entries take the place that the slot
//! pointed to: entries of other keys, or newer ones of the same key. The reader continues, and never returns a wrong
//! one.

use eyewall::{Cache, Options, seams};

use crate::common;

/// Records of one size tile a ring in the same way in every lap, so positions come up again and again.
const VALUE_BYTES: usize = 1000;
const KEY: &[u8] = b"the key0";

fn small() -> Cache {
    Options::new().size(512 << 10).entry_size_hint(1000).heap().unwrap()
}

fn records_of_a_lap(cache: &Cache) -> u64 {
    cache.stats().unwrap().data_bytes / 1048
}

/// Puts `count` other keys of the same size, and gets each once, so that both rings turn.
fn put_others(cache: &Cache, from: u64, count: u64) {
    for number in from..from + count {
        let key = number.to_le_bytes();
        cache.put(key, common::value(&key, number as u32, VALUE_BYTES)).unwrap();
        assert!(cache.get(key).unwrap().is_some());
    }
}

/// Puts the key without any hits, so that it is evicted when its turn comes.
fn put_cold(cache: &Cache, version: u32) {
    cache.remove(KEY).unwrap();
    put(cache, version);
}

fn put(cache: &Cache, version: u32) {
    cache.put(KEY, common::value(KEY, version, VALUE_BYTES)).unwrap();
}

fn get(cache: &Cache) -> Option<u32> {
    cache.get(KEY).unwrap().map(|hit| common::version_of(KEY, &hit))
}

#[test]
fn other_entries_at_the_same_position_are_never_taken_for_the_key() {
    let cache = small();
    let lap = records_of_a_lap(&cache);
    let mut others = 1;
    let mut evicted = 0;
    for count in (0..2 * lap).step_by(5) {
        put_cold(&cache, count as u32);
        let (writer, from) = (cache.clone(), others);
        seams::pause_before_pin(move || put_others(&writer, from, count));
        match get(&cache) {
            Some(version) => assert_eq!(u64::from(version), count),
            None => evicted += 1,
        }
        others += count;
    }
    assert!(evicted > lap / 10, "only {evicted} rounds wrapped");
    assert!(cache.verify().unwrap().is_sound());
}

#[test]
fn a_newer_entry_of_the_key_at_the_same_position_is_what_the_reader_gets() {
    let cache = small();
    let lap = records_of_a_lap(&cache);
    let mut others = 1;
    for count in (0..2 * lap).step_by(5) {
        put(&cache, 2 * count as u32);
        let (writer, from) = (cache.clone(), others);
        seams::pause_before_pin(move || {
            put_others(&writer, from, count);
            put(&writer, 2 * count as u32 + 1);
        });
        assert_eq!(get(&cache), Some(2 * count as u32 + 1));
        others += count;
    }
}

/// Slots keep six bits of the lap: after sixty-four laps, a position looks as before.
#[test]
fn sixty_four_laps_make_no_difference() {
    let cache = small();
    let laps = 64 * records_of_a_lap(&cache);
    let mut others = 1;
    for shift in 0..3 {
        for newer in [false, true] {
            put_cold(&cache, 7);
            let (writer, from) = (cache.clone(), others);
            seams::pause_before_pin(move || {
                put_others(&writer, from, laps + shift);
                if newer {
                    put(&writer, 8);
                }
            });
            let found = get(&cache);
            assert!(found == newer.then_some(8), "{found:?}");
            others += laps + shift;
        }
    }
}

#[test]
fn a_removed_key_is_missed_even_by_a_reader_that_had_found_it() {
    let cache = small();
    put(&cache, 1);
    let writer = cache.clone();
    seams::pause_before_pin(move || assert!(writer.remove(KEY).unwrap()));
    assert_eq!(get(&cache), None);
    assert_eq!(cache.stats().unwrap().pins, 0);
}

#[test]
fn a_hit_that_is_held_for_a_hundred_laps_keeps_its_bytes() {
    let cache = small();
    let lap = records_of_a_lap(&cache);
    put(&cache, 3);
    let hit = cache.get(KEY).unwrap().unwrap();
    for number in 0..100 {
        put_others(&cache, 1 + number * lap, lap);
        assert_eq!(common::version_of(KEY, &hit), 3);
        if number % 10 == 0 {
            put(&cache, 4);
        }
    }
    assert!(!hit.is_copy());
    drop(hit);
    assert_eq!(cache.stats().unwrap().pins, 0);
    assert!(cache.verify().unwrap().is_sound());
}
