//! Somebody truncates the file of a mapped volume. By default, the kernel ends every process that reads it. If the
//! volume was opened to survive it, the process lives: its current call ends, nothing waits forever, every call
//! returns the error, a held hit says that it can't be trusted, and other volumes continue.

#![cfg(test)]

mod anatomy;
mod common;

use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;

use common::{Child, disk_folder, fast_folder, fork, listen, play, say, value, version_of};
use eyewall::{Cache, Change, Error, Hit, Options, PutOptions};

const SIZE: u64 = 1 << 20;
const ENTRY: usize = 3000;
/// Its largest entries are filled outside of the lock.
const LARGE: usize = 40_000;
/// Where the superblock says whether the volume is clean.
const CLEAN_AT: u64 = 192;

#[test]
fn child() {
    play(&[
        ("calls", calls),
        ("holds", holds),
        ("holds of a resized volume", holds_of_a_resized_volume),
        ("reads without the option", reads_without_the_option),
        ("two volumes", two_volumes),
        ("threads", threads),
        ("forks", forks),
        ("leaves", leaves),
        ("returns", returns),
        ("reader", reader),
    ]);
}

fn open(path: &str) -> Cache {
    Options::new().size(SIZE).survive_sigbus(true).open(path).unwrap()
}

fn key(number: u32) -> [u8; 4] {
    number.to_le_bytes()
}

fn fill(cache: &Cache) {
    for number in 0..400 {
        cache.put(key(number), value(&key(number), 0, ENTRY)).unwrap();
    }
}

/// Lets the parent truncate the file.
fn truncated() {
    say("truncate");
    assert_eq!(listen(), "done");
}

fn truncate(path: &Path, bytes: u64) {
    File::options().write(true).open(path).unwrap().set_len(bytes).unwrap();
}

/// Starts a role with a volume in a new folder, and truncates it to `bytes` when the role asks.
fn run(role: &str, argument: &str, bytes: u64) {
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let mut child = Child::start(role, &[path.to_str().unwrap(), argument]);
    child.expect("truncate");
    truncate(&path, bytes);
    child.tell("done");
    child.finish();
    assert_eq!(path.metadata().unwrap().len(), bytes, "nothing makes the file longer again");
}

/// Lengths: nothing; the superblock; half of the index; index and half of the data; all except the end of the last
/// ring.
const LENGTHS: [u64; 5] = [0, 4096, 48 << 10, SIZE / 2, SIZE - (128 << 10)];

type Call = (&'static str, fn(&Cache, &Path) -> Result<(), Error>);

const CALLS: [Call; 16] = [
    ("get", |cache, _| cache.get(key(399)).map(drop)),
    ("peek", |cache, _| cache.peek(key(398)).map(drop)),
    ("get_into", |cache, _| cache.get_into(key(397), &mut Vec::new()).map(drop)),
    ("contains", |cache, _| cache.contains("absent").map(drop)),
    ("put", |cache, _| cache.put("new", value(b"new", 0, ENTRY)).map(drop)),
    ("large put", |cache, _| cache.put("large", value(b"large", 0, LARGE)).map(drop)),
    ("add", |cache, _| cache.add("added", "value", &PutOptions::new()).map(drop)),
    ("replace_if", |cache, _| cache.replace_if(key(396), 1, "value", &PutOptions::new()).map(drop)),
    ("update", |cache, _| {
        cache.update(key(395), &PutOptions::new(), |_| Change::Put(value(&key(395), 1, ENTRY))).map(drop)
    }),
    ("remove", |cache, _| cache.remove(key(394)).map(drop)),
    ("clear", |cache, _| cache.clear().map(drop)),
    ("stats", |cache, _| cache.stats().map(drop)),
    ("verify", |cache, _| cache.verify().map(drop)),
    ("is_resident", |cache, _| cache.is_resident(key(393)).map(drop)),
    ("prefault", |cache, _| cache.prefault(key(392)).map(drop)),
    ("iter", |cache, path| {
        cache.iter().for_each(drop);
        if cache.is_failed() { Err(Error::Failed { path: path.to_owned() }) } else { Ok(()) }
    }),
];

fn is_failure(error: &Error, expected: &Path) -> bool {
    matches!(error, Error::Failed { path } if path == expected)
}

#[test]
fn the_first_call_to_meet_the_loss_ends_with_an_error() {
    for bytes in LENGTHS {
        for (name, _) in CALLS {
            run("calls", name, bytes);
        }
    }
}

fn calls(arguments: &[&str]) {
    let path = Path::new(arguments[0]);
    let cache = open(arguments[0]);
    fill(&cache);
    assert!(!cache.is_failed());
    truncated();
    let (_, first) = CALLS.into_iter().find(|(name, _)| *name == arguments[1]).unwrap();
    // The bytes still in the file may be enough. A truncated volume can also be refused for other reasons.
    if let Err(error) = first(&cache, path) {
        let refused = matches!(error, Error::Io { .. }) && arguments[1] == "prefault";
        assert!(refused || is_failure(&error, path), "{error}");
    }
    for _ in 0..10 {
        for number in 0..400 {
            let Ok(Some(hit)) = cache.get(key(number)) else { continue };
            let same = *hit == *value(&key(number), u32::from(number == 395 && hit[0] == 1), ENTRY);
            assert!(same || !hit.is_intact(), "lost bytes are never taken for a value");
        }
        for number in 0..400_u32 {
            let new = [7, number as u8, (number >> 8) as u8];
            let stored = cache.put(new, value(&new, 1, ENTRY));
            assert!(stored.is_ok() || is_failure(&stored.unwrap_err(), path));
        }
    }
    assert!(cache.is_failed(), "everything was read and written");
    for (name, call) in CALLS {
        let error = call(&cache, path).unwrap_err();
        assert!(is_failure(&error, path), "{name}: {error}");
    }
    assert!(is_failure(&cache.populate().unwrap_err(), path));
    assert_eq!(cache.iter().count(), 0);
    let told = cache.get("any").unwrap_err().to_string();
    assert!(told.contains("truncated") && told.contains("open it again"), "{told}");
    drop(cache);
    // A new volume in its place works like any other.
    let kept = path.with_extension("kept");
    std::fs::rename(path, &kept).unwrap();
    let cache = open(arguments[0]);
    fill(&cache);
    assert_eq!(version_of(&key(399), &cache.get(key(399)).unwrap().unwrap()), 0);
    assert!(cache.verify().unwrap().is_sound() && !cache.is_failed());
    drop(cache);
    std::fs::rename(&kept, path).unwrap();
}

#[test]
fn a_held_hit_says_that_it_is_not_intact_and_a_copy_stays_intact() {
    for bytes in [0, 4096, SIZE / 8] {
        run("holds", "", bytes);
    }
}

fn holds(arguments: &[&str]) {
    let cache = open(arguments[0]);
    let other = Options::new().read_only(true).survive_sigbus(true).open(arguments[0]).unwrap();
    fill(&cache);
    let held: Vec<Hit<'_>> = (300..400).filter_map(|number| cache.get(key(number)).unwrap()).collect();
    let owned = cache.get(key(399)).unwrap().unwrap().into_owned();
    let copy = other.get(key(399)).unwrap().unwrap();
    assert!(copy.is_copy() && held.iter().all(Hit::is_intact) && owned.is_intact());
    truncated();
    for hit in &held {
        let number = u32::from_le_bytes(hit.key().try_into().unwrap_or_default());
        let same = hit.key().len() == 4 && **hit == *value(&key(number), 0, ENTRY);
        assert!(same || !hit.is_intact(), "lost bytes are never taken for a value");
    }
    assert!(cache.is_failed() && held.iter().all(|hit| !hit.is_intact() || hit.is_copy()) && !owned.is_intact());
    assert_eq!(owned.len(), ENTRY);
    assert!(copy.is_intact() && !other.is_failed());
    assert_eq!(version_of(&key(399), &copy), 0);
    assert!(other.iter().all(|hit| version_of(hit.key(), &hit) == 0));
    drop((held, owned));
}

#[test]
fn a_loss_in_a_resized_volume_is_noticed_and_the_new_one_continues() {
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let mut child = Child::start("holds of a resized volume", &[path.to_str().unwrap()]);
    child.expect("resized");
    let old = File::options().write(true).open(folder.path().join("old")).unwrap();
    old.set_len(0).unwrap();
    child.tell("truncated");
    child.finish();
}

fn holds_of_a_resized_volume(arguments: &[&str]) {
    let path = Path::new(arguments[0]);
    let cache = open(arguments[0]);
    fill(&cache);
    std::fs::hard_link(path, path.with_file_name("old")).unwrap();
    let held = cache.get(key(399)).unwrap().unwrap().into_owned();
    cache.resize(&Options::new().size(2 * SIZE)).unwrap();
    // The handle moves over with its next call.
    assert!(cache.contains(key(399)).unwrap() && held.is_intact() && cache.failures() == 0);
    say("resized");
    assert_eq!(listen(), "truncated");
    assert_ne!(**held, *value(&key(399), 0, ENTRY));
    assert!(!held.is_intact() && cache.failures() == 1);
    assert!(!cache.is_failed(), "the new volume has lost nothing");
    assert_eq!(version_of(&key(399), &cache.get(key(399)).unwrap().unwrap()), 0);
}

#[test]
fn without_the_option_the_process_ends() {
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let mut child = Child::start("reads without the option", &[path.to_str().unwrap()]);
    child.expect("truncate");
    truncate(&path, 0);
    child.tell("done");
    let status = child.wait();
    assert_eq!(status.signal(), Some(libc::SIGBUS), "{status}");
}

fn reads_without_the_option(arguments: &[&str]) {
    // Sanitizers have a handler of their own.
    // SAFETY: no pointers are involved.
    unsafe { libc::signal(libc::SIGBUS, libc::SIG_DFL) };
    let cache = Options::new().size(SIZE).open(arguments[0]).unwrap();
    fill(&cache);
    truncated();
    let _ = cache.get(key(1));
}

#[test]
fn another_volume_continues() {
    run("two volumes", "", 0);
}

fn two_volumes(arguments: &[&str]) {
    let cache = open(arguments[0]);
    let other = open(&format!("{} of another", arguments[0]));
    let unnamed = Options::new().size(SIZE).survive_sigbus(true).anonymous().unwrap();
    for cache in [&cache, &other, &unnamed] {
        fill(cache);
    }
    let held = other.get(key(399)).unwrap().unwrap();
    truncated();
    cache.get(key(399)).map(drop).unwrap_err();
    for cache in [&other, &unnamed] {
        fill(cache);
        assert_eq!(version_of(&key(399), &cache.get(key(399)).unwrap().unwrap()), 0);
        assert!(!cache.is_failed() && cache.verify().unwrap().is_sound());
    }
    assert!(held.is_intact() && version_of(&key(399), &held) == 0);
    drop(cache);
    fill(&other);
}

#[test]
fn threads_in_the_middle_of_everything_come_to_an_end() {
    for round in 0..common::soak(3, 100) {
        for bytes in LENGTHS {
            run("threads", &round.to_string(), bytes);
        }
    }
}

fn threads(arguments: &[&str]) {
    let path = Path::new(arguments[0]);
    let cache = open(arguments[0]);
    fill(&cache);
    std::thread::scope(|scope| {
        for thread in 0..6_u32 {
            let cache = &cache;
            scope.spawn(move || {
                let mut number = thread;
                while !cache.is_failed() {
                    number = number.wrapping_mul(5).wrapping_add(thread + 1);
                    let key = key(number % 400);
                    let done = match thread % 3 {
                        0 => cache.get(key).map(|hit| hit.is_some_and(|hit| hit[ENTRY - 1] == 1)),
                        1 => cache.put(key, value(&key, 0, ENTRY)).map(|_| true),
                        _ => cache.put(key, value(&key, 0, LARGE)).map(|_| true),
                    };
                    assert!(done.is_ok() || is_failure(&done.unwrap_err(), path));
                }
            });
        }
        truncated();
    });
}

#[test]
fn forked_children_survive_the_loss_too() {
    run("forks", "", 0);
}

fn forks(arguments: &[&str]) {
    let cache = open(arguments[0]);
    fill(&cache);
    truncated();
    let meet = || {
        cache.get(key(399)).map(drop).unwrap_err();
        assert!(cache.is_failed());
    };
    // Each process meets the loss for itself; a child meets it when it registers.
    fork(meet).finish();
    assert!(!cache.is_failed());
    meet();
    // A child of a process that has met the loss knows it.
    fork(|| {
        assert!(cache.is_failed());
        cache.put("key", "value").map(drop).unwrap_err();
    })
    .finish();
}

#[test]
fn a_failed_volume_is_not_marked_clean() {
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let mut child = Child::start("leaves", &[path.to_str().unwrap()]);
    child.expect("truncate");
    truncate(&path, SIZE / 2);
    child.tell("done");
    child.expect("failed");
    truncate(&path, SIZE);
    child.tell("leave");
    child.finish();
    assert_eq!(anatomy::word(&std::fs::read(&path).unwrap(), CLEAN_AT), 0);
    // In a process of its own: a child that another test forks here is attached to our volumes until it runs its
    // program, and then we don't leave as the last one.
    Child::start("returns", &[path.to_str().unwrap()]).finish();
    assert_eq!(anatomy::word(&std::fs::read(&path).unwrap(), CLEAN_AT), 1);
}

/// If the file gets its old length back, an opener finds only entries that it can verify.
fn returns(arguments: &[&str]) {
    let cache = Cache::open(arguments[0]).unwrap();
    for number in 0..400 {
        if let Some(hit) = cache.get(key(number)).unwrap() {
            assert_eq!(version_of(&key(number), &hit), 0);
        }
    }
}

fn leaves(arguments: &[&str]) {
    let cache = open(arguments[0]);
    fill(&cache);
    truncated();
    for number in 0..400 {
        let _ = cache.put(key(number), value(&key(number), 0, ENTRY));
    }
    assert!(cache.is_failed());
    say("failed");
    assert_eq!(listen(), "leave");
}

#[test]
fn read_only_processes_survive_the_loss_too() {
    for folder in [fast_folder(), disk_folder()] {
        let path = folder.path().join("volume");
        fill(&open(path.to_str().unwrap()));
        let mut child = Child::start("reader", &[path.to_str().unwrap()]);
        child.expect("truncate");
        truncate(&path, 0);
        child.tell("done");
        child.finish();
    }
}

fn reader(arguments: &[&str]) {
    let cache = Options::new().read_only(true).survive_sigbus(true).open(arguments[0]).unwrap();
    assert_eq!(version_of(&key(399), &cache.get(key(399)).unwrap().unwrap()), 0);
    truncated();
    assert!(is_failure(&cache.get(key(399)).map(drop).unwrap_err(), Path::new(arguments[0])));
    assert!(is_failure(&cache.stats().map(drop).unwrap_err(), Path::new(arguments[0])));
}
