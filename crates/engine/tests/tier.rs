//! A tier stands in front of a volume. Entries that are read often come from it. It never gives what was overwritten,
//! removed, purged, evicted or touched since, by this cache or by one that knows nothing of the tier.
#![cfg(test)]

mod common;

use std::time::Duration;

use eyewall::{Cache, Lookup, Options, Purge, PutOptions, Touch, seams};

use common::tiered::{Tiered, tier_stats, warm};

/// A cache with a tier, and one of the same volume without.
fn both(place: &Tiered) -> (Cache, Cache) {
    let tiered = place.open();
    let plain = Options::new().open(place.path()).unwrap();
    assert!(plain.tier_path().is_none() && plain.stats().unwrap().tier.is_none());
    (tiered, plain)
}

fn value(cache: &Cache, key: &str) -> Option<Vec<u8>> {
    cache.get(key).unwrap().map(|hit| hit.to_vec())
}

/// `f`resh, `s`tale or `-`.
fn state(cache: &Cache, key: &str) -> char {
    match cache.lookup(key).unwrap() {
        Lookup::Fresh(_) => 'f',
        Lookup::Stale(_) => 's',
        Lookup::Negative(_) => 'n',
        Lookup::Miss => '-',
    }
}

#[test]
fn entries_read_often_come_unchanged_from_the_tier() {
    // One of the two time-dependent tests, which move the clock of the whole process.
    let _turn = common::turn();
    let place = Tiered::new();
    let cache = place.open();
    let options = PutOptions::new().metadata(b"text/html").tags(&["one", "two"]).ttl(Duration::from_mins(1));
    let serial = cache.put_with("key", "value", &options).unwrap();
    assert_eq!(warm(&cache, "key"), b"value");
    let hit = cache.get("key").unwrap().unwrap();
    assert!(!hit.is_copy(), "it is held in place");
    assert_eq!(
        (hit.key(), &*hit, hit.metadata(), hit.serial()),
        (&b"key"[..], &b"value"[..], &b"text/html"[..], serial)
    );
    assert_eq!(hit.tags().collect::<Vec<_>>(), ["one", "two"]);
    assert!(hit.ttl_left().unwrap() > Duration::from_secs(50) && hit.age() < Duration::from_secs(10));
    assert_eq!(hit.info().metadata_bytes, 9);
    assert!(cache.replace_if("key", hit.serial(), "other", &PutOptions::new()).unwrap().is_some());
    assert_eq!(&*hit, b"value", "as long as it is held");
    let owned = hit.into_owned();
    let stats = cache.stats().unwrap();
    let tier = stats.tier.unwrap();
    assert!(stats.hits > tier.hits && tier.hits >= 2 && tier.fills >= 1, "{tier:?}");
    assert_eq!((tier.pins, tier.processes), (1, 1));
    drop(cache);
    assert_eq!((owned.value(), owned.metadata()), (&b"value"[..], &b"text/html"[..]), "an owned hit keeps the tier");
    assert_eq!(place.left().len(), 1);
    drop(owned);
    assert_eq!(place.left(), Vec::<String>::new(), "and nothing is left behind");
}

#[test]
fn many_keys_at_once_come_from_both() {
    let place = Tiered::new();
    let cache = place.open();
    let keys: Vec<String> = (0..50).map(|number| format!("key {number}")).collect();
    for key in &keys {
        cache.put(key, key).unwrap();
    }
    keys.iter().step_by(2).for_each(|key| drop(warm(&cache, key)));
    let before = tier_stats(&cache).hits;
    let found = cache.get_many(&keys).unwrap();
    assert!(found.iter().zip(&keys).all(|(hit, key)| &**hit.as_ref().unwrap() == key.as_bytes()));
    assert!(tier_stats(&cache).hits > before);
}

#[test]
fn every_change_by_any_cache_is_seen_at_once() {
    let place = Tiered::new();
    let (tiered, plain) = both(&place);
    for writer in [&tiered, &plain] {
        writer.put("key", "one").unwrap();
        assert_eq!(warm(&tiered, "key"), b"one");
        writer.put("key", "two").unwrap();
        assert_eq!(warm(&tiered, "key"), b"two");
        let serial = writer.peek("key").unwrap().unwrap().serial();
        writer.replace_if("key", serial, "three", &PutOptions::new()).unwrap().unwrap();
        assert_eq!(warm(&tiered, "key"), b"three");
        writer.update("key", &PutOptions::new(), |_| eyewall::Change::Put(b"four".to_vec())).unwrap();
        assert_eq!(warm(&tiered, "key"), b"four");
        assert!(writer.remove("key").unwrap());
        assert_eq!(value(&tiered, "key"), None);
        writer.put("key", "five").unwrap();
        assert_eq!(warm(&tiered, "key"), b"five");
        writer.clear().unwrap();
        assert_eq!(value(&tiered, "key"), None);
        assert_eq!(tiered.iter().count(), 0);
        assert!(!tiered.contains("key").unwrap());
    }
}

#[test]
fn a_counter_counts_past_its_copies() {
    let place = Tiered::new();
    let cache = place.open();
    for wanted in 1..=50_i64 {
        assert_eq!(cache.increment("visits", 1, &eyewall::Counter::new()).unwrap(), wanted);
        assert_eq!(warm(&cache, "visits"), wanted.to_le_bytes());
    }
}

type Purger = fn(&Cache, Purge);

#[test]
fn an_entry_purged_by_any_cache_is_gone_or_stale() {
    let place = Tiered::new();
    let (tiered, plain) = both(&place);
    let purges: [Purger; 3] = [
        |cache, kind| cache.purge_tag("shop", kind).unwrap(),
        |cache, kind| cache.purge_prefix("/shop/", kind).unwrap(),
        |cache, kind| cache.purge_all(kind).unwrap(),
    ];
    let options = PutOptions::new().tags(&["shop"]);
    for writer in [&tiered, &plain] {
        for purge in purges {
            for (kind, wanted) in [(Purge::Hard, '-'), (Purge::Soft, 's')] {
                writer.put_with("/shop/7", "teapot", &options).unwrap();
                warm(&tiered, "/shop/7");
                purge(writer, kind);
                assert_eq!(state(&tiered, "/shop/7"), wanted);
                assert_eq!(value(&tiered, "/shop/7"), None);
                // The purge is forgotten, but keeps its effect.
                writer.sweep().unwrap();
                for _ in 0..5 {
                    assert_eq!(state(&tiered, "/shop/7"), wanted, "{kind:?}");
                }
                writer.touch("/shop/7", &Touch::new()).unwrap();
                assert_eq!(state(&tiered, "/shop/7"), if wanted == 's' { 's' } else { '-' });
            }
        }
    }
}

#[test]
fn a_purge_of_other_entries_leaves_the_copy_and_so_does_its_sweep() {
    let place = Tiered::new();
    let (tiered, plain) = both(&place);
    tiered.put_with("key", "value", &PutOptions::new().tags(&["kept"])).unwrap();
    warm(&tiered, "key");
    plain.purge_tag("others", Purge::Hard).unwrap();
    let before = tier_stats(&tiered);
    assert_eq!(value(&tiered, "key").unwrap(), b"value");
    assert_eq!(tier_stats(&tiered).hits, before.hits + 1, "still the same copy");
    plain.sweep().unwrap();
    assert_eq!(warm(&tiered, "key"), b"value");
}

#[test]
fn a_copy_has_the_times_of_the_volume() {
    // One of the two time-dependent tests, which move the clock of the whole process.
    let _turn = common::turn();
    let place = Tiered::new();
    let (tiered, plain) = both(&place);
    let minute = Duration::from_mins(1);
    for writer in [&tiered, &plain] {
        writer.put_with("key", "value", &PutOptions::new().ttl(minute).stale(minute)).unwrap();
        warm(&tiered, "key");
        // Longer: the copy ends first, and the volume knows better.
        writer.touch("key", &Touch::new().ttl(Some(5 * minute), minute)).unwrap();
        seams::shift_clock(100_000);
        assert_eq!(state(&tiered, "key"), 'f');
        assert_eq!(warm(&tiered, "key"), b"value", "with its new time");
        // Shorter.
        writer.touch("key", &Touch::new().ttl(Some(minute), minute)).unwrap();
        warm(&tiered, "key");
        seams::shift_clock(70_000);
        assert_eq!(state(&tiered, "key"), 's');
        writer.touch("key", &Touch::new().metadata(b"new")).unwrap();
        writer.touch("key", &Touch::new().ttl(Some(minute), minute)).unwrap();
        warm(&tiered, "key");
        assert_eq!(tiered.get("key").unwrap().unwrap().metadata(), b"new");
        seams::shift_clock(121_000);
        assert_eq!(state(&tiered, "key"), '-');
        writer.put_with("key", "value", &PutOptions::new()).unwrap();
        warm(&tiered, "key");
        writer.touch("key", &Touch::new().ttl(Some(Duration::ZERO), Duration::ZERO)).unwrap();
        assert_eq!(value(&tiered, "key"), None, "at once");
    }
}

#[test]
fn a_negative_entry_stays_negative_through_the_tier() {
    let place = Tiered::new();
    let cache = place.open();
    cache.put_negative("key", 404, &PutOptions::new()).unwrap();
    for _ in 0..10 {
        assert!(matches!(cache.lookup("key").unwrap(), Lookup::Negative(hit) if hit.reason() == Some(404)));
        assert_eq!(value(&cache, "key"), None);
    }
    assert!(tier_stats(&cache).hits > 0);
    cache.put("key", "there").unwrap();
    assert_eq!(warm(&cache, "key"), b"there");
}

#[test]
fn a_copy_of_an_evicted_entry_is_not_a_hit() {
    let place = Tiered::new();
    let (tiered, plain) = both(&place);
    let mut copied = 0;
    for round in 0..2000_u32 {
        let key = format!("key {round}");
        tiered.put(&key, vec![round as u8; 3000]).unwrap();
        let before = tier_stats(&tiered).hits;
        for _ in 0..4 {
            drop(tiered.get(&key).unwrap());
        }
        copied += u64::from(tier_stats(&tiered).hits > before);
        // Always as much as the volume holds.
        plain.put(format!("flood {round}"), vec![0; 20_000]).unwrap();
        if let Some(old) = round.checked_sub(700) {
            let key = format!("key {old}");
            let there = plain.contains(&key).unwrap();
            assert_eq!(tiered.get(&key).unwrap().is_some(), there, "{key}");
        }
    }
    assert!(copied > 200, "{copied}");
}

#[test]
fn large_entries_and_long_metadata_get_no_copy() {
    let place = Tiered::new();
    let cache = place.options(16 << 20, 1 << 20).open(place.path()).unwrap();
    cache.put("large", vec![7; 100_000]).unwrap();
    cache.put_with("long", "", &PutOptions::new().metadata(&vec![7; 65_535])).unwrap();
    for key in ["large", "long"] {
        for _ in 0..20 {
            assert!(cache.get(key).unwrap().is_some());
        }
    }
    let tier = tier_stats(&cache);
    assert_eq!((tier.hits, tier.fills), (0, 0));
}

#[test]
fn readers_that_hold_the_whole_tier_keep_nobody_from_reading() {
    let place = Tiered::new();
    let cache = place.open();
    let keys: Vec<String> = (0..200).map(|number| format!("key {number}")).collect();
    for key in &keys {
        cache.put(key, key.repeat(1000)).unwrap();
    }
    let mut held = Vec::new();
    for _ in 0..5 {
        for key in &keys {
            held.extend(cache.get(key).unwrap());
        }
    }
    assert!(tier_stats(&cache).hits > 0);
    for hit in &held {
        let key = String::from_utf8(hit.key().to_vec()).unwrap();
        assert!(**hit == *key.repeat(1000).as_bytes(), "{key}");
    }
}
