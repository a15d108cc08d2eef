//! The life of a tier's file: who creates it, who may use it, who removes it, and what happens to a file that was
//! left behind, is damaged, or has another size.

#![cfg(test)]

mod common;

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use common::tiered::{Tiered, tier_stats, warm};
use common::{Child, fork, listen, play, say, turn};
use eyewall::{Cache, Error, Options, Purge, seams};

#[test]
fn child() {
    play(&[("tiered", tiered), ("plain", plain)]);
}

/// Opens the volume with the tier, and does what it is told.
fn tiered(arguments: &[&str]) {
    seams::ignore_waiting();
    let options = Options::new().create(false).tier(1 << 20).tier_folder(arguments[1]);
    obey(&options.open(arguments[0]).unwrap());
}

fn plain(arguments: &[&str]) {
    obey(&Options::new().create(false).open(arguments[0]).unwrap());
}

fn obey(cache: &Cache) {
    say("open");
    loop {
        match listen().as_str() {
            "warm" => drop(warm(cache, "key")),
            "put" => drop(cache.put("key", "of the child").unwrap()),
            "remove" => assert!(cache.remove("key").unwrap()),
            "purge" => cache.purge_all(Purge::Hard).unwrap(),
            "end" => return,
            other => panic!("{other}"),
        }
        say("done");
    }
}

fn start(place: &Tiered, role: &str) -> Child {
    let mut child = Child::start(role, &[place.path().to_str().unwrap(), place.tier.path().to_str().unwrap()]);
    child.expect("open");
    child
}

fn ask(child: &mut Child, word: &str) {
    child.tell(word);
    child.expect("done");
}

/// A volume with an entry, in use, and a tier with a copy of it, left by a process that was killed.
fn deserted() -> (Tiered, Cache) {
    let place = Tiered::new();
    let watcher = Options::new().size(4 << 20).open(place.path()).unwrap();
    watcher.put("key", "value").unwrap();
    let mut child = start(&place, "tiered");
    ask(&mut child, "warm");
    child.kill();
    assert_eq!(place.left().len(), 1, "nobody removed it");
    (place, watcher)
}

#[test]
fn processes_share_one_tier_and_the_last_one_removes_it() {
    let _turn = turn();
    let place = Tiered::new();
    let cache = place.open();
    cache.put("key", "value").unwrap();
    let mut child = start(&place, "tiered");
    assert_eq!((place.left().len(), tier_stats(&cache).processes), (1, 2));
    ask(&mut child, "warm");
    let before = tier_stats(&cache);
    assert_eq!(&*cache.get("key").unwrap().unwrap(), b"value");
    assert_eq!(tier_stats(&cache).hits, before.hits + 1, "the child has copied it");
    child.tell("end");
    child.finish();
    let path = cache.tier_path().unwrap().to_owned();
    assert!(path.exists());
    drop(cache);
    assert!(!path.exists());
}

#[test]
fn changes_by_another_process_are_seen_at_once() {
    let _turn = turn();
    let place = Tiered::new();
    let cache = place.open();
    for role in ["tiered", "plain"] {
        let mut child = start(&place, role);
        cache.put("key", "mine").unwrap();
        assert_eq!(warm(&cache, "key"), b"mine");
        ask(&mut child, "put");
        assert_eq!(warm(&cache, "key"), b"of the child");
        ask(&mut child, "remove");
        assert!(cache.get("key").unwrap().is_none());
        cache.put("key", "mine").unwrap();
        assert_eq!(warm(&cache, "key"), b"mine");
        ask(&mut child, "purge");
        assert!(cache.get("key").unwrap().is_none());
        child.tell("end");
        child.finish();
    }
}

#[test]
fn a_forked_child_uses_the_tier_and_outlives_its_parent_in_it() {
    let _turn = turn();
    let place = Tiered::new();
    let cache = place.open();
    cache.put("key", "value").unwrap();
    warm(&cache, "key");
    let hits = tier_stats(&cache).hits;
    let child = fork(|| {
        assert_eq!(&*cache.get("key").unwrap().unwrap(), b"value");
        let tier = tier_stats(&cache);
        assert_eq!((tier.hits, tier.processes), (hits + 1, 2));
        cache.put("key", "of the child").unwrap();
    });
    child.finish();
    assert_eq!(warm(&cache, "key"), b"of the child");
    assert_eq!(tier_stats(&cache).processes, 1);
}

#[test]
fn a_tier_left_by_killed_processes_is_used_again_but_not_its_content() {
    let _turn = turn();
    let (place, _watcher) = deserted();
    let cache = place.open();
    assert_eq!((place.left().len(), tier_stats(&cache).entries), (1, 0));
    assert_eq!(warm(&cache, "key"), b"value");
    drop(cache);
    assert!(place.left().is_empty());
}

#[test]
fn a_mere_look_sees_the_tier_of_others_and_changes_nothing() {
    let _turn = turn();
    let place = Tiered::new();
    let cache = place.open();
    let looker = Options::new().read_only(true).open(place.path()).unwrap();
    let look = || looker.tier_in(place.tier.path()).unwrap();
    cache.put("key", "value").unwrap();
    warm(&cache, "key");
    let found = look().unwrap();
    assert_eq!((Some(found.path.as_path()), &found.stats), (cache.tier_path(), &tier_stats(&cache)));
    assert_eq!((found.stats.hits, found.stats.processes), (1, 1));
    assert!(looker.stats().unwrap().tier.is_none() && looker.tier_in("/nonexistent").unwrap().is_none());
    std::fs::set_permissions(&found.path, PermissionsExt::from_mode(0o666)).unwrap();
    assert_eq!(look(), None, "anybody could have written it");
    drop(cache);
    let (place, watcher) = deserted();
    for _ in 0..2 {
        let found = watcher.tier_in(place.tier.path()).unwrap().unwrap();
        assert_eq!((found.stats.processes, found.stats.entries), (0, 1), "left over");
    }
    overwrite(&place.tier.path().join(&place.left()[0]), 0, 4096, &mut common::Random(7));
    assert!(matches!(watcher.tier_in(place.tier.path()), Err(Error::Corrupt { .. })), "its stripes tell what it was");
    drop(place.open());
    assert_eq!(watcher.tier_in(place.tier.path()).unwrap(), None);
}

#[test]
fn a_recreated_volume_has_another_tier() {
    let _turn = turn();
    let place = Tiered::new();
    let old = place.open();
    old.put("key", "old").unwrap();
    warm(&old, "key");
    std::fs::remove_file(place.path()).unwrap();
    let new = place.open();
    assert!(new.tier_path() != old.tier_path() && new.get("key").unwrap().is_none());
    new.put("key", "new").unwrap();
    assert_eq!((warm(&new, "key"), warm(&old, "key")), (b"new".to_vec(), b"old".to_vec()));
    drop((old, new));
    assert!(place.left().is_empty());
}

#[test]
fn a_tier_in_use_keeps_its_size_and_a_deserted_one_is_recreated() {
    let _turn = turn();
    let place = Tiered::new();
    let cache = place.open();
    let open = |tier: u64| place.options(4 << 20, tier).open(place.path());
    match open(2 << 20).unwrap_err() {
        Error::OptionsDiffer { path, option, asked, found } => {
            assert_eq!((option, asked, found), ("tier", 2 << 20, 1 << 20));
            assert_eq!(path, cache.tier_path().unwrap());
        }
        other => panic!("{other}"),
    }
    assert!(matches!(open(1000), Err(Error::SizeTooSmall { .. } | Error::OptionsDiffer { .. })));
    assert_eq!(&tier_stats(&open((1 << 20) + 5).unwrap()).size_bytes, &(1 << 20), "whole pages");
    drop(cache);
    let mut child = start(&place, "tiered");
    child.signal(libc::SIGKILL);
    child.wait_until_killed();
    assert_eq!(tier_stats(&open(2 << 20).unwrap()).size_bytes, 2 << 20);
    assert!(matches!(open(1000), Err(Error::SizeTooSmall { .. })));
}

#[test]
fn volumes_that_cannot_have_a_tier_return_an_error() {
    let place = Tiered::new();
    let asked = Options::new().tier(1 << 20).tier_folder(place.tier.path());
    for cache in [asked.anonymous(), asked.heap()] {
        assert!(matches!(cache, Err(Error::NoTier { .. })));
    }
    drop(Options::new().size(1 << 20).open(place.path()).unwrap());
    let error = asked.clone().read_only(true).open(place.path()).unwrap_err();
    assert!(error.to_string().contains("can't have a tier: it was opened read-only; open it without one"), "{error}");
    let erasing = place.volume.path().join("erasing");
    assert!(matches!(asked.clone().secure_erase(true).open(erasing), Err(Error::NoTier { .. })));
    let nowhere = asked.tier_folder("/nonexistent").open(place.path());
    assert!(matches!(nowhere, Err(Error::Io { .. })), "{nowhere:?}");
    assert!(place.left().is_empty());
}

#[test]
fn the_tier_has_the_access_rights_of_the_volume() {
    let _turn = turn();
    for mode in [0o600, 0o640, 0o666] {
        let place = Tiered::new();
        let cache = place.options(1 << 20, 1 << 20).mode(mode).open(place.path()).unwrap();
        let tier = cache.tier_path().unwrap().metadata().unwrap();
        assert_eq!((tier.mode() & 0o777, tier.gid()), (mode, place.path().metadata().unwrap().gid()));
    }
    let place = Tiered::new();
    let cache = place.open();
    let path = cache.tier_path().unwrap().to_owned();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o666)).unwrap();
    let again = place.options(4 << 20, 1 << 20).open(place.path());
    assert!(matches!(again, Err(Error::NoTier { .. })), "{again:?}");
    drop(cache);
    // A link to a file that somebody else can read.
    let trap = place.volume.path().join("trap");
    std::fs::write(&trap, [0; 4096]).unwrap();
    symlink(&trap, &path).unwrap();
    let again = place.options(4 << 20, 1 << 20).open(place.path());
    assert!(matches!(again, Err(Error::NoTier { .. })), "{again:?}");
    assert_eq!(std::fs::read(&trap).unwrap(), [0; 4096]);
}

fn overwrite(path: &Path, from: u64, bytes: u64, random: &mut common::Random) {
    use std::os::unix::fs::FileExt;
    let file = std::fs::File::options().write(true).open(path).unwrap();
    let junk: Vec<u8> = (0..bytes).map(|_| random.next() as u8).collect();
    file.write_all_at(&junk, from).unwrap();
}

/// The file of an unused tier may hold anything.
#[test]
fn a_damaged_tier_only_causes_misses() {
    let _turn = turn();
    let mut random = common::Random(5);
    for (from, bytes) in [(0, 8), (0, 4096), (100, 8), (200, 8), (4096, 20_000), (40_000, 900_000), (0, 1 << 20)] {
        let (place, _watcher) = deserted();
        let path = place.tier.path().join(&place.left()[0]);
        overwrite(&path, from, bytes, &mut random);
        let cache = place.open();
        assert_eq!(tier_stats(&cache).entries, 0, "{from} {bytes}");
        assert_eq!(warm(&cache, "key"), b"value");
        drop(cache);
        assert!(place.left().is_empty());
    }
}

#[test]
fn a_tier_removed_or_overwritten_in_use_serves_nothing_wrong() {
    let _turn = turn();
    let place = Tiered::new();
    let cache = place.open();
    let first = cache.tier_path().unwrap().to_owned();
    cache.put("key", "value").unwrap();
    warm(&cache, "key");
    std::fs::remove_file(&first).unwrap();
    let other = place.open();
    assert_eq!((warm(&other, "key"), warm(&cache, "key")), (b"value".to_vec(), b"value".to_vec()));
    other.put("key", "new").unwrap();
    assert_eq!((warm(&other, "key"), warm(&cache, "key")), (b"new".to_vec(), b"new".to_vec()));
    drop(cache);
    assert_eq!(place.left().len(), 1, "the other cache's tier stays");
    drop(other);
    assert!(place.left().is_empty());
}
