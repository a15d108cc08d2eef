//! A daemon closes every descriptor that it doesn't know, those of the cache among them, and later gets the same
//! numbers for its own files. For others it stays alive: its pins hold, and its lock isn't robbed. It continues
//! itself, and never closes a file that isn't the cache's.

#![cfg(test)]

mod common;

use std::fs::File;
use std::os::fd::AsRawFd;
use std::time::Duration;

use common::{Child, fast_folder, fork, listen, play, say, value, version_of};
use eyewall::{Cache, Error, Options, seams};

#[test]
fn child() {
    play(&[("daemon", daemon), ("daemon that stops", daemon_that_stops)]);
}

/// Standard input and output stay open, since we talk through them.
fn close_all() {
    // SAFETY: no pointers are involved. Nobody else in this process owns a descriptor that is used later.
    assert_eq!(unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0) }, 0);
}

fn lap(cache: &Cache) {
    for number in 0..3000_u32 {
        let key = number.to_le_bytes();
        cache.put(key, value(&key, 1, 1000)).unwrap();
    }
}

fn daemon(arguments: &[&str]) {
    let cache = Cache::open(arguments[0]).unwrap();
    cache.put("held", value(b"held", 1, 3000)).unwrap();
    let held = cache.get("held").unwrap().unwrap();
    assert!(!held.is_copy());
    // With POSIX record locks, this alone would end its life in the eyes of others.
    drop(File::options().read(true).write(true).open(arguments[0]).unwrap());
    close_all();
    // The same numbers are used again for other files.
    let others: Vec<File> = (0..20).map(|_| File::open("/dev/null").unwrap()).collect();
    say("closed");
    listen();
    assert_eq!(version_of(b"held", &held), 1, "others have lapped the ring");
    drop(held);
    lap(&cache);
    cache.put("from the daemon", "it goes on").unwrap();
    assert_eq!(cache.stats().unwrap().processes, 2);
    fork(|| {
        cache.put("from its child", "a child registers, too").unwrap();
        assert_eq!(cache.stats().unwrap().processes, 3);
    })
    .finish();
    drop(cache);
    for other in others {
        // SAFETY: no pointers.
        assert!(unsafe { libc::fcntl(other.as_raw_fd(), libc::F_GETFD) } >= 0, "somebody closed another's file");
    }
    say("left");
}

#[test]
fn a_process_that_closed_all_descriptors_lives_on() {
    let _turn = common::turn();
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let cache = Options::new().size(1 << 20).open(&path).unwrap();
    let mut daemon = Child::start("daemon", &[path.to_str().unwrap()]);
    daemon.expect("closed");
    assert_eq!(cache.stats().unwrap().processes, 2);
    lap(&cache);
    lap(&cache);
    daemon.tell("go on");
    daemon.expect("left");
    daemon.finish();
    for key in ["from the daemon", "from its child"] {
        assert!(cache.get(key).unwrap().is_some(), "{key}");
    }
    let stats = cache.stats().unwrap();
    assert_eq!((stats.processes, stats.pins, stats.repairs), (1, 0, 0));
}

fn daemon_that_stops(arguments: &[&str]) {
    let cache = Cache::open(arguments[0]).unwrap();
    close_all();
    say("closed");
    listen();
    seams::stop_after(0);
    cache.put("stopped", "inside the lock").unwrap();
    say("went on");
    listen();
    seams::die_after(0);
    let _ = cache.put("dead", "inside the lock");
}

#[test]
fn its_lock_is_not_robbed_while_it_is_stopped_and_is_taken_over_when_it_dies() {
    let _turn = common::turn();
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let cache = Options::new().size(1 << 20).lock_deadline(Duration::from_millis(30)).open(&path).unwrap();
    let mut daemon = Child::start("daemon that stops", &[path.to_str().unwrap()]);
    daemon.expect("closed");
    daemon.tell("stop");
    daemon.wait_until_stopped();
    let error = put_in_all_stripes(&cache).unwrap_err();
    assert!(matches!(error, Error::Busy { .. }), "{error}");
    daemon.signal(libc::SIGCONT);
    daemon.expect("went on");
    put_in_all_stripes(&cache).unwrap();
    assert_eq!(&*cache.get("stopped").unwrap().unwrap(), b"inside the lock");
    daemon.tell("die");
    daemon.wait_until_killed();
    put_in_all_stripes(&cache).unwrap();
    assert!(cache.get("dead").unwrap().is_none());
    assert_eq!(cache.stats().unwrap().repairs, 1);
}

fn put_in_all_stripes(cache: &Cache) -> eyewall::Result<()> {
    (0..64_u32).try_for_each(|number| cache.put(number.to_le_bytes(), "value").map(drop))
}
