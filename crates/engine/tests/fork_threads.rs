//! A process opens and closes volumes in one thread and forks in another. Its children must not keep the locks that
//! the first thread held at the moment of the fork: the attach lock, and the byte lock that keeps a process alive.

#![cfg(test)]

mod common;

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use common::{Child, fast_folder, fork, listen, play, say, soak};
use eyewall::Options;

#[test]
fn child() {
    play(&[("forks while it opens", forks_while_it_opens)]);
}

/// Ends by `_exit` with its volumes open. Its forked children live until their input ends.
fn forks_while_it_opens(arguments: &[&str]) {
    let options = Options::new().size(512 << 10);
    let path = arguments[0];
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Relaxed) {
                let cache = options.open(path).unwrap();
                cache.stats().unwrap();
            }
        });
        // Fewer than the volume has process slots.
        for _ in 0..24 {
            // Nothing of the engine runs in them except its hook, since the other thread may have been anywhere.
            let _ = fork(|| drop(listen()));
        }
        stop.store(true, Relaxed);
    });
    say("done");
}

#[test]
fn children_do_not_keep_the_locks_of_a_thread_that_was_opening() {
    let _turn = common::turn();
    for _ in 0..soak(4, 100) {
        one_round();
    }
}

fn one_round() {
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let mut parent = Child::start("forks while it opens", &[path.to_str().unwrap()]);
    parent.expect("done");
    // Its children still live. Those that were forked while the volume was open are attached, each once.
    let cache = Options::new().open(&path).unwrap();
    let attached = cache.stats().unwrap().processes;
    assert!(attached >= 1);
    cache.put("key", "value").unwrap();
    assert!(parent.wait().success());
    parent.drain();
    // The kernel releases the locks of dead processes a moment after their ends of the pipe.
    let alone = (0..100_000).any(|_| {
        std::thread::yield_now();
        cache.stats().unwrap().processes == 1
    });
    assert!(alone, "the dead processes stay attached");
    drop(cache);
    assert_eq!(Options::new().open(&path).unwrap().stats().unwrap().processes, 1);
}
