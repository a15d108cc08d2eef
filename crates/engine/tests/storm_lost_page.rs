//! One of several processes loses a page of the volume, as when its memory or a read from the disk fails; the others
//! still have the page. The process fails, and leaves whatever it was doing. The others keep what they hold, and
//! continue to write while it is still there.

#![cfg(test)]

mod anatomy;
mod common;

use std::os::fd::AsRawFd;
use std::path::Path;

use anatomy::{Anatomy, SMALL_HEAD};
use common::{Child, Random, fast_folder, listen, play, say, soak, value, version_of};
use eyewall::{Cache, Error, Hit, Options};

const SIZE: u64 = 1 << 20;
const LOCKS: &str = "the stripe's words";

#[test]
fn child() {
    play(&[("loses a page", loses_a_page)]);
}

fn key(number: u64) -> Vec<u8> {
    format!("key {number}").into_bytes()
}

fn work(cache: &Cache, random: &mut Random) -> Result<(), Error> {
    let key = key(random.below(600));
    match random.below(8) {
        0 => cache.remove(&key).map(drop),
        1 | 2 => {
            let Some(hit) = cache.get(&key)? else { return Ok(()) };
            let value = hit.to_vec();
            if hit.is_intact() {
                version_of(&key, &value);
            }
            Ok(())
        }
        // Above eight kilobytes, entries are filled outside of the lock.
        3 => cache.put(&key, value(&key, 1, 20_000)).map(drop),
        _ => cache.put(&key, value(&key, 1, 1500)).map(drop),
    }
}

/// Takes a page of the volume from this process, by mapping an empty file there.
fn lose(path: &str, offset: u64) {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    // The file's other map is the page that keeps the lock, for reading only.
    let line = maps.lines().find(|line| line.ends_with(path) && line.contains("rw-s")).unwrap();
    let start = usize::from_str_radix(line.split('-').next().unwrap(), 16).unwrap();
    let empty = tempfile::tempfile().unwrap();
    let page = (start + offset as usize - offset as usize % 4096) as *mut libc::c_void;
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_FIXED);
    // SAFETY: this replaces a page of the volume's map, whose users are ready for its loss.
    let mapped = unsafe { libc::mmap(page, 4096, protection, flags, empty.as_raw_fd(), 0) };
    assert_eq!(mapped, page);
}

fn loses_a_page(arguments: &[&str]) {
    let [path, offset, seed] = [0, 1, 2].map(|number| arguments[number]);
    let cache = Options::new().survive_sigbus(true).open(path).unwrap();
    let mut random = Random(seed.parse().unwrap());
    for _ in 0..200 {
        work(&cache, &mut random).unwrap();
    }
    let offset = offset.parse().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let (cache, mut random) = (&cache, Random(random.next() + thread));
            scope.spawn(move || {
                // A page that is rarely used is met only by chance.
                for _ in 0..3000 {
                    match work(cache, &mut random) {
                        Ok(()) => {}
                        Err(Error::Failed { .. }) => return,
                        Err(error) => panic!("{error}"),
                    }
                }
                let _ = cache.stats();
            });
        }
        scope.spawn(|| lose(path, offset));
    });
    say(if cache.is_failed() { "failed" } else { "intact" });
    listen();
}

fn run(page: &str, path: &Path, offset: u64, seed: u64) -> bool {
    // Every other round erases dead entries, which must spare what others hold, too.
    let cache = Options::new().size(SIZE).secure_erase(seed / 100 % 2 == 1).open(path).unwrap();
    for number in 0..300 {
        cache.put(key(number), value(&key(number), 0, 1500)).unwrap();
    }
    let held: Vec<Hit<'_>> = (290..300).filter_map(|number| cache.get(key(number)).unwrap()).collect();
    assert!(held.len() > 5);
    let mut child = Child::start("loses a page", &[path.to_str().unwrap(), &offset.to_string(), &seed.to_string()]);
    let mut random = Random(seed);
    let mut go_on = |times| {
        for _ in 0..times {
            match work(&cache, &mut random) {
                // A lock that its holder has lost is free again when the holder has left the volume.
                Err(Error::Busy { .. }) if page == LOCKS => break,
                other => other.unwrap_or_else(|error| panic!("{page}, seed {seed}: {error}")),
            }
        }
    };
    go_on(500);
    let failed = child.hear() == "failed";
    // The process is still alive, and has the volume open.
    go_on(3000);
    for hit in &held {
        assert_eq!(version_of(hit.key(), hit), 0, "{page}: what is held was overwritten");
    }
    for hit in &cache {
        version_of(hit.key(), &hit);
    }
    if page != LOCKS {
        assert_eq!(cache.verify().unwrap().problems, Vec::<String>::new(), "{page}, seed {seed}");
    }
    child.tell("end");
    child.finish();
    for _ in 0..100 {
        work(&cache, &mut random).unwrap();
    }
    assert_eq!(cache.verify().unwrap().problems, Vec::<String>::new(), "{page}, seed {seed}");
    failed
}

#[test]
fn the_other_processes_continue_whatever_one_of_them_has_lost() {
    let folder = fast_folder();
    let path = folder.path().join("volume");
    drop(Options::new().size(SIZE).open(&path).unwrap());
    let anatomy = Anatomy::of(&std::fs::read(&path).unwrap());
    std::fs::remove_file(&path).unwrap();
    let pages = [
        ("the superblock", 0),
        ("processes", anatomy.processes_at),
        ("threads", anatomy.threads_at),
        (LOCKS, anatomy.stripe_word(0, SMALL_HEAD)),
        ("the index", anatomy.data_byte(1) - 4096),
        ("the small ring", anatomy.small_byte(0, 8192)),
        ("the main ring", anatomy.main_byte(0, 40_000)),
    ];
    let mut failures = 0;
    for round in 0..soak(2, 60) {
        for (number, (page, offset)) in pages.into_iter().enumerate() {
            let path = folder.path().join(format!("volume {round} {number}"));
            failures += u32::from(run(page, &path, offset, round * 100 + number as u64));
            std::fs::remove_file(&path).unwrap();
        }
    }
    assert!(failures > 0);
}
