//! An operator copies a volume while it is closed or in use, moves it, closes it and opens it again. A copy opens
//! with all entries that were copied completely, or empty if asked. The volume itself keeps all its entries.

use eyewall::{Cache, Options, PutOptions, Unclean};

use crate::common;
use crate::common::{disk_folder, fast_folder, value, version_of};

fn fill(cache: &Cache) -> Vec<Vec<u8>> {
    for number in 0..1000_u32 {
        let key = number.to_le_bytes();
        cache.put_with(key, value(&key, number, 700), &PutOptions::new().metadata(&key)).unwrap();
    }
    keys(cache)
}

fn keys(cache: &Cache) -> Vec<Vec<u8>> {
    let mut keys: Vec<Vec<u8>> = cache
        .iter()
        .map(|hit| {
            assert_eq!(u32::from_le_bytes(hit.key().try_into().unwrap()), version_of(hit.key(), &hit));
            assert_eq!(hit.metadata(), hit.key());
            hit.key().to_vec()
        })
        .collect();
    keys.sort();
    keys
}

#[test]
fn a_copied_volume_opens_with_its_entries_or_empty_if_asked() {
    let _turn = common::turn();
    let folder = fast_folder();
    let (path, copy) = (folder.path().join("volume"), folder.path().join("copy"));
    let cache = Options::new().size(1 << 20).open(&path).unwrap();
    let kept = fill(&cache);
    let held = cache.get(&kept[0]).unwrap().unwrap();
    // While it is in use: with a pin, a process and an attachment in it.
    std::fs::copy(&path, &copy).unwrap();
    let other = Options::new().create(false).open(&copy).unwrap();
    assert_eq!(keys(&other), kept);
    let stats = other.stats().unwrap();
    assert_eq!((stats.entries, stats.unclean_drops), (kept.len() as u64, 0));
    assert_eq!((stats.pins, stats.processes, stats.untiled_bytes), (0, 1, stats.data_bytes));
    assert_eq!(other.verify().unwrap().problems, Vec::<String>::new());
    assert_eq!((keys(&other), other.stats().unwrap().untiled_bytes), (kept.clone(), 0));
    let copied = fill(&other);
    drop(other);
    assert_eq!(keys(&Cache::open(&copy).unwrap()), copied, "a copy is a volume of its own from now on");
    std::fs::copy(&path, &copy).unwrap();
    let other = Options::new().unclean(Unclean::Clear).open(&copy).unwrap();
    let stats = other.stats().unwrap();
    assert_eq!((stats.entries, stats.unclean_drops, stats.pins, stats.processes), (0, 1, 0, 1));
    assert_eq!(other.verify().unwrap().problems, Vec::<String>::new());
    assert!(!fill(&other).is_empty());
    assert_eq!(held.key(), kept[0]);
    drop(held);
    assert_eq!(keys(&cache), kept);
    assert_eq!(cache.stats().unwrap().unclean_drops, 0);
}

#[test]
fn a_clean_close_keeps_everything_also_under_another_name() {
    let _turn = common::turn();
    for folder in [fast_folder(), disk_folder()] {
        let (path, moved) = (folder.path().join("volume"), folder.path().join("moved"));
        let mut kept = fill(&Options::new().size(1 << 20).open(&path).unwrap());
        assert!(kept.len() > 500);
        for _ in 0..3 {
            let cache = Cache::open(&path).unwrap();
            assert_eq!(keys(&cache), kept);
            assert_eq!(cache.verify().unwrap().problems, Vec::<String>::new());
            assert!(cache.remove(kept.pop().unwrap()).unwrap());
        }
        std::fs::rename(&path, &moved).unwrap();
        let cache = Cache::open(&moved).unwrap();
        assert_eq!(keys(&cache), kept);
        let stats = cache.stats().unwrap();
        assert_eq!((stats.attachments, stats.unclean_drops, stats.repairs), (5, 0, 0));
    }
}

#[test]
fn a_removed_file_serves_processes_that_have_it_open() {
    let _turn = common::turn();
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let options = Options::new().size(1 << 20);
    let old = options.open(&path).unwrap();
    fill(&old);
    std::fs::remove_file(&path).unwrap();
    let new = options.open(&path).unwrap();
    assert_eq!(new.stats().unwrap().entries, 0);
    new.put("new", "one").unwrap();
    old.put("old", "one").unwrap();
    assert!(!new.contains("old").unwrap() && !old.contains("new").unwrap());
    assert_eq!((new.stats().unwrap().processes, old.stats().unwrap().processes), (1, 1));
}
