//! Two containers share a volume. Their processes live in PID namespaces of their own, with the same process IDs.
//! Processes in one respect what those in the other hold, never rob their locks, and take over from them when they
//! die.

#![cfg(test)]

mod common;

use std::time::Duration;

use common::{Child, fast_folder, fork, listen, play, say, soak, value, version_of};
use eyewall::{Cache, Error, Options, seams};

#[test]
fn child() {
    play(&[("container", container)]);
}

/// A process with ID 2 in a PID namespace of its own. (The first process of a namespace can't be killed from inside.)
fn container(arguments: &[&str]) {
    let path = arguments[0];
    fork(|| {
        // SAFETY: no pointers are involved; this process has one thread.
        if unsafe { libc::unshare(libc::CLONE_NEWPID) } != 0 {
            return say("not permitted");
        }
        let first = fork(|| {
            assert_eq!(std::process::id(), 1);
            fork(|| {
                assert_eq!(std::process::id(), 2);
                obey(path);
            })
            .wait();
        });
        first.finish();
    })
    .finish();
}

fn options() -> Options {
    Options::new().size(1 << 20).lock_deadline(Duration::from_mins(1))
}

fn obey(path: &str) {
    let cache = options().open(path).unwrap();
    say("attached");
    let mut held = None;
    loop {
        match listen().as_str() {
            "hold" => {
                let hit = cache.get("held").unwrap().unwrap();
                assert!(!hit.is_copy());
                held = Some(hit);
            }
            "check" => {
                let hit = held.take().unwrap();
                assert_eq!(version_of(b"held", &hit), 3);
            }
            "lap" => lap(&cache),
            "stop" => {
                seams::stop_after(0);
                cache.put("stopped", "inside the lock").unwrap();
            }
            "die" => {
                seams::die_after(1);
                lap(&cache);
            }
            _ => return,
        }
        say("done");
    }
}

fn lap(cache: &Cache) {
    for number in 0..2500_u32 {
        let key = number.to_le_bytes();
        cache.put(key, value(&key, 1, 1000)).unwrap();
    }
}

fn start(path: &std::path::Path) -> Option<Child> {
    let mut container = Child::start("container", &[path.to_str().unwrap()]);
    match container.hear().as_str() {
        "attached" => Some(container),
        word => {
            println!("skipped: a PID namespace is {word}");
            None
        }
    }
}

fn order(container: &mut Child, word: &str) {
    container.tell(word);
    container.expect("done");
}

#[test]
fn processes_of_two_containers_respect_each_other_and_bury_each_other() {
    let _turn = common::turn();
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let cache = options().open(&path).unwrap();
    for round in 1..=soak(4, 60) {
        cache.put("held", value(b"held", 3, 2000)).unwrap();
        let (Some(mut one), Some(mut other)) = (start(&path), start(&path)) else { return };
        assert_eq!(cache.stats().unwrap().processes, 3);
        order(&mut one, "hold");
        order(&mut other, "lap");
        order(&mut other, "lap");
        lap(&cache);
        assert_eq!(cache.stats().unwrap().pins, 1);
        order(&mut one, "check");
        // One dies while it holds the lock, and the other continues.
        one.tell("die");
        one.drain();
        order(&mut other, "lap");
        // The other is killed from outside, with a pin.
        cache.put("held", value(b"held", 3, 2000)).unwrap();
        order(&mut other, "hold");
        other.kill_all();
        lap(&cache);
        let stats = cache.stats().unwrap();
        assert_eq!((stats.processes, stats.pins, stats.repairs, stats.resets), (1, 0, round, 0), "{stats:?}");
        assert!(cache.verify().unwrap().is_sound());
    }
}

#[test]
fn a_stopped_holder_in_another_container_is_not_robbed() {
    let _turn = common::turn();
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let cache = options().lock_deadline(Duration::from_millis(30)).open(&path).unwrap();
    let (Some(mut one), Some(mut other)) = (start(&path), start(&path)) else { return };
    order(&mut other, "lap");
    cache.put("probe", "value").unwrap();
    one.tell("stop");
    // Only its own parent is told that it has stopped; that it holds the lock shows here.
    while cache.put("probe", "value").is_ok() {}
    for _ in 0..5 {
        assert!(matches!(cache.put("other", "value").unwrap_err(), Error::Busy { .. }));
    }
    // Of the entries read meanwhile, check the newest. If stopping took long, the probes have evicted others.
    assert_eq!(cache.get("probe").unwrap().unwrap().as_ref(), b"value");
    one.signal_all(libc::SIGCONT);
    one.expect("done");
    order(&mut other, "lap");
    let stats = cache.stats().unwrap();
    assert_eq!((stats.repairs, stats.processes), (0, 3));
    one.tell("end");
    one.drain();
    other.kill_all();
    cache.put("other", "value").unwrap();
}
