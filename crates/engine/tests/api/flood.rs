//! A flood of keys that nobody ever reads again: twenty times what the volume holds. The file doesn't grow by a
//! block, and the volume uses what it has.

use std::os::unix::fs::MetadataExt;

use eyewall::Options;

use crate::common::{Random, disk_folder, soak, value};

/// If storage has taken some pages and not others, ext4 may need a block of its own to note which, and counts it for
/// the file.
const EXTENT_BLOCK: u64 = 4096;

#[test]
fn twenty_times_the_cap_stays_inside_the_cap_and_fills_it() {
    let size = soak(4 << 20, 16 << 20);
    let folder = disk_folder();
    let path = folder.path().join("volume");
    let cache = Options::new().size(size).entry_size_hint(20_000).open(&path).unwrap();
    let mut random = Random(5);
    let (mut written, mut number) = (0, 0_u64);
    while written < 20 * size {
        number += 1;
        let key = number.to_le_bytes();
        let bytes = 1000 + random.below(39_000);
        cache.put(key, value(&key, 1, bytes as usize)).unwrap();
        written += bytes;
        if number % 1000 == 0 {
            assert!(path.metadata().unwrap().blocks() * 512 <= size + EXTENT_BLOCK);
        }
    }
    let data = path.metadata().unwrap();
    assert!(data.len() == size && data.blocks() * 512 <= size + EXTENT_BLOCK, "{} blocks", data.blocks());
    let stats = cache.stats().unwrap();
    println!("live {} % of the cap", stats.live_bytes * 100 / size);
    assert!(stats.live_bytes * 100 >= size * 90, "{stats:?}");
    assert_eq!(stats.live_bytes + stats.dead_bytes + stats.filler_bytes + stats.free_bytes, stats.data_bytes);
    assert_eq!(cache.verify().unwrap().problems, Vec::<String>::new());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_large_put_evicts_no_more_than_it_needs() {
    let cache = Options::new().size(1 << 20).entry_bytes_max(256 << 10).heap().unwrap();
    for number in 0..5000_u64 {
        let key = number.to_le_bytes();
        cache.put(key, value(&key, 1, 1000)).unwrap();
    }
    let before = cache.stats().unwrap();
    let large = value(b"large", 1, 250 << 10);
    cache.put("large", &large).unwrap();
    let after = cache.stats().unwrap();
    assert!(*cache.get("large").unwrap().unwrap() == large[..]);
    // What the put needs, what is lost at the ring's end, and one batch.
    let gone = before.live_bytes + (250 << 10) - after.live_bytes;
    assert!(gone < 2 * (250 << 10) + (128 << 10), "{gone} bytes went for {}", 250 << 10);
    assert!(after.entries > before.entries / 3, "{} of {}", after.entries, before.entries);
}

/// Tiny entries, in volumes with a right hint and in volumes with a hint for larger ones.
#[test]
fn a_wrong_entry_size_hint_is_only_a_first_guess() {
    let flood = |hint| {
        let cache = Options::new().size(1 << 20).entry_size_hint(hint).heap().unwrap();
        for number in 0..50_000_u64 {
            cache.put(number.to_le_bytes(), [1; 16]).unwrap();
        }
        assert!(cache.verify().unwrap().is_sound());
        cache.stats().unwrap()
    };
    for hint in [24, 4096] {
        let stats = flood(hint);
        assert!(stats.evictions_index * 20 < stats.puts, "{hint}: {stats:?}");
        assert!(stats.live_bytes * 100 > stats.data_bytes * 85, "{hint}: {stats:?}");
    }
}
