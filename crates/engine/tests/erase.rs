//! Volumes that erase: no byte of an entry outlives it in the file.

#![cfg(test)]

mod common;

use common::fast_folder;
use eyewall::{Cache, Change, Error, Options, Purge, PutOptions};

const SECRET: &[u8] = b"nobody is to read this after it was removed, whoever has the file";

struct Vault {
    folder: tempfile::TempDir,
    cache: Cache,
}

impl Vault {
    fn new() -> Self {
        let folder = fast_folder();
        let options = Options::new().size(512 << 10).secure_erase(true);
        let cache = options.open(folder.path().join("volume")).unwrap();
        Self { folder, cache }
    }

    /// How often the secret stands in the file.
    fn traces(&self) -> usize {
        let bytes = std::fs::read(self.folder.path().join("volume")).unwrap();
        bytes.windows(SECRET.len()).filter(|window| *window == SECRET).count()
    }

    fn check(&self) {
        assert_eq!(self.cache.verify().unwrap().problems, Vec::<String>::new());
    }
}

#[test]
fn what_is_removed_replaced_or_purged_is_gone_from_the_file() {
    let vault = Vault::new();
    let cache = &vault.cache;
    let store = || {
        cache.put_with("key", SECRET, &PutOptions::new().tags(&["t"])).unwrap();
    };
    store();
    assert_eq!(vault.traces(), 1);
    cache.remove("key").unwrap();
    assert_eq!(vault.traces(), 0);
    store();
    cache.put("key", "other").unwrap();
    assert_eq!(vault.traces(), 0);
    store();
    cache.clear().unwrap();
    assert_eq!(vault.traces(), 0);
    store();
    cache.purge_tag("t", Purge::Hard).unwrap();
    cache.sweep().unwrap();
    assert_eq!(vault.traces(), 0);
    cache
        .update("key", &PutOptions::new().tags(&["t"]), |_| {
            cache.purge_tag("t", Purge::Hard).unwrap();
            Change::Put(SECRET.to_vec())
        })
        .unwrap();
    assert_eq!(vault.traces(), 0, "of what was superseded, too");
    vault.check();
}

#[test]
fn what_is_held_is_erased_when_the_hand_comes_by() {
    let vault = Vault::new();
    vault.cache.put("key", SECRET).unwrap();
    let hit = vault.cache.get("key").unwrap().unwrap();
    vault.cache.remove("key").unwrap();
    assert_eq!((&*hit, vault.traces()), (SECRET, 1));
    drop(hit);
    for number in 0..3000 {
        vault.cache.put(format!("{number}"), vec![1; 300]).unwrap();
    }
    assert_eq!(vault.traces(), 0);
    vault.check();
}

#[test]
fn of_what_lives_there_is_one_copy_and_of_what_was_evicted_none() {
    let vault = Vault::new();
    for number in 0..5000_u32 {
        let key = format!("{}", number % 700);
        let value = [SECRET, &vec![7; (number % 13 * 100) as usize]].concat();
        vault.cache.put(&key, value).unwrap();
        if number % 3 == 0 {
            vault.cache.get(format!("{}", number / 3 % 700)).unwrap();
        }
    }
    vault.check();
    assert_eq!(vault.traces() as u64, vault.cache.stats().unwrap().entries);
    assert!(vault.cache.stats().unwrap().evictions_cold > 100);
}

#[test]
fn who_asks_for_erasing_gets_it_or_an_error() {
    let vault = Vault::new();
    let path = vault.folder.path().join("volume");
    assert!(Cache::open(&path).is_ok(), "who doesn't ask uses the volume as it is");
    let other = vault.folder.path().join("other");
    drop(Options::new().size(512 << 10).open(&other).unwrap());
    let error = Options::new().secure_erase(true).open(&other).unwrap_err();
    assert!(matches!(error, Error::OptionsDiffer { option: "secure_erase", asked: 1, found: 0, .. }), "{error:?}");
}
