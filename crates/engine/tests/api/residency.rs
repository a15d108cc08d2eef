//! An event loop asks whether a hit would wait for storage before it looks it up, and lets a worker read it in.
//! Asking touches no cold page and leaves no trace.

use std::path::Path;

use eyewall::{Cache, Error, Options};

use crate::common::{disk_folder, drop_pages, fast_folder, value, version_of};

const ENTRIES: u32 = 150;
const ENTRY: usize = 100_000;

fn key(number: u32) -> [u8; 4] {
    number.to_le_bytes()
}

/// A volume of some large entries that nobody has open.
fn filled(path: &Path) {
    let cache = Options::new().size(32 << 20).open(path).unwrap();
    for number in 0..ENTRIES {
        cache.put(key(number), value(&key(number), 0, ENTRY)).unwrap();
    }
}

fn cold(cache: &Cache) -> Vec<u32> {
    (0..ENTRIES).filter(|number| cache.is_resident(key(*number)).unwrap() == Some(false)).collect()
}

#[test]
fn a_worker_reads_in_entries_from_the_disk() {
    let folder = disk_folder();
    let path = folder.path().join("volume");
    filled(&path);
    drop_pages(&path);
    let cache = Cache::open(&path).unwrap();
    let before = cold(&cache);
    // Reading warm pages makes the kernel read on ahead of us, without anybody waiting for it.
    let still = cold(&cache);
    assert!(still.iter().all(|number| before.contains(number)));
    let Some(number) = still.last() else {
        return println!("skipped: this file system keeps its pages in memory");
    };
    let worker = cache.clone();
    let key = key(*number);
    let read_in = move || (worker.prefault(key).unwrap(), worker.prefault(b"absent").unwrap());
    assert_eq!(std::thread::spawn(read_in).join().unwrap(), (true, false));
    assert_eq!(cache.is_resident(key).unwrap(), Some(true));
    assert!(cache.is_likely_resident(key) && cache.is_likely_resident(b"absent"));
    let hit = cache.get(key).unwrap().unwrap();
    assert!(hit.is_resident().unwrap());
    assert_eq!(version_of(&key, &hit), 0);
}

#[test]
fn a_hit_tells_whether_its_bytes_are_resident() {
    let folder = disk_folder();
    let path = folder.path().join("volume");
    filled(&path);
    // Entries of this attachment aren't verified, so a look-up reads only their first page.
    let cache = Cache::open(&path).unwrap();
    let hits: Vec<_> = (0..ENTRIES).filter_map(|number| cache.get(key(number)).unwrap()).collect();
    assert!(hits.len() > 100 && hits.iter().all(|hit| hit.is_resident().unwrap()), "they were just verified");
    let other = Options::new().read_only(true).open(&path).unwrap();
    let copy = other.get(key(ENTRIES - 1)).unwrap().unwrap();
    assert!(copy.is_copy() && copy.is_resident().unwrap());
}

#[test]
fn shared_memory_and_the_heap_are_in_memory() {
    let folder = fast_folder();
    let path = folder.path().join("volume");
    filled(&path);
    let options = Options::new();
    for cache in [Cache::open(&path).unwrap(), options.anonymous().unwrap(), options.heap().unwrap()] {
        cache.put("key", value(b"key", 0, ENTRY)).unwrap();
        assert_eq!(cache.is_resident("key").unwrap(), Some(true));
        assert!(cache.is_likely_resident("key"));
        assert!(cache.get("key").unwrap().unwrap().is_resident().unwrap());
        assert!(cache.prefault("key").unwrap());
        // If the kernel allocates memory page by page, a slot that nobody has used was never in memory.
        assert!(!cache.prefault("absent").unwrap());
        assert_eq!(cache.is_resident("absent").unwrap(), None);
        cache.remove("key").unwrap();
        assert_eq!((cache.is_resident("key").unwrap(), cache.prefault("key").unwrap()), (None, false));
    }
}

#[test]
fn asking_leaves_no_trace() {
    let cache = Options::new().size(1 << 20).anonymous().unwrap();
    cache.put("key", "value").unwrap();
    let before = cache.stats().unwrap();
    for _ in 0..10 {
        cache.is_resident("key").unwrap();
        cache.prefault("key").unwrap();
        cache.is_resident("absent").unwrap();
        cache.prefault("absent").unwrap();
    }
    let after = cache.stats().unwrap();
    assert_eq!((after.hits, after.misses, after.pins), (before.hits, before.misses, 0));
}

#[test]
fn an_impossible_key_is_refused() {
    let cache = Options::new().heap().unwrap();
    assert!(matches!(cache.is_resident(""), Err(Error::KeyEmpty)));
    assert!(matches!(cache.prefault(vec![0; 70_000]), Err(Error::KeyTooLong { .. })));
}
