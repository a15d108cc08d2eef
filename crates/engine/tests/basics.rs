//! A first user opens a volume, and stores, reads, changes and removes entries through every call.
#![cfg(test)]

use std::time::Duration;

use eyewall::{Cache, Change, Error, Options, PutOptions, Updated, seams};

fn small() -> Cache {
    Options::new().size(1 << 20).heap().unwrap()
}

#[test]
fn a_put_entry_is_found_with_its_metadata() {
    let cache = small();
    let serial = cache.put_with("key", "value", &PutOptions::new().metadata(b"meta")).unwrap();
    let hit = cache.get("key").unwrap().unwrap();
    assert_eq!((hit.key(), hit.value(), hit.metadata()), (&b"key"[..], &b"value"[..], &b"meta"[..]));
    assert_eq!((hit.serial(), hit.ttl_left(), hit.is_copy()), (serial, None, false));
    assert!(hit.age() < Duration::from_mins(1));
    assert!(cache.get("other").unwrap().is_none());
}

#[test]
fn the_last_put_wins_and_an_old_hit_keeps_its_bytes() {
    let cache = small();
    cache.put("key", "old").unwrap();
    let old = cache.get("key").unwrap().unwrap();
    let serial = cache.put("key", "new").unwrap();
    assert!(serial > old.serial());
    assert_eq!(&*old, b"old");
    assert_eq!(&*cache.get("key").unwrap().unwrap(), b"new");
    assert_eq!(cache.stats().unwrap().entries, 1);
}

#[test]
fn empty_values_and_binary_keys_are_fine() {
    let cache = small();
    let key = [0, 255, 0];
    cache.put(key, "").unwrap();
    assert_eq!(cache.get(key).unwrap().unwrap().len(), 0);
}

#[test]
fn add_stores_only_what_is_absent() {
    let cache = small();
    let plain = PutOptions::new();
    assert!(cache.add("key", "one", &plain).unwrap().is_some());
    assert!(cache.add("key", "two", &plain).unwrap().is_none());
    assert_eq!(&*cache.get("key").unwrap().unwrap(), b"one");
    let large = vec![7; 20_000];
    assert!(cache.add("key", &large, &plain).unwrap().is_none());
    assert!(cache.add("large", &large, &plain).unwrap().is_some());
}

#[test]
fn replace_if_stores_only_over_the_version_that_was_seen() {
    let cache = small();
    let plain = PutOptions::new();
    let first = cache.put("key", "one").unwrap();
    let second = cache.replace_if("key", first, "two", &plain).unwrap().unwrap();
    assert!(cache.replace_if("key", first, "three", &plain).unwrap().is_none());
    assert!(cache.replace_if("absent", second, "three", &plain).unwrap().is_none());
    assert_eq!(&*cache.get("key").unwrap().unwrap(), b"two");
}

#[test]
fn remove_and_clear_report_what_they_removed() {
    let cache = small();
    cache.put("a", "1").unwrap();
    cache.put("b", "2").unwrap();
    assert!(cache.remove("a").unwrap());
    assert!(!cache.remove("a").unwrap());
    assert_eq!(cache.clear().unwrap(), 1);
    assert_eq!(cache.iter().count(), 0);
}

#[test]
fn an_entry_lives_for_its_ttl_and_no_longer() {
    let cache = small();
    let minute = PutOptions::new().ttl(Duration::from_mins(1));
    cache.put_with("key", "value", &minute).unwrap();
    assert!(cache.get("key").unwrap().unwrap().ttl_left().unwrap() > Duration::from_secs(50));
    seams::shift_clock(61_000);
    assert!(cache.get("key").unwrap().is_none());
    assert!(!cache.contains("key").unwrap());
    assert!(cache.add("key", "again", &minute).unwrap().is_some());
    seams::shift_clock(-61_000);
    // The clock went back. An entry from the future is not valid for longer, but expired.
    assert!(cache.get("key").unwrap().is_none());
}

#[test]
fn uses_of_an_entry_are_counted_up_to_seven() {
    let cache = small();
    assert_eq!(cache.uses("key").unwrap(), None);
    cache.put("key", "value").unwrap();
    for uses in 0..10 {
        cache.peek("key").unwrap().unwrap();
        assert_eq!(cache.uses("key").unwrap(), Some(uses.min(7)));
        cache.get("key").unwrap().unwrap();
    }
    assert_eq!(cache.stats().unwrap().hits, 10);
}

#[test]
fn peek_and_contains_leave_no_trace() {
    let cache = small();
    cache.put("key", "value").unwrap();
    assert_eq!(&*cache.peek("key").unwrap().unwrap(), b"value");
    assert!(cache.contains("key").unwrap());
    let stats = cache.stats().unwrap();
    assert_eq!((stats.hits, stats.misses), (0, 0));
}

#[test]
fn get_into_replaces_the_buffer_on_a_hit_only() {
    let cache = small();
    cache.put("key", "value").unwrap();
    let mut buffer = b"before".to_vec();
    assert!(cache.get_into("absent", &mut buffer).unwrap().is_none());
    assert_eq!(buffer, b"before");
    assert_eq!(cache.get_into("key", &mut buffer).unwrap().unwrap().value_bytes, 5);
    assert_eq!(buffer, b"value");
}

#[test]
fn update_reads_changes_and_writes() {
    let cache = small();
    let plain = PutOptions::new();
    let add = |entry: Option<&eyewall::Hit<'_>>| {
        let mut value = entry.map_or(Vec::new(), |hit| hit.to_vec());
        value.push(b'x');
        Change::Put(value)
    };
    assert!(matches!(cache.update("key", &plain, add).unwrap(), Updated::Stored(_)));
    assert!(matches!(cache.update("key", &plain, add).unwrap(), Updated::Stored(_)));
    assert_eq!(&*cache.get("key").unwrap().unwrap(), b"xx");
    assert_eq!(cache.update("key", &plain, |_| Change::Keep).unwrap(), Updated::Kept);
    assert_eq!(cache.update("key", &plain, |_| Change::Remove).unwrap(), Updated::Removed);
    assert!(!cache.contains("key").unwrap());
}

#[test]
fn a_put_during_an_update_supersedes_it() {
    let cache = small();
    let outcome = cache.update("key", &PutOptions::new(), |_| {
        cache.put("key", "put").unwrap();
        Change::Put(b"update".to_vec())
    });
    assert_eq!(outcome.unwrap(), Updated::Superseded);
    assert_eq!(&*cache.get("key").unwrap().unwrap(), b"put");
}

#[test]
fn a_panic_in_an_update_releases_its_claim() {
    let cache = small();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _ = cache.update("key", &PutOptions::new(), |_| panic!("in user code"));
    }));
    assert!(panicked.is_err());
    let outcome = cache.update("key", &PutOptions::new(), |_| Change::Put(vec![1])).unwrap();
    assert!(matches!(outcome, Updated::Stored(_)));
}

#[test]
fn updates_of_other_keys_may_nest() {
    let cache = small();
    let outcome = cache.update("outer", &PutOptions::new(), |_| {
        cache.update("inner", &PutOptions::new(), |_| Change::Put(vec![1])).unwrap();
        Change::Put(vec![2])
    });
    assert!(matches!(outcome.unwrap(), Updated::Stored(_)));
    assert!(cache.contains("inner").unwrap());
}

#[test]
fn iteration_sees_each_entry_once() {
    let cache = small();
    for number in 0..500_u32 {
        cache.put(number.to_le_bytes(), number.to_string()).unwrap();
    }
    let mut keys: Vec<u32> = cache.iter().map(|hit| u32::from_le_bytes(hit.key().try_into().unwrap())).collect();
    keys.sort_unstable();
    assert_eq!(keys, (0..500).collect::<Vec<_>>());
}

#[test]
fn an_owned_hit_outlives_its_cache_and_its_thread() {
    let cache = small();
    cache.put("key", "value").unwrap();
    let owned = cache.get("key").unwrap().unwrap().into_owned();
    let twin = cache.get("key").unwrap().unwrap().into_owned();
    assert_eq!(cache.stats().unwrap().pins, 1, "one pin for both");
    drop(cache);
    let thread = std::thread::spawn(move || assert_eq!(owned.as_ref(), b"value"));
    thread.join().unwrap();
    assert_eq!(twin.value(), b"value");
}

#[test]
fn a_volume_stays_sound_when_far_more_than_its_size_is_put() {
    let cache = Options::new().size(1 << 20).entry_size_hint(500).heap().unwrap();
    for number in 0..20_000_u32 {
        let value = vec![number as u8; (number % 3000) as usize];
        cache.put(number.to_le_bytes(), &value).unwrap();
        if number % 7 == 0 {
            assert_eq!(&*cache.get(number.to_le_bytes()).unwrap().unwrap(), &value[..]);
        }
    }
    let stats = cache.stats().unwrap();
    assert!(stats.live_bytes * 100 > stats.data_bytes * 90, "{stats:?}");
    assert_eq!(cache.verify().unwrap().problems, Vec::<String>::new());
    assert_eq!(cache.iter().count() as u64, stats.entries);
}

#[test]
fn a_refused_look_up_leaves_no_trace() {
    let folder = tempfile::tempdir().unwrap();
    let plain = Options::new().size(4 << 20).open(folder.path().join("plain")).unwrap();
    let heap = Options::new().size(4 << 20).heap().unwrap();
    for cache in [plain, heap] {
        cache.put("key", "value").unwrap();
        cache.put_with("stale", "value", &PutOptions::new().ttl(Duration::ZERO).stale(Duration::from_mins(1))).unwrap();
        let uses = |cache: &Cache| cache.stats().map(|stats| (stats.hits, stats.misses)).unwrap();
        let before = uses(&cache);
        assert!(cache.get_if("key", |_| false).unwrap().is_none());
        assert!(cache.get_if("absent", |_| panic!("there is nothing to refuse")).unwrap().is_none());
        assert!(cache.get_if("stale", |_| panic!("it is stale")).unwrap().is_none());
        assert_eq!(uses(&cache), before);
        let hit = cache.get_if("key", |hit| hit.value() == b"value").unwrap().unwrap();
        assert_eq!(&*hit, b"value");
        assert_eq!(uses(&cache), (before.0 + 1, before.1));
        assert!(matches!(cache.get_if("", |_| true), Err(Error::KeyEmpty)));
    }
}
