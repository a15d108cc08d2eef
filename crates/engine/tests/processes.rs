//! A small volume has 32 process slots. The 33rd process gets an error and may still read. When one of the others
//! ends or is killed, there is room again. All of them count what they do in one place.

#![cfg(test)]

mod common;

use common::{Child, fast_folder, listen, play, say};
use eyewall::{Cache, Error, Options};

const SLOTS: usize = 32;

#[test]
fn child() {
    play(&[("attaches", attaches)]);
}

fn attaches(arguments: &[&str]) {
    let cache = Cache::open(arguments[0]).unwrap();
    cache.put(arguments[1], "value").unwrap();
    assert!(cache.get(arguments[1]).unwrap().is_some());
    assert!(cache.get("absent").unwrap().is_none());
    say("attached");
    listen();
}

#[test]
fn processes_are_limited_by_slots_and_dead_ones_free_theirs() {
    let _turn = common::turn();
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let cache = Options::new().size(512 << 10).open(&path).unwrap();
    let start = |number: usize| {
        let mut child = Child::start("attaches", &[path.to_str().unwrap(), &number.to_string()]);
        child.expect("attached");
        child
    };
    let mut children: Vec<Child> = (1..SLOTS).map(start).collect();
    let error = Cache::open(&path).unwrap_err();
    assert!(matches!(error, Error::TooManyProcesses { max: 32 }), "{error:?}");
    assert!(error.to_string().contains("stop some, or create a larger volume"), "{error}");
    let reader = Options::new().read_only(true).open(&path).unwrap();
    assert_eq!(&*reader.get("31").unwrap().unwrap(), b"value");
    assert_eq!(reader.stats().unwrap().processes, SLOTS as u64);
    let stats = cache.stats().unwrap();
    assert_eq!((stats.processes, stats.puts), (SLOTS as u64, SLOTS as u64 - 1));
    assert_eq!((stats.hits, stats.misses, stats.threads), (SLOTS as u64 - 1, SLOTS as u64 - 1, SLOTS as u64 - 1));

    children.pop().unwrap().kill();
    children.push(start(32));
    assert!(Cache::open(&path).is_err());
    let mut orderly = children.pop().unwrap();
    orderly.tell("end");
    orderly.finish();
    drop(Cache::open(&path).unwrap());
    for child in children.drain(..) {
        child.kill();
    }
    let stats = cache.stats().unwrap();
    assert_eq!((stats.processes, stats.threads, stats.pins), (1, 0, 0));
    assert_eq!((stats.hits, stats.puts), (SLOTS as u64, SLOTS as u64), "counts of dead processes stay");
}
