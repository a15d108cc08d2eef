//! Somebody overwrites the header of an open volume. Nothing that its words say can be trusted then. The volume
//! fails, like a truncated one, and every call says so.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use eyewall::{Cache, Change, Error, Options, PutOptions};
use tempfile::TempDir;

use crate::anatomy;
use crate::common::{fast_folder, value, version_of};

const SIZE: u64 = 1 << 20;
const CLEAN_AT: u64 = 192;
const ATTACHMENT_AT: u64 = 200;

fn opened() -> (TempDir, PathBuf, Cache) {
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let cache = Options::new().size(SIZE).open(&path).unwrap();
    cache.put("key", value(b"key", 0, 100)).unwrap();
    (folder, path, cache)
}

fn overwrite(path: &Path, at: u64, bytes: &[u8]) {
    File::options().write(true).open(path).unwrap().write_all_at(bytes, at).unwrap();
}

/// Bytes without a pattern.
fn noise() -> Vec<u8> {
    (0..4096_u64).map(|at| (at + 7).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()[7]).collect()
}

fn is_failure(error: &Error, expected: &Path) -> bool {
    matches!(error, Error::Failed { path } if path == expected)
}

type Call = (&'static str, fn(&Cache) -> Result<(), Error>);

const CALLS: [Call; 12] = [
    ("get", |cache| cache.get("key").map(drop)),
    ("peek", |cache| cache.peek("key").map(drop)),
    ("lookup", |cache| cache.lookup("key").map(drop)),
    ("get_many", |cache| cache.get_many(&["key", "other"]).map(drop)),
    ("put", |cache| cache.put("new", "value").map(drop)),
    ("update", |cache| cache.update("key", &PutOptions::new(), |_| Change::Put(Vec::new())).map(drop)),
    ("remove", |cache| cache.remove("key").map(drop)),
    ("clear", |cache| cache.clear().map(drop)),
    ("stats", |cache| cache.stats().map(drop)),
    ("verify", |cache| cache.verify().map(drop)),
    ("sync", Cache::sync),
    ("check_header", Cache::check_header),
];

#[test]
fn a_look_finds_any_change_and_every_call_fails_from_then_on() {
    let ways: [(&str, u64, &[u8]); 5] = [
        ("the whole page by noise", 0, &noise()),
        ("the whole page by zeros", 0, &[0; 4096]),
        ("its first byte", 0, b"X"),
        ("a byte of its secret", 100, &[0x5a, 0xa5]),
        ("the attachment's number", ATTACHMENT_AT, &[0xff; 8]),
    ];
    for (name, at, bytes) in ways {
        let (_folder, path, cache) = opened();
        let reader = Options::new().read_only(true).open(&path).unwrap();
        let hit = cache.get("key").unwrap().unwrap();
        cache.check_header().unwrap();
        assert!(!cache.is_failed() && hit.is_intact());
        overwrite(&path, at, bytes);
        for cache in [&cache, &reader] {
            assert!(is_failure(&cache.check_header().unwrap_err(), &path), "{name}");
            assert!(cache.is_failed());
        }
        assert!(!hit.is_intact(), "{name}: who holds a hit asks");
        for (call, work) in CALLS {
            let error = work(&cache).unwrap_err();
            assert!(is_failure(&error, &path), "{name}, {call}: {error}");
        }
        assert_eq!(cache.iter().count(), 0);
        let told = cache.get("key").unwrap_err().to_string();
        assert!(told.contains("its header was overwritten") && told.contains("open it again"), "{told}");
        drop(hit);
        drop((cache, reader));
        assert_eq!(std::fs::metadata(&path).unwrap().len(), SIZE, "{name}: the file is left as it is");
        assert_ne!(
            anatomy::word(&std::fs::read(&path).unwrap(), CLEAN_AT),
            1,
            "{name}: nobody says that it is in order"
        );
    }
}

#[test]
fn misses_find_an_overwritten_header() {
    for bytes in [noise(), vec![0; 4096]] {
        let (_folder, path, cache) = opened();
        overwrite(&path, 0, &bytes);
        let failed = (0..1000).find_map(|_| cache.get("absent").err());
        assert!(is_failure(&failed.unwrap(), &path));
        assert!(cache.is_failed());
    }
}

#[test]
fn a_put_finds_an_overwritten_header() {
    let (_folder, path, first) = opened();
    // The second cache's puts haven't looked yet.
    let second = Cache::open(&path).unwrap();
    overwrite(&path, 0, &[0; 4096]);
    assert!(is_failure(&second.put("new", "value").unwrap_err(), &path));
    assert!(second.is_failed());
    drop((first, second));
}

#[test]
fn another_volume_continues() {
    let (_folder, path, cache) = opened();
    let (_other_folder, _, other) = opened();
    overwrite(&path, 0, &noise());
    cache.check_header().unwrap_err();
    other.check_header().unwrap();
    assert_eq!(version_of(b"key", &other.get("key").unwrap().unwrap()), 0);
    assert!(!other.is_failed() && other.verify().unwrap().is_sound());
}

#[test]
fn after_a_resize_the_header_of_the_new_volume_is_checked() {
    let (_folder, path, cache) = opened();
    cache.resize(&Options::new().size(2 * SIZE)).unwrap();
    cache.check_header().unwrap();
    overwrite(&path, 0, &noise());
    assert!(is_failure(&cache.check_header().unwrap_err(), &path));
    assert!(cache.is_failed());
}

#[test]
fn a_volume_without_a_file_has_its_header() {
    Options::new().size(SIZE).heap().unwrap().check_header().unwrap();
    Options::new().size(SIZE).anonymous().unwrap().check_header().unwrap();
}
