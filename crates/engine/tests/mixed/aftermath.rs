//! After the storm: what it may leave behind, and what it may not.

use std::path::Path;

use eyewall::{Cache, Change, Check, ExtentKind, Options, PutOptions, RingKind, Updated, seams};
use tempfile::TempDir;

use super::keys::{Found, Ledger};
use super::weather::Storm;
use super::worker::check_any;
use crate::anatomy::Anatomy;
use crate::common::aftermath::{assert_a_lap_fills_it, assert_balanced};

/// A part of the name of each key of the storm.
const TRACES: [&[u8]; 3] = [b"/own ", b"/fill ", b"/shared "];

/// Moves this process's clock so that everything with a time to live has expired.
pub fn let_time_pass() {
    seams::shift_clock(60_000);
}

/// Checks the volume of a storm that is over and whose workers are gone.
pub fn survey(storm: Storm) {
    let path = storm.path();
    let Storm { site, folder, tier, ground, cache, .. } = storm;
    let ledger = Ledger::new(&ground, site);
    if site.erases {
        assert_free_is_erased(&cache, &path);
    }
    assert_sound(&cache, &ledger);
    assert_nothing_is_claimed(&cache, &ledger);
    // A resize that died has left its file, which the next resize removes.
    cache.resize(&Options::new().size(site.sizes[0])).unwrap();
    assert_eq!(names(&folder), ["volume"]);
    assert_sound(&cache, &ledger);
    if let Some(file) = cache.tier_path() {
        let inside = Options::new().open(file).unwrap();
        assert_eq!(inside.verify_with(&Check::new().deep(true)).unwrap().problems, Vec::<String>::new());
        assert_eq!(cache.stats().unwrap().tier.unwrap().pins, 0);
    }
    drop(cache);
    assert_eq!(names(&tier), Vec::<String>::new());
    let cache = Cache::open(&path).unwrap();
    assert_sound(&cache, &ledger);
    cache.clear().unwrap();
    if site.erases {
        assert_eq!(traces(&std::fs::read(&path).unwrap()), 0, "of cleared entries that nobody held");
    }
    assert_a_lap_fills_it(&cache);
}

/// Nobody waits for a claim, since its holders are dead or done. The claims are asked for in the volume that all
/// worked in last.
fn assert_nothing_is_claimed(cache: &Cache, ledger: &Ledger<'_>) {
    for number in 0..ledger.versioned() {
        let name = ledger.any_key(number).name;
        assert_eq!(cache.update(&name, &PutOptions::new(), |_| Change::Keep).unwrap(), Updated::Kept);
    }
}

/// In an erasing volume, nothing is left where the tail has passed, even if a process held it or died writing it.
fn assert_free_is_erased(cache: &Cache, path: &Path) {
    let bytes = std::fs::read(path).unwrap();
    let anatomy = Anatomy::of(&bytes);
    let mut free = 0;
    cache
        .extents(|extents| {
            for run in extents.iter().filter(|extent| extent.kind == ExtentKind::Free) {
                let at = match run.ring {
                    RingKind::Small => anatomy.small_byte(run.stripe, run.start),
                    RingKind::Main => anatomy.main_byte(run.stripe, run.start),
                } as usize;
                free += run.bytes;
                assert_eq!(traces(&bytes[at..at + run.bytes as usize]), 0, "in {run:?}");
            }
        })
        .unwrap();
    println!("  nothing was left in {free} free bytes");
}

/// How often these bytes contain the name of a key of the storm.
fn traces(bytes: &[u8]) -> usize {
    let count = |trace: &[u8]| bytes.windows(trace.len()).filter(|window| *window == trace).count();
    TRACES.into_iter().map(count).sum()
}

fn names(folder: &TempDir) -> Vec<String> {
    let entries = std::fs::read_dir(folder.path()).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn assert_sound(cache: &Cache, ledger: &Ledger<'_>) {
    cache.sweep().unwrap();
    let report = cache.verify_with(&Check::new().deep(true)).unwrap();
    assert_eq!(report.problems, Vec::<String>::new());
    assert_balanced(cache, |cache| {
        let mut entries = 0;
        for hit in cache.iter_all() {
            check_any(ledger, &hit);
            entries += 1;
        }
        entries
    });
    for number in 0..ledger.versioned() {
        let key = ledger.any_key(number);
        let known = ledger.known(&key);
        if let Some(hit) = cache.get(&key.name).unwrap() {
            ledger.check_hit(&key, &known, &hit, Found::Fresh);
        }
    }
}
