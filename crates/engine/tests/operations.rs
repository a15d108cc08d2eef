//! Stale times, negative entries, counters, touches, and many keys at once.
//!
//! A file of its own, since tests move the clock of their process while they hold the lock `clock`.
#![cfg(test)]

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use eyewall::{Cache, Counter, Error, Lookup, Options, PutOptions, Touch, seams};

const MINUTE_MS: i64 = 60_000;

fn cache() -> Cache {
    Options::new().size(4 << 20).heap().unwrap()
}

/// The whole process shares one clock.
fn clock() -> MutexGuard<'static, ()> {
    static CLOCK: Mutex<()> = Mutex::new(());
    CLOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

fn minutes(count: u64) -> Duration {
    Duration::from_mins(count)
}

fn state(cache: &Cache, key: &str) -> &'static str {
    let peeked = cache.contains(key).unwrap();
    let state = match cache.lookup(key).unwrap() {
        Lookup::Fresh(_) => "fresh",
        Lookup::Stale(_) => "stale",
        Lookup::Negative(_) => "negative",
        Lookup::Miss => "miss",
    };
    assert_eq!(peeked, state == "fresh");
    assert_eq!(cache.get(key).unwrap().is_some(), state == "fresh");
    assert_eq!(cache.iter().any(|hit| hit.key() == key.as_bytes()), state == "fresh");
    assert_eq!(cache.iter_all().any(|hit| hit.key() == key.as_bytes()), state != "miss");
    state
}

#[test]
fn an_entry_is_fresh_then_stale_then_gone() {
    let _clock = clock();
    let cache = cache();
    let options = PutOptions::new().ttl(minutes(2)).stale(minutes(3));
    cache.put_with("page", "text", &options).unwrap();
    assert_eq!(state(&cache, "page"), "fresh");
    seams::shift_clock(2 * MINUTE_MS);
    assert_eq!(state(&cache, "page"), "stale");
    let Lookup::Stale(hit) = cache.lookup("page").unwrap() else { panic!("stale") };
    assert!(hit.is_stale() && hit.ttl_left() == Some(Duration::ZERO));
    assert!(hit.usable_left().is_some_and(|left| left <= minutes(3) && left > minutes(2)));
    assert!(hit.info().stale && &*hit == b"text");
    drop(hit);
    assert_eq!(cache.add("page", "newer", &options).unwrap().map(drop), Some(()), "stale counts as absent");
    assert_eq!(state(&cache, "page"), "fresh");
    seams::shift_clock(5 * MINUTE_MS);
    assert_eq!(state(&cache, "page"), "miss");
}

#[test]
fn setting_the_wall_clock_changes_no_life() {
    let _clock = clock();
    let cache = cache();
    cache.put_with("page", "text", &PutOptions::new().ttl(minutes(2))).unwrap();
    for step in [-3600, 7200, -3600] {
        seams::shift_wall_clock(step * 1000);
        let hit = cache.get("page").unwrap().unwrap();
        assert!(hit.age() < minutes(1) && hit.ttl_left().unwrap() > minutes(1));
        let age = (std::time::SystemTime::now() + Duration::from_hours(2)).duration_since(hit.created()).unwrap();
        assert!(age < Duration::from_hours(4), "by the present wall clock");
    }
}

#[test]
fn a_negative_entry_says_why_and_is_no_value() {
    let _clock = clock();
    let cache = cache();
    cache.put_negative("gone", 410, &PutOptions::new().ttl(minutes(1)).tags(&["shop"])).unwrap();
    assert_eq!(state(&cache, "gone"), "negative");
    let Lookup::Negative(hit) = cache.lookup("gone").unwrap() else { panic!("negative") };
    assert_eq!((hit.reason(), hit.len()), (Some(410), 2));
    drop(hit);
    assert!(!cache.remove("gone").unwrap(), "no value was there");
    assert_eq!(state(&cache, "gone"), "miss");
    cache.put_negative("gone", 404, &PutOptions::new().ttl(minutes(1))).unwrap();
    seams::shift_clock(MINUTE_MS);
    assert_eq!(state(&cache, "gone"), "miss");
    cache.put_negative("gone", 404, &PutOptions::new()).unwrap();
    cache.put("gone", "back").unwrap();
    assert_eq!(cache.get("gone").unwrap().unwrap().reason(), None);
    assert_eq!(cache.put_negative("", 1, &PutOptions::new()).unwrap_err().to_string(), Error::KeyEmpty.to_string());
}

#[test]
fn a_counter_stops_at_its_bounds_and_keeps_its_times() {
    let _clock = clock();
    let cache = cache();
    let counter = Counter::new().start(5).bounds(-1, 7).options(PutOptions::new().ttl(minutes(2)).metadata(b"meta"));
    assert_eq!(cache.increment("n", 1, &counter).unwrap(), 6);
    seams::shift_clock(MINUTE_MS);
    assert_eq!(cache.increment("n", 9, &counter).unwrap(), 7);
    assert_eq!(cache.increment("n", i64::MIN, &counter).unwrap(), -1);
    let hit = cache.get("n").unwrap().unwrap();
    assert_eq!((&*hit, hit.metadata()), (&(-1_i64).to_le_bytes()[..], &b"meta"[..]));
    assert!(hit.ttl_left().unwrap() <= minutes(1));
    drop(hit);
    seams::shift_clock(MINUTE_MS);
    assert_eq!(cache.increment("n", 0, &counter).unwrap(), 5, "a new counter");
    cache.put("text", "seven bytes").unwrap();
    let error = cache.increment("text", 1, &counter).unwrap_err();
    assert!(matches!(error, Error::NotACounter { bytes: 11 }));
    assert!(error.to_string().contains("not 8; remove it first"), "{error}");
    assert_eq!(&*cache.get("text").unwrap().unwrap(), b"seven bytes");
}

#[test]
fn no_addition_is_lost() {
    // The lock isn't fair. If each step takes long, as under valgrind, a thread can wait long for its turn.
    let cache = Options::new().size(4 << 20).lock_deadline(Duration::from_mins(10)).heap().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..2000 {
                    cache.increment("n", 1, &Counter::new()).unwrap();
                }
            });
        }
    });
    assert_eq!(cache.increment("n", 0, &Counter::new()).unwrap(), 8000);
}

#[test]
fn touching_prolongs_shortens_and_relabels() {
    let _clock = clock();
    let cache = cache();
    let options = PutOptions::new().ttl(minutes(2)).metadata(b"old").tags(&["shop"]);
    let serial = cache.put_with("page", vec![7; 20_000], &options).unwrap();
    seams::shift_clock(MINUTE_MS);
    assert!(cache.touch("page", &Touch::new().ttl(Some(minutes(10)), minutes(5))).unwrap());
    seams::shift_clock(9 * MINUTE_MS);
    let hit = cache.get("page").unwrap().unwrap();
    assert_eq!((hit.serial(), hit.len()), (serial, 20_000), "in place");
    assert!(hit.age() >= minutes(10));
    drop(hit);
    assert!(cache.touch("page", &Touch::new().metadata(b"new")).unwrap());
    let hit = cache.get("page").unwrap().unwrap();
    assert_eq!((hit.metadata(), hit.tags().collect::<Vec<_>>()), (&b"new"[..], vec!["shop"]));
    assert!(hit.age() >= minutes(10) && hit.iter().all(|byte| *byte == 7) && hit.len() == 20_000);
    drop(hit);
    seams::shift_clock(2 * MINUTE_MS);
    assert_eq!(state(&cache, "page"), "stale");
    assert!(cache.touch("page", &Touch::new().ttl(Some(minutes(1)), Duration::ZERO)).unwrap(), "a stale entry revives");
    assert_eq!(state(&cache, "page"), "fresh");
    seams::shift_clock(MINUTE_MS);
    assert_eq!(state(&cache, "page"), "miss");
    assert!(!cache.touch("page", &Touch::new().ttl(None, Duration::ZERO)).unwrap());
    assert!(!cache.touch("absent", &Touch::new().metadata(b"x")).unwrap());
    cache.put_negative("gone", 404, &PutOptions::new()).unwrap();
    assert!(cache.touch("gone", &Touch::new().ttl(Some(minutes(1)), Duration::ZERO)).unwrap());
    assert_eq!(state(&cache, "gone"), "negative");
}

#[test]
fn touching_one_version_leaves_the_others_alone() {
    let _clock = clock();
    let cache = cache();
    let options = PutOptions::new().ttl(minutes(2)).metadata(b"old");
    let first = cache.put_with("page", "first", &options).unwrap();
    let later = Touch::new().ttl(Some(minutes(10)), minutes(5));
    assert!(cache.touch("page", &later.if_serial(first)).unwrap());
    assert!(
        cache.touch("page", &Touch::new().metadata(b"new").if_serial(first)).unwrap(),
        "in place it stays the same version"
    );
    let hit = cache.get("page").unwrap().unwrap();
    assert_eq!((hit.value(), hit.metadata()), (&b"first"[..], &b"new"[..]));
    let anew = hit.serial();
    drop(hit);
    assert_ne!(anew, first);

    let overwritten = cache.put_with("page", "second", &options).unwrap();
    assert!(cache.remove("page").unwrap());
    assert_all_unmet(&cache, &[first, anew, overwritten]);
    assert_eq!(state(&cache, "page"), "miss");
    for value in ["second", "third"] {
        let serial = cache.put_with("page", value, &options).unwrap();
        assert_all_unmet(&cache, &[first, anew, overwritten]);
        let hit = cache.get("page").unwrap().unwrap();
        assert_eq!((hit.value(), hit.metadata(), hit.serial()), (value.as_bytes(), &b"old"[..], serial));
        assert!(hit.ttl_left().unwrap() <= minutes(2), "{value}");
    }
    assert_eq!(state(&cache, "page"), "fresh");
}

/// Touches of each kind: in place, with earlier times, with metadata, without a change.
fn assert_all_unmet(cache: &Cache, serials: &[u64]) {
    let touches = [
        Touch::new(),
        Touch::new().ttl(None, Duration::ZERO),
        Touch::new().ttl(Some(Duration::ZERO), minutes(1)),
        Touch::new().metadata(b"new"),
    ];
    for (touch, serial) in touches.iter().flat_map(|touch| serials.iter().map(move |serial| (touch, *serial))) {
        assert!(!cache.touch("page", &touch.if_serial(serial)).unwrap(), "{touch:?} of {serial}");
    }
}

#[test]
fn many_keys_at_once_are_found_in_their_order() {
    let cache = cache();
    let entries: Vec<(String, String)> = (0..100).map(|n| (format!("key {n}"), format!("value {n}"))).collect();
    assert!(cache.put_many(&entries, &PutOptions::new()).iter().all(Result::is_ok));
    let keys: Vec<String> = (0..200).step_by(2).map(|n| format!("key {n}")).collect();
    let found = cache.get_many(&keys).unwrap();
    for (number, hit) in found.iter().enumerate() {
        let value = hit.as_ref().map(|hit| String::from_utf8_lossy(hit).into_owned());
        assert_eq!(value, (number < 50).then(|| format!("value {}", number * 2)));
    }
    assert!(matches!(cache.get_many(&["a", ""]), Err(Error::KeyEmpty)));
    let results = cache.put_many(&[("", "x"), ("b", "y")], &PutOptions::new());
    assert!(matches!(results[..], [Err(Error::KeyEmpty), Ok(_)]));
}

#[test]
fn the_numbers_of_written_match_the_puts() {
    let cache = cache();
    let before = cache.written().unwrap();
    for number in 0..100 {
        cache.put(format!("key {number}"), "value").unwrap();
    }
    cache.put("key 0", "another value").unwrap();
    cache.remove("key 1").unwrap();
    let (written, stats) = (cache.written().unwrap(), cache.stats().unwrap());
    assert_eq!(written.puts - before.puts, 101, "a value that replaces another counts; a removal doesn't");
    assert_eq!((written.puts, written.bytes), (stats.puts, stats.bytes_written));
    assert!(written.bytes >= stats.live_bytes, "the volume holds no more than was written");
}
