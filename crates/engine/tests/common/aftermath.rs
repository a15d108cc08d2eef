//! What must hold for a volume after a storm, when nobody else has it open any more.

use eyewall::Cache;

use super::{read_all, value};

/// No pin, process slot or byte is lost, and no entry is wrong. All values come from [`value`].
pub fn assert_nothing_is_lost(cache: &Cache) {
    assert_balanced(cache, read_all);
}

/// The same check, where `read` reads all entries and returns how many there are.
pub fn assert_balanced(cache: &Cache, read: impl Fn(&Cache) -> u64) {
    let stats = cache.stats().unwrap();
    assert_eq!((stats.pins, stats.processes, stats.resets), (0, 1, 0), "{stats:?}");
    assert!(stats.threads <= 1, "{stats:?}");
    let report = cache.verify().unwrap();
    assert!(report.is_sound(), "{report:?}");
    let found = read(cache);
    let stats = cache.stats().unwrap();
    if stats.entries != found {
        // They are either dead and were overlooked, or are in the index without being entries.
        println!("  of {} entries {found} were found; another sweep drops {:?}", stats.entries, cache.sweep());
    }
    assert_eq!((stats.entries, stats.index_live, report.entries), (found, found, found), "{stats:?}");
    assert_eq!(stats.live_bytes + stats.dead_bytes + stats.filler_bytes + stats.free_bytes, stats.data_bytes);
    assert_eq!(stats.evictions_damaged, 0);
}

/// All of the volume can be used again.
pub fn assert_a_lap_fills_it(cache: &Cache) {
    let rounds = 2 * cache.stats().unwrap().data_bytes / 1000;
    for number in 0..rounds {
        let key = format!("lap {number}").into_bytes();
        cache.put(&key, value(&key, 1, 1000)).unwrap();
    }
    let stats = cache.stats().unwrap();
    println!("  after a lap {} % live", stats.live_bytes * 100 / stats.data_bytes);
    assert!(stats.live_bytes * 100 > stats.data_bytes * 85, "{stats:?}");
    assert_nothing_is_lost(cache);
}
