//! One process opens a volume again and again: each attachment takes a process slot, all clones of one share it.
//!
//! A file of its own: processes that another test starts take a slot each between fork and exec.

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
