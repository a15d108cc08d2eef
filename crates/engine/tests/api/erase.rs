//! Volumes that erase: no byte of an entry outlives the entry in the file.

use std::os::unix::fs::FileExt;

use eyewall::{Cache, Change, Error, Options, Purge, PutOptions};

use crate::anatomy::Anatomy;
use crate::common::fast_folder;

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

    /// How often the file contains the secret.
    fn traces(&self) -> usize {
        let bytes = std::fs::read(self.folder.path().join("volume")).unwrap();
        bytes.windows(SECRET.len()).filter(|window| *window == SECRET).count()
    }

    fn check(&self) {
        assert_eq!(self.cache.verify().unwrap().problems, Vec::<String>::new());
    }
}

#[test]
fn removed_replaced_and_purged_bytes_leave_the_file() {
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
    assert_eq!(vault.traces(), 0, "nor of superseded values");
    vault.check();
}

#[test]
fn held_bytes_are_erased_when_the_hand_comes_by() {
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
fn the_file_has_one_copy_of_live_entries_and_none_of_evicted_ones() {
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
fn a_caller_that_asks_for_erasing_gets_it_or_an_error() {
    let vault = Vault::new();
    let path = vault.folder.path().join("volume");
    assert!(Cache::open(&path).is_ok(), "a caller that doesn't ask uses the volume as it is");
    let other = vault.folder.path().join("other");
    drop(Options::new().size(512 << 10).open(&other).unwrap());
    let error = Options::new().secure_erase(true).open(&other).unwrap_err();
    assert!(matches!(error, Error::OptionsDiffer { option: "secure_erase", asked: 1, found: 0, .. }), "{error:?}");
}

/// The offsets of the live slots of the only stripe, with their words.
fn live_slots(file: &std::fs::File) -> Vec<(u64, u64)> {
    let mut bytes = vec![0; file.metadata().unwrap().len() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    let anatomy = Anatomy::of(&bytes);
    let word = |at: u64| u64::from_le_bytes(bytes[at as usize..at as usize + 8].try_into().unwrap());
    anatomy.slots(&bytes, 0).into_iter().map(|at| (at, word(at))).filter(|(_, slot)| (slot >> 40) % 4 == 1).collect()
}

#[test]
fn bytes_that_only_look_like_an_entry_are_not_erased() {
    for sweeps in [false, true] {
        let vault = Vault::new();
        let cache = &vault.cache;
        // The middle of a value reads like the header of an entry with a key of one byte.
        let header = [(3 << 56) | 1, 0, 1 << 48, 500_u64, 0xa | (0xa << 32), 1].map(u64::to_le_bytes).concat();
        let mut value = vec![7; 5000];
        value[1 + 80..][..header.len()].copy_from_slice(&header);
        cache.put("big", &value).unwrap();
        cache.put("other", "value").unwrap();
        let hit = cache.get("big").unwrap().unwrap();
        let file = std::fs::File::options().read(true).write(true).open(vault.folder.path().join("volume")).unwrap();
        let (at, slot) = live_slots(&file).into_iter().max_by_key(|(_, slot)| slot & ((1 << 34) - 1)).unwrap();
        // Header and key of the record take 47 bytes.
        let damaged = (slot & !((1 << 34) - 1)) | ((47 + 1 + 80) / 8);
        file.write_all_at(&damaged.to_le_bytes(), at).unwrap();
        if sweeps {
            cache.purge_all(Purge::Soft).unwrap();
            cache.sweep().unwrap();
        } else {
            cache.clear().unwrap();
        }
        assert!(*hit == value[..], "sweeps: {sweeps}");
    }
}

#[test]
fn bytes_that_another_slot_names_are_not_erased() {
    let vault = Vault::new();
    let cache = &vault.cache;
    cache.put("key", SECRET).unwrap();
    let file = std::fs::File::options().read(true).write(true).open(vault.folder.path().join("volume")).unwrap();
    let (at, slot) = live_slots(&file)[0];
    let twin = at / 64 * 64 + (at % 64 + 8) % 64;
    file.write_all_at(&slot.to_le_bytes(), twin).unwrap();
    // In place of the first of the two slots.
    cache.put("key", "other").unwrap();
    for hit in cache {
        assert!(*hit == *b"other" || *hit == *SECRET, "{hit:?}");
    }
    assert_eq!(vault.traces(), 1, "the bytes stay until the slot that names them goes");
}
