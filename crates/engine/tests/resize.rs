//! Resizing: entries that fit stay, everybody moves over, and a death halfway leaves one volume or the other.

#![cfg(test)]

mod common;

use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use common::{Child, fast_folder, fork, play, say, soak, turn, value, version_of};
use eyewall::{Cache, Change, Error, Lookup, Options, Purge, PutOptions, Updated, seams};
use tempfile::TempDir;

const SMALL: u64 = 1 << 20;
const LARGE: u64 = 4 << 20;

fn fill(cache: &Cache, count: u32, bytes: usize) {
    for number in 0..count {
        let key = number.to_le_bytes();
        cache.put(key, value(&key, 1, bytes)).unwrap();
    }
}

fn count(cache: &Cache, count: u32) -> u32 {
    let found = (0..count).filter(|number| {
        let key = number.to_le_bytes();
        cache.get(key).unwrap().is_some_and(|hit| version_of(&key, &hit) == 1)
    });
    found.count() as u32
}

fn names(folder: &Path) -> Vec<String> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn assert_sound(cache: &Cache) {
    assert_eq!(cache.verify().unwrap().problems, Vec::<String>::new());
}

#[test]
fn a_volume_that_grows_keeps_everything_and_holds_more() {
    let folder = fast_folder();
    let path = folder.path().join("volume");
    // Roomy buckets, so that no entry is lost because its own are full.
    let cache = Options::new().size(SMALL).entry_size_hint(300).mode(0o640).open(&path).unwrap();
    fill(&cache, 600, 1000);
    let serial = cache.put_with("page", "text", &PutOptions::new().metadata(b"html").tags(&["shop", "t"])).unwrap();
    cache
        .put_with("old", "text", &PutOptions::new().ttl(Duration::from_mins(5)).stale(Duration::from_mins(5)))
        .unwrap();
    cache.put_negative("gone", 404, &PutOptions::new()).unwrap();
    cache.put_with("purged", "text", &PutOptions::new().tags(&["gone"])).unwrap();
    cache.purge_tag("gone", Purge::Hard).unwrap();
    cache.purge_prefix("old", Purge::Soft).unwrap();
    let resized = cache.resize(&Options::new().size(LARGE)).unwrap();
    assert_eq!((resized.copied, resized.too_large, resized.dead), (603, 0, 1));
    assert_eq!((cache.size(), std::fs::metadata(&path).unwrap().len()), (LARGE, LARGE));
    assert_eq!(cache.entry_bytes_max(), LARGE / 16, "the limit follows from the size");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(names(folder.path()), ["volume"]);
    assert_eq!(count(&cache, 600), 600);
    let hit = cache.get("page").unwrap().unwrap();
    assert_eq!((&*hit, hit.metadata(), hit.serial()), (&b"text"[..], &b"html"[..], serial));
    assert_eq!(hit.tags().collect::<Vec<_>>(), ["shop", "t"]);
    drop(hit);
    assert!(matches!(cache.lookup("old").unwrap(), Lookup::Stale(_)));
    assert!(matches!(cache.lookup("gone").unwrap(), Lookup::Negative(_)));
    assert!(!cache.contains("purged").unwrap());
    cache.purge_tag("shop", Purge::Hard).unwrap();
    assert!(!cache.contains("page").unwrap(), "the new volume knows the tags, too");
    fill(&cache, 2200, 1000);
    assert_eq!(count(&cache, 2200), 2200);
    assert_sound(&cache);
    drop(cache);
    assert_eq!(count(&Cache::open(&path).unwrap(), 2200), 2200);
}

#[test]
fn small_entries_find_their_slots_in_the_new_volume() {
    let folder = fast_folder();
    let cache = Options::new().size(LARGE).open(folder.path().join("volume")).unwrap();
    fill(&cache, 60_000, 50);
    let entries = cache.stats().unwrap().entries;
    let resized = cache.resize(&Options::new().size(LARGE * 2)).unwrap();
    assert_eq!(resized.copied, entries);
    let left = cache.stats().unwrap().entries;
    assert!(left >= entries * 99 / 100, "{left} of {entries} are left");
}

#[test]
fn a_volume_that_shrinks_keeps_the_hot_ones() {
    let folder = fast_folder();
    let cache = Options::new().size(LARGE).open(folder.path().join("volume")).unwrap();
    fill(&cache, 3000, 1000);
    cache.put("large", vec![1; 100_000]).unwrap();
    let hot = || (0..300_u32).map(|number| number * 10);
    for number in hot().chain(hot()).chain(hot()) {
        cache.get(number.to_le_bytes()).unwrap();
    }
    let resized = cache.resize(&Options::new().size(SMALL)).unwrap();
    assert_eq!((cache.size(), resized.too_large), (SMALL, 1));
    let kept = hot().filter(|number| cache.contains(number.to_le_bytes()).unwrap()).count();
    assert!(kept >= 290, "{kept} of 300");
    assert!(count(&cache, 3000) > 700);
    assert_sound(&cache);
}

#[test]
fn only_the_index_may_change_and_limits_are_kept_or_raised() {
    let folder = fast_folder();
    let options = Options::new().size(SMALL).entry_bytes_max(50_000).entry_size_hint(4096);
    let cache = options.open(folder.path().join("volume")).unwrap();
    let slots = cache.stats().unwrap().index_slots;
    cache.resize(&Options::new().entry_size_hint(100)).unwrap();
    assert!(cache.stats().unwrap().index_slots > 4 * slots);
    assert_eq!((cache.size(), cache.entry_bytes_max()), (SMALL, 50_000));
    cache.resize(&Options::new().size(LARGE).entry_bytes_max(LARGE / 4)).unwrap();
    assert_eq!(cache.entry_bytes_max(), LARGE / 4);
    // Many times over: no resize leaves anything behind.
    for size in [SMALL, LARGE, SMALL, LARGE] {
        cache.resize(&Options::new().size(size)).unwrap();
    }
    assert_eq!(names(folder.path()), ["volume"]);
}

#[test]
fn held_hits_stay_and_other_handles_move_over() {
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let cache = Options::new().size(SMALL).open(&path).unwrap();
    fill(&cache, 100, 1000);
    let (clone, other) = (cache.clone(), Cache::open(&path).unwrap());
    let reader = Options::new().read_only(true).open(&path).unwrap();
    let key = 7_u32.to_le_bytes();
    let held = other.get(key).unwrap().unwrap();
    let owned = clone.get(key).unwrap().unwrap().into_owned();
    cache.resize(&Options::new().size(LARGE)).unwrap();
    other.put("new", "in the new one").unwrap();
    for one in [&cache, &clone, &other, &reader] {
        assert_eq!(&*one.get("new").unwrap().unwrap(), b"in the new one");
        assert_eq!((one.size(), count(one, 100)), (LARGE, 100));
    }
    fill(&cache, 3000, 1000);
    assert_eq!((version_of(&key, &held), version_of(&key, &owned)), (1, 1));
}

#[test]
fn an_update_during_a_resize_ends_in_the_new_volume() {
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let cache = Options::new().size(SMALL).open(&path).unwrap();
    let other = Cache::open(&path).unwrap();
    for (round, size) in [LARGE, SMALL].into_iter().enumerate() {
        let updated = cache.update("n", &PutOptions::new(), |entry| {
            other.resize(&Options::new().size(size)).unwrap();
            Change::Put([entry.map_or(&b""[..], |hit| hit), b"x"].concat())
        });
        assert!(matches!(updated.unwrap(), Updated::Stored(_)));
        assert_eq!(&*cache.get("n").unwrap().unwrap(), "x".repeat(round + 1).as_bytes());
    }
    let updated = cache.update("n", &PutOptions::new(), |_| {
        other.resize(&Options::new().size(LARGE)).unwrap();
        other.put("n", "by somebody else").unwrap();
        Change::Put(b"lost".to_vec())
    });
    assert_eq!(updated.unwrap(), Updated::Superseded);
    assert_eq!(&*cache.get("n").unwrap().unwrap(), b"by somebody else");
}

#[test]
fn nobody_misses_or_loses_anything_while_it_is_resized() {
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let options = Options::new().size(LARGE).entry_size_hint(300).lock_deadline(Duration::from_mins(1));
    let cache = options.open(&path).unwrap();
    fill(&cache, 200, 1000);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..3_u32 {
            let (stop, other) = (&stop, Options::new().lock_deadline(Duration::from_mins(1)).open(&path).unwrap());
            scope.spawn(move || {
                let mut version = 1;
                while !stop.load(Relaxed) {
                    for number in 0..200_u32 {
                        let hit = other.get(number.to_le_bytes()).unwrap();
                        assert_eq!(version_of(&number.to_le_bytes(), &hit.expect("it is never evicted")), 1);
                    }
                    let key = (1_000_000 + thread).to_le_bytes();
                    version += 1;
                    other.put(key, value(&key, version, 20_000)).unwrap();
                    assert_eq!(version_of(&key, &other.get(key).unwrap().unwrap()), version);
                }
            });
        }
        for round in 0..soak(6, 60) {
            cache.resize(&Options::new().size(if round % 2 == 0 { LARGE + SMALL } else { LARGE })).unwrap();
        }
        stop.store(true, Relaxed);
    });
    assert_sound(&cache);
}

#[test]
fn child() {
    play(&[("follower", follower)]);
}

/// Reads what it is told, in a volume that is resized meanwhile.
fn follower(arguments: &[&str]) {
    let cache = Cache::open(arguments[0]).unwrap();
    say("ready");
    loop {
        let key = common::listen();
        cache.put("answer", &key).unwrap();
        say(&String::from_utf8_lossy(&cache.get(&key).unwrap().unwrap()));
    }
}

#[test]
fn another_process_moves_over_by_itself() {
    let _turn = turn();
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let cache = Options::new().size(SMALL).open(&path).unwrap();
    let mut child = Child::start("follower", &[path.to_str().unwrap()]);
    child.expect("ready");
    for (round, size) in [LARGE, SMALL, LARGE].into_iter().enumerate() {
        cache.resize(&Options::new().size(size)).unwrap();
        let key = format!("key{round}");
        cache.put(&key, format!("value{round}")).unwrap();
        child.tell(&key);
        child.expect(&format!("value{round}"));
    }
    child.kill();
    assert_eq!(&*cache.get("answer").unwrap().unwrap(), b"key2");
}

/// A link to the volume, in a folder of its own.
fn link_to(path: &Path) -> (TempDir, PathBuf) {
    let links = fast_folder();
    let link = links.path().join("link");
    symlink(path, &link).unwrap();
    (links, link)
}

#[test]
fn through_a_link_the_volume_itself_is_resized() {
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let (links, link) = link_to(&path);
    let beside = Options::new().size(SMALL).open(&path).unwrap();
    let cache = Cache::open(&link).unwrap();
    assert_eq!(cache.path(), beside.path());
    fill(&cache, 100, 1000);
    cache.resize(&Options::new().size(LARGE)).unwrap();
    assert_eq!(std::fs::read_link(&link).unwrap(), path);
    assert_eq!((names(links.path()), names(folder.path())), (vec!["link".to_owned()], vec!["volume".to_owned()]));
    assert_eq!((std::fs::metadata(&path).unwrap().len(), count(&beside, 100), beside.size()), (LARGE, 100, LARGE));
    assert_eq!(count(&Cache::open(&link).unwrap(), 100), 100);
}

#[test]
fn a_death_at_any_store_leaves_the_old_volume_or_the_new_one() {
    let _turn = turn();
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let (_links, link) = link_to(&path);
    let (mut old, mut new) = (0, 0);
    // The number of stores in a resize of so little, and some more.
    let last = 260;
    for stores in (0..last).step_by(soak(13, 1)) {
        let _ = std::fs::remove_file(&path);
        drop(Options::new().size(512 << 10).open(&path).unwrap());
        let cache = Cache::open(&link).unwrap();
        fill(&cache, 8, 200);
        let status = fork(|| {
            seams::die_after(stores);
            let _ = cache.resize(&Options::new().size(SMALL));
            seams::die_after(i64::MAX);
        });
        let status = status.wait();
        assert!(status.success() || status.signal() == Some(libc::SIGKILL), "{stores}: {status}");
        assert_eq!(count(&cache, 8), 8, "store {stores}");
        cache.put("after", "works").unwrap();
        match cache.size() {
            SMALL => new += 1,
            _ => old += 1,
        }
        assert_sound(&cache);
        let opened = Cache::open(if stores % 2 == 0 { &path } else { &link }).unwrap();
        assert_eq!((opened.size(), &*opened.get("after").unwrap().unwrap()), (cache.size(), &b"works"[..]));
        cache.resize(&Options::new().size(2 * SMALL)).unwrap();
        assert_eq!(count(&cache, 8), 8);
        assert_eq!(names(folder.path()), ["volume"], "files of dead resizes are removed");
    }
    assert!(old > 0 && new > 0, "{old} {new}");
}

#[test]
fn a_volume_that_cannot_be_resized_returns_an_error() {
    let cache = Options::new().size(SMALL).heap().unwrap();
    let error = cache.resize(&Options::new().size(LARGE)).unwrap_err();
    assert!(matches!(error, Error::Nameless), "{error:?}");
    assert!(error.to_string().contains("can't be resized; create a new one"), "{error}");
    assert!(matches!(Options::new().anonymous().unwrap().resize(&Options::new()), Err(Error::Nameless)));
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let cache = Options::new().size(SMALL).open(&path).unwrap();
    let reader = Options::new().read_only(true).open(&path).unwrap();
    assert!(matches!(reader.resize(&Options::new().size(LARGE)), Err(Error::ReadOnly { .. })));
    assert!(matches!(cache.resize(&Options::new().size(1)), Err(Error::SizeTooSmall { .. })));
    assert!(matches!(cache.resize(&Options::new().entry_bytes_max(SMALL)), Err(Error::EntryMaxOutOfRange { .. })));
    cache.put("key", "value").unwrap();
    // Another file is at the path; nobody may replace it.
    std::fs::rename(&path, folder.path().join("elsewhere")).unwrap();
    std::fs::write(&path, "a letter").unwrap();
    assert!(matches!(cache.resize(&Options::new().size(LARGE)), Err(Error::Moved { .. })));
    assert_eq!(std::fs::read(&path).unwrap(), b"a letter");
    assert_eq!(&*cache.get("key").unwrap().unwrap(), b"value");
}
