//! A volume whose pages aren't in memory. Reading ahead and making pages new before puts change nothing that anybody
//! sees.

#![cfg(test)]

mod common;

use std::io::Write as _;

use common::{disk_folder, drop_pages, fork, value, version_of};
use eyewall::{Cache, Options, PutOptions};

const SIZE: u64 = 16 << 20;
const ENTRIES: u32 = 2000;
/// Values of so many bytes, and so many of them: more than the volume has room for.
const LARGE_BYTES: usize = 600_000;
const LARGE: u32 = 40;

/// Most have several pages, and some more than what is read ahead.
fn bytes_of(number: u32) -> usize {
    match number % 97 {
        0 => 200_000,
        rest => 1000 + 150 * rest as usize,
    }
}

fn key(number: u32) -> [u8; 4] {
    number.to_le_bytes()
}

fn put(cache: &Cache, number: u32, version: u32) {
    cache.put(key(number), value(&key(number), version, bytes_of(number))).unwrap();
}

/// Every existing entry has the bytes that were put, in that version or a later one.
fn check(cache: &Cache, version: u32) -> usize {
    let mut found = 0;
    for number in 0..ENTRIES {
        let Some(hit) = cache.get(key(number)).unwrap() else { continue };
        assert_eq!(hit.len(), bytes_of(number));
        assert!(version_of(&key(number), &hit) >= version, "{number}");
        found += 1;
    }
    found
}

#[test]
fn a_process_that_may_not_write_long_files_still_puts() {
    let folder = disk_folder();
    let path = folder.path().join("volume");
    // New, so that none of its pages is in memory, and larger than what the kernel reads around one page of the
    // index.
    drop(Options::new().size(4 * SIZE).open(&path).unwrap());
    drop_pages(&path);
    fork(|| {
        // The parent process may have it ignored.
        // SAFETY: no pointers are involved.
        unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_DFL) };
        let limit = libc::rlimit { rlim_cur: 4096, rlim_max: 4096 };
        // SAFETY: the call reads the limit.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) }, 0);
        let cache = Cache::open(&path).unwrap();
        (0..ENTRIES).for_each(|number| put(&cache, number, 0));
        assert!(check(&cache, 0) > 0);
        put_large(&cache, 0, 0);
    })
    .finish();
}

/// Stores a value whose pages are made before it is written, at once or piece by piece, and a small one behind it.
fn put_large(cache: &Cache, number: u32, version: u32) {
    let bytes = value(&key(number), version, LARGE_BYTES + number as usize);
    if number.is_multiple_of(2) {
        cache.put(key(number), &bytes).unwrap();
    } else {
        let mut writer = cache.writer(key(number), &PutOptions::new(), Some(bytes.len() as u64)).unwrap();
        bytes.chunks(70_000).for_each(|piece| writer.write_all(piece).unwrap());
        writer.commit().unwrap();
    }
    put(cache, ENTRIES + number, version);
}

#[test]
fn the_pages_of_large_values_are_made_without_a_change_to_their_neighbours() {
    for erases in [false, true] {
        let folder = disk_folder();
        let path = folder.path().join("volume");
        let options = Options::new().size(SIZE).secure_erase(erases);
        // In a new volume, over pages that are in memory, and over such that aren't.
        for version in 0..4 {
            let cache = options.open(&path).unwrap();
            (0..LARGE).for_each(|number| put_large(&cache, number, version));
            let mut found = 0;
            for number in 0..LARGE {
                for (key, bytes) in
                    [(key(number), LARGE_BYTES + number as usize), (key(ENTRIES + number), bytes_of(ENTRIES + number))]
                {
                    let Some(hit) = cache.get(key).unwrap() else { continue };
                    assert_eq!((hit.len(), version_of(&key, &hit)), (bytes, version), "{number}");
                    found += 1;
                }
            }
            assert!(found > LARGE / 4, "{found}");
            assert!(cache.verify().unwrap().problems.is_empty());
            drop(cache);
            if version > 0 {
                drop_pages(&path);
            }
        }
    }
}

#[test]
fn cold_volumes_are_read_and_written_like_warm_ones() {
    for erases in [false, true] {
        let folder = disk_folder();
        let path = folder.path().join("volume");
        let options = Options::new().size(SIZE).secure_erase(erases);
        let cache = options.open(&path).unwrap();
        (0..ENTRIES).for_each(|number| put(&cache, number, 0));
        let held = check(&cache, 0);
        drop(cache);
        drop_pages(&path);
        // The first looks find out that they wait for storage. The others read ahead, and so do the puts.
        let cache = options.open(&path).unwrap();
        assert_eq!(check(&cache, 0), held);
        drop(cache);
        for version in 1..4 {
            drop_pages(&path);
            let cache = options.open(&path).unwrap();
            (0..ENTRIES).for_each(|number| put(&cache, number, version));
            assert!(check(&cache, version) * 10 > held * 9);
            assert!(cache.verify().unwrap().problems.is_empty());
        }
    }
}
