//! A volume with a tier is resized. Every cache continues with a tier of the new file, nothing of the old one is
//! served or left, and what is held stays.

#![cfg(test)]

mod common;

use common::tiered::{Tiered, tier_stats, warm};
use common::{Child, fork, listen, play, say};
use eyewall::{Cache, Options, Purge, PutOptions};

fn value(cache: &Cache, key: &str) -> Option<Vec<u8>> {
    cache.get(key).unwrap().map(|hit| hit.to_vec())
}

fn resize(cache: &Cache, bytes: u64) {
    cache.resize(&Options::new().size(bytes)).unwrap();
}

#[test]
fn child() {
    play(&[("follower", follower)]);
}

#[test]
fn hits_come_from_the_new_tier_and_nothing_of_the_old_one_is_left() {
    let place = Tiered::new();
    let cache = place.open();
    let other = cache.clone();
    cache.put_with("key", "old", &PutOptions::new().tags(&["tag"])).unwrap();
    cache.put("held", "as it was").unwrap();
    warm(&cache, "key");
    warm(&cache, "held");
    let held = cache.get("held").unwrap().unwrap();
    let (path, before) = (cache.tier_path().unwrap().to_owned(), place.left());
    for size in [8 << 20, 2 << 20, 3 << 20] {
        resize(&cache, size);
        assert_eq!(value(&other, "key").unwrap(), b"old", "the entry was copied");
        assert_eq!(warm(&other, "key"), b"old", "and has a copy in the new tier");
        cache.put_with("key", "new", &PutOptions::new().tags(&["tag"])).unwrap();
        assert_eq!(value(&other, "key").unwrap(), b"new");
        assert_eq!(warm(&cache, "key"), b"new");
        Options::new().open(place.path()).unwrap().purge_tag("tag", Purge::Hard).unwrap();
        assert_eq!(value(&other, "key"), None, "removed by a cache that knows of no tier");
        cache.put("key", "old").unwrap();
        assert_eq!(warm(&cache, "key"), b"old");
        assert_eq!(place.left().len(), 1, "the file of each former tier is gone");
    }
    assert_ne!(cache.tier_path().unwrap(), path);
    assert_ne!(place.left(), before);
    assert_eq!((held.key(), &*held), (&b"held"[..], &b"as it was"[..]), "from the very first tier");
    assert_eq!(tier_stats(&cache).processes, 1);
    drop(held);
    drop(other);
    drop(cache);
    assert_eq!(place.left(), Vec::<String>::new());
}

#[test]
fn pages_that_nobody_holds_are_given_back() {
    let place = Tiered::new();
    let cache = place.open();
    for number in 0..200 {
        cache.put(number.to_string(), [7; 1000]).unwrap();
        warm(&cache, &number.to_string());
    }
    let old = std::fs::File::open(cache.tier_path().unwrap()).unwrap();
    let blocks = || std::os::unix::fs::MetadataExt::blocks(&old.metadata().unwrap());
    let before = blocks();
    resize(&cache, 8 << 20);
    value(&cache, "1");
    assert!(before - blocks() >= (400 << 10) / 512, "{before} {}", blocks());
}

fn follower(arguments: &[&str]) {
    let [path, tier] = arguments else { panic!("{arguments:?}") };
    let cache = Options::new().tier(1 << 20).tier_folder(tier).open(path).unwrap();
    loop {
        match listen().as_str() {
            "read" => say(&String::from_utf8(warm(&cache, "key")).unwrap()),
            "tier" => say(cache.tier_path().unwrap().to_str().unwrap()),
            _ => return,
        }
    }
}

#[test]
fn another_process_and_a_forked_child_move_to_the_same_new_tier() {
    let place = Tiered::new();
    let cache = place.open();
    cache.put("key", "one").unwrap();
    warm(&cache, "key");
    let (path, folder) = (place.path(), place.tier.path().to_str().unwrap().to_owned());
    let mut child = Child::start("follower", &[path.to_str().unwrap(), &folder]);
    child.tell("read");
    child.expect("one");
    resize(&cache, 8 << 20);
    cache.put("key", "two").unwrap();
    fork(|| assert_eq!(warm(&cache, "key"), b"two")).finish();
    child.tell("read");
    child.expect("two");
    child.tell("tier");
    child.expect(cache.tier_path().unwrap().to_str().unwrap());
    assert_eq!(tier_stats(&cache).processes, 2);
    child.tell("end");
    child.finish();
}

#[test]
fn a_volume_that_gets_no_new_tier_continues_without() {
    let place = Tiered::new();
    let cache = place.open();
    cache.put("key", "value").unwrap();
    warm(&cache, "key");
    std::fs::remove_dir_all(place.tier.path()).unwrap();
    resize(&cache, 8 << 20);
    assert_eq!(value(&cache, "key").unwrap(), b"value");
    assert!(cache.tier_path().is_none() && cache.stats().unwrap().tier.is_none());
    std::fs::create_dir(place.tier.path()).unwrap();
    resize(&cache, 4 << 20);
    assert_eq!(warm(&cache, "key"), b"value", "the next tier can be had again");
}
