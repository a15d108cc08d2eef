//! One process opens a volume again and again. Each attachment takes a process slot, and all clones of one share it.
//!
//! A file of its own, since a process that another test starts takes a slot between fork and exec.

#![cfg(test)]

mod common;

use common::fast_folder;
use eyewall::{Cache, Error, Options};

/// Process slots of the smallest volume.
const SLOTS: usize = 32;

#[test]
fn each_attachment_of_one_process_counts() {
    let _turn = common::turn();
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let first = Options::new().size(512 << 10).open(&path).unwrap();
    let more: Vec<Cache> = (1..SLOTS).map(|_| Cache::open(&path).unwrap()).collect();
    assert!(matches!(Cache::open(&path).unwrap_err(), Error::TooManyProcesses { .. }));
    let clone = first.clone();
    drop(more);
    assert_eq!(clone.stats().unwrap().processes, 1);
}

#[test]
fn a_process_stopped_while_it_attaches_delays_the_others_only_for_a_time() {
    let _turn = common::turn();
    if !common::soak(false, true) {
        println!("waits for ten seconds: `make soak` runs it");
        return;
    }
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let first = Options::new().size(512 << 10).open(&path).unwrap();
    // The byte of the attach lock.
    let file = std::fs::File::options().read(true).write(true).open(&path).unwrap();
    eyewall_region::liveness::lock(&file, 0).unwrap();
    let error = Cache::open(&path).unwrap_err();
    assert!(matches!(error, Error::Busy { .. }), "{error}");
    assert!(error.to_string().contains("its holder is stopped"), "{error}");
    drop(file);
    Cache::open(&path).unwrap().put("key", "value").unwrap();
    assert!(first.get("key").unwrap().is_some());
}

#[test]
fn a_copy_counts_as_a_crash_and_a_resize_keeps_the_count() {
    let _turn = common::turn();
    let folder = fast_folder();
    let [path, copy] = ["volume", "copy"].map(|name| folder.path().join(name));
    let cache = Options::new().size(512 << 10).open(&path).unwrap();
    cache.put("key", "value").unwrap();
    drop(cache);
    assert_eq!(Cache::open(&path).unwrap().crashes().unwrap(), 0);
    std::fs::copy(&path, &copy).unwrap();
    let copied = Cache::open(&copy).unwrap();
    assert_eq!(copied.crashes().unwrap(), 1);
    copied.resize(&Options::new().size(1 << 20)).unwrap();
    assert_eq!(copied.crashes().unwrap(), 1);
    drop(copied);
    assert_eq!(Cache::open(&copy).unwrap().crashes().unwrap(), 1);
}
