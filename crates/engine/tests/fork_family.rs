//! A daemon forks, its child forks, and the two elders die: one by an orderly end, one by SIGKILL. The youngest
//! continues, and never was the same process as they to others. Its pins hold, its lock is its own, and when it dies,
//! too, nothing is left.

#![cfg(test)]

mod common;

use common::{Child, fast_folder, fork, listen, play, say, value, version_of};
use eyewall::{Cache, Options, seams};

#[test]
fn child() {
    play(&[("elder", elder), ("anonymous elder", anonymous_elder)]);
}

fn lap(cache: &Cache) {
    for number in 0..3000_u32 {
        let key = number.to_le_bytes();
        cache.put(key, value(&key, 1, 1000)).unwrap();
    }
}

fn elder(arguments: &[&str]) {
    let cache = Cache::open(arguments[0]).unwrap();
    cache.put("held", value(b"held", 7, 2000)).unwrap();
    let inherited = cache.get("held").unwrap().unwrap();
    // The middle one ends in order before its child has said a word.
    fork(|| {
        lap(&cache);
        let held = cache.get("held").unwrap().unwrap();
        fork(|| youngest(&cache));
        assert_eq!(version_of(b"held", &held), 7);
        drop(cache.clone());
    })
    .finish();
    assert_eq!(version_of(b"held", &inherited), 7);
    say("middle one gone");
    listen();
}

/// Hears and speaks through what it inherited.
fn youngest(cache: &Cache) {
    say("born");
    listen();
    let held = cache.get("held").unwrap().unwrap();
    assert!(!held.is_copy());
    say("holds");
    assert_eq!(listen(), "elder gone");
    lap(cache);
    assert_eq!(version_of(b"held", &held), 7, "others have lapped the ring, and so have we");
    drop(held);
    assert_eq!(cache.stats().unwrap().processes, 2);
    cache.put("youngest", "lives").unwrap();
    say("went on");
    listen();
    let _held = cache.get("youngest").unwrap().unwrap();
    seams::die_after(2);
    lap(cache);
}

#[test]
fn a_grandchild_continues_after_its_elders_have_died() {
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let cache = Options::new().size(1 << 20).open(&path).unwrap();
    let mut family = Child::start("elder", &[path.to_str().unwrap()]);
    let mut words = [family.hear(), family.hear()];
    words.sort();
    assert_eq!(words, ["born", "middle one gone"]);
    assert_eq!(cache.stats().unwrap().processes, 3, "ours, the elder, the youngest");
    family.signal(libc::SIGSTOP);
    family.tell("hold");
    family.expect("holds");
    assert_eq!(cache.stats().unwrap().pins, 2);
    family.signal(libc::SIGKILL);
    family.wait_until_killed();
    assert_eq!((cache.stats().unwrap().processes, cache.stats().unwrap().pins), (2, 1));
    lap(&cache);
    lap(&cache);
    family.tell("elder gone");
    family.expect("went on");
    assert_eq!(&*cache.get("youngest").unwrap().unwrap(), b"lives");
    family.tell("die");
    family.drain();
    lap(&cache);
    let stats = cache.stats().unwrap();
    assert_eq!((stats.processes, stats.pins, stats.repairs), (1, 0, 1), "{stats:?}");
    assert!(cache.verify().unwrap().is_sound());
}

fn anonymous_elder(_: &[&str]) {
    let cache = Options::new().size(1 << 20).anonymous().unwrap();
    cache.put("held", value(b"held", 7, 2000)).unwrap();
    fork(|| {
        listen();
        assert_eq!(version_of(b"held", &cache.get("held").unwrap().unwrap()), 7);
        // A sibling dies while it holds a lock.
        fork(|| {
            seams::die_after(1);
            lap(&cache);
        })
        .reap();
        lap(&cache);
        let stats = cache.stats().unwrap();
        assert_eq!((stats.processes, stats.repairs), (1, 1), "{stats:?}");
        say("went on");
    });
    say("forked");
    // Ends at once, without running a destructor.
}

#[test]
fn an_anonymous_volume_lives_as_long_as_one_of_its_processes() {
    let mut family = Child::start("anonymous elder", &[]);
    family.expect("forked");
    family.wait_for_the_leader();
    family.tell("elder gone");
    family.expect("went on");
    family.drain();
}
