//! When the storm is over: what it may have left behind, and what not.

use eyewall::{Cache, Check, Options, seams};
use tempfile::TempDir;

use super::keys::{Found, Ledger};
use super::weather::Storm;
use super::worker::check_any;
use crate::common::aftermath::{assert_a_lap_fills_it, assert_balanced};

/// Part of the name of each key of the storm.
const TRACES: [&[u8]; 3] = [b"/own ", b"/fill ", b"/shared "];

/// All that has a time to live is over in this process from now on.
pub fn let_time_pass() {
    seams::shift_clock(60_000);
}

/// Checks the volume of a storm that is over, and whose workers are gone.
pub fn survey(storm: Storm) {
    let path = storm.path();
    let Storm { site, folder, tier, ground, cache, .. } = storm;
    let ledger = Ledger::new(&ground, site);
    assert_sound(&cache, &ledger);
    // What died in a resize has left its file, until the next one.
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
    assert_a_lap_fills_it(&cache);
    if site.erases {
        let bytes = std::fs::read(&path).unwrap();
        for trace in TRACES {
            let found = bytes.windows(trace.len()).filter(|window| *window == trace).count();
            assert_eq!(found, 0, "of what was cleared, and written over for a lap");
        }
    }
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
