//! Keys that were asked for before contend for the main ring when they are put again. Entries that are hit there keep their place.

use std::io::Write;

use eyewall::{Cache, Options, PutOptions};

use crate::common::value;

const HOT: usize = 560;

/// Asks for a key that isn't there, and puts it.
fn ask_and_put(cache: &Cache, key: &str, bytes: usize) {
    assert!(cache.get(key).unwrap().is_none());
    cache.put(key, value(key.as_bytes(), 1, bytes)).unwrap();
}

/// Puts a key that was asked for before.
fn contend(cache: &Cache, key: &str, bytes: usize) {
    ask_and_put(cache, key, bytes);
    cache.remove(key).unwrap();
    ask_and_put(cache, key, bytes);
}

#[test]
fn a_large_entry_that_is_hit_outlives_many_small_newcomers() {
    let cache = Options::new().size(8 << 20).entry_bytes_max(2 << 20).entry_size_hint(10_000).heap().unwrap();
    cache.put("large", value(b"large", 1, 1 << 20)).unwrap();
    // With it, these are more than main holds, and are hit there.
    for _ in 0..8 {
        assert!(cache.get("large").unwrap().is_some());
        for number in 0..HOT {
            let key = format!("hot {number}");
            if cache.get(&key).unwrap().is_none() {
                cache.put(&key, value(key.as_bytes(), 1, 10_000)).unwrap();
            }
        }
    }
    // The hand gets to the large entry while it refuses them. Each is a hundredth of its size, so all cost it about one hit.
    for number in 0..100 {
        contend(&cache, &format!("newcomer {number}"), 10_000);
    }
    assert!(cache.peek("large").unwrap().is_some(), "{:?}", cache.stats().unwrap());
    let hot = (0..HOT).filter(|number| cache.peek(format!("hot {number}")).unwrap().is_some()).count();
    assert!(hot > HOT / 2, "{hot} of {HOT}");
    assert!(cache.verify().unwrap().is_sound());
}

#[test]
fn a_value_that_is_being_written_does_not_contend_as_it_grows() {
    let cache = Options::new().size(16 << 20).entry_bytes_max(2 << 20).entry_size_hint(200_000).heap().unwrap();
    for number in 0..4 {
        cache.put(format!("other {number}"), value(b"other", 1, 200_000)).unwrap();
    }
    // It lies in the small ring, so its next version begins there. As a new entry, it would contend for main.
    ask_and_put(&cache, "stream", 300_000);
    let before = cache.stats().unwrap();
    let mut writer = cache.writer("stream", &PutOptions::new(), None).unwrap();
    let whole = value(b"stream", 2, 300_000);
    for piece in whole.chunks(10_000) {
        writer.write_all(piece).unwrap();
    }
    writer.commit().unwrap();
    // The former version is dead now. A room that moves would leave its former place behind, too.
    let dead = cache.stats().unwrap().dead_bytes - before.dead_bytes;
    assert!((300_000..301_000).contains(&dead), "{dead}");
    assert!(*cache.get("stream").unwrap().unwrap() == whole[..]);
    assert!(cache.verify().unwrap().is_sound());
}
