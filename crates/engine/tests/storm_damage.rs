//! A log is damaged while a process holds some of its entries. It can't be emptied while that process lives, but the
//! pins of dead processes don't prevent it.

#![cfg(test)]

mod common;

use std::fs::File;
use std::os::unix::fs::FileExt;

use common::{Child, fast_folder, listen, play, say, value, version_of};
use eyewall::{Cache, Error, Options};

#[test]
fn child() {
    play(&[("holds", holds)]);
}

fn holds(arguments: &[&str]) {
    let cache = Cache::open(arguments[0]).unwrap();
    // Some in each ring.
    let _held: Vec<_> = cache.iter().take(100).collect();
    assert!(cache.stats().unwrap().pins > 20);
    say("holds");
    listen();
}

/// Each entry is also read, so that main takes what leaves small.
fn fill(cache: &Cache) -> eyewall::Result<()> {
    for number in 0..3000_u32 {
        let key = number.to_le_bytes();
        cache.put(key, value(&key, 1, 500))?;
        assert_eq!(version_of(&key, &cache.get(key)?.unwrap()), 1);
    }
    Ok(())
}

#[test]
fn a_damaged_log_is_emptied_once_its_holders_have_died() {
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let cache = Options::new().size(512 << 10).open(&path).unwrap();
    fill(&cache).unwrap();
    let data_at = cache.stats().unwrap().overhead_bytes.next_multiple_of(4096);
    let mut holder = Child::start("holds", &[path.to_str().unwrap()]);
    holder.expect("holds");
    let garbage = vec![0xff; (cache.size() - data_at) as usize];
    File::options().write(true).open(&path).unwrap().write_all_at(&garbage, data_at).unwrap();
    let error = fill(&cache).unwrap_err();
    assert!(matches!(error, Error::Pinned { .. }), "{error:?}");
    holder.kill();
    fill(&cache).unwrap();
    let stats = cache.stats().unwrap();
    assert_eq!((stats.resets, stats.pins), (2, 0), "{stats:?}");
    assert_eq!(cache.verify().unwrap().problems, Vec::<String>::new());
}
