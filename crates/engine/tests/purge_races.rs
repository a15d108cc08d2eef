//! Purges that are stopped or killed halfway, together with sweeps, touches, updates and resizes.

#![cfg(test)]

mod common;

use std::path::Path;
use std::time::Duration;

use common::{Child, fast_folder, fork, listen, play, say};
use eyewall::{Cache, Change, Counter, Error, Lookup, Options, Purge, PutOptions, Touch, Updated, seams};

const SIZE: u64 = 512 << 10;

#[test]
fn child() {
    play(&[("purges", purges), ("resizes", resizes)]);
}

fn purge(cache: &Cache, what: &str) {
    match what {
        "tag" => cache.purge_tag("t", Purge::Hard).unwrap(),
        "prefix" => cache.purge_prefix("a", Purge::Hard).unwrap(),
        _ => cache.purge_all(Purge::Hard).unwrap(),
    }
}

fn purges(arguments: &[&str]) {
    let cache = Cache::open(arguments[0]).unwrap();
    say("ready");
    listen();
    seams::stop_after(arguments[2].parse().unwrap());
    purge(&cache, arguments[1]);
    say("done");
}

fn open(path: &Path) -> Cache {
    Options::new().size(SIZE).lock_deadline(Duration::from_millis(12)).open(path).unwrap()
}

/// Runs `meanwhile` while a purge is stopped, at each of its stores in turn.
fn beside_a_stopped_purge(meanwhile: impl Fn(&Cache), check: impl Fn(&Cache, &str)) {
    for (what, stores) in [("tag", 2), ("prefix", 3), ("all", 2)] {
        for stores in 0..stores {
            let folder = fast_folder();
            let path = folder.path().join("volume");
            let cache = open(&path);
            let options = PutOptions::new().tags(&["t"]);
            cache.put_with("a", "value", &options).unwrap();
            cache.increment("a counter", 1, &Counter::new().options(options)).unwrap();
            // So that the entries aren't of the present epoch.
            cache.purge_tag("another", Purge::Hard).unwrap();
            let mut purger = Child::start("purges", &[path.to_str().unwrap(), what, &stores.to_string()]);
            purger.expect("ready");
            purger.tell("go");
            purger.wait_until_stopped();
            meanwhile(&cache);
            purger.signal(libc::SIGCONT);
            purger.expect("done");
            check(&cache, &format!("{what}, stopped before its store {stores}"));
        }
    }
}

#[test]
fn a_purge_that_is_stopped_is_not_forgotten_by_a_sweep() {
    beside_a_stopped_purge(
        |cache| {
            cache.sweep().unwrap();
        },
        |cache, when| {
            assert!(!cache.contains("a").unwrap(), "{when}");
            cache.sweep().unwrap();
            assert!(!cache.contains("a").unwrap(), "{when}, swept");
        },
    );
}

#[test]
fn an_entry_touched_or_counted_during_a_purge_is_purged() {
    beside_a_stopped_purge(
        |cache| {
            cache.touch("a", &Touch::new().ttl(None, Duration::ZERO)).unwrap();
            cache.touch("a", &Touch::new().metadata(b"new")).unwrap();
            if cache.contains("a counter").unwrap() {
                cache.increment("a counter", 1, &Counter::new()).unwrap();
            }
        },
        |cache, when| {
            assert!(!cache.contains("a").unwrap(), "{when}");
            assert!(!cache.contains("a counter").unwrap(), "{when}");
        },
    );
}

#[test]
fn a_renewed_purge_holds_all_the_time() {
    for stores in 0..8 {
        let folder = fast_folder();
        let path = folder.path().join("volume");
        let cache = open(&path);
        cache.put("a", "value").unwrap();
        cache.purge_prefix("a", Purge::Hard).unwrap();
        let renewal = fork(|| {
            seams::die_after(stores);
            let _ = cache.purge_prefix("a", Purge::Hard);
            seams::die_after(i64::MAX);
        });
        renewal.wait();
        assert!(!cache.contains("a").unwrap(), "store {stores}");
    }
}

#[test]
fn a_death_in_a_purge_blocks_nobody() {
    for (what, stores) in ["tag", "prefix", "all"].into_iter().flat_map(|what| (0..4).map(move |stores| (what, stores)))
    {
        let folder = fast_folder();
        let path = folder.path().join("volume");
        let cache = open(&path);
        cache.put("b", "value").unwrap();
        fork(|| {
            seams::die_after(stores);
            purge(&cache, what);
            seams::die_after(i64::MAX);
        })
        .wait();
        cache.put_with("a", "value", &PutOptions::new().tags(&["u"])).unwrap();
        cache.purge_tag("u", Purge::Hard).unwrap();
        assert_eq!((cache.contains("a").unwrap(), what == "all" || cache.contains("b").unwrap()), (false, true));
        cache.put("c", "value").unwrap();
        drop(cache);
        assert!(open(&path).contains("c").unwrap(), "{what} {stores}: nothing is damaged");
    }
}

fn resizes(arguments: &[&str]) {
    let cache = Cache::open(arguments[0]).unwrap();
    say("ready");
    listen();
    seams::stop_after(arguments[1].parse().unwrap());
    cache.resize(&Options::new().size(2 * SIZE)).unwrap();
    say("done");
}

#[test]
fn a_purge_during_a_resize_takes_effect_and_covers_nothing_else() {
    for stores in [20, 400, 800] {
        let folder = fast_folder();
        let path = folder.path().join("volume");
        let cache = Options::new().size(SIZE).lock_deadline(Duration::from_mins(1)).open(&path).unwrap();
        for number in 0..100 {
            let tag = if number % 2 == 0 { "t" } else { "u" };
            cache.put_with(format!("{number}"), "value", &PutOptions::new().tags(&[tag])).unwrap();
        }
        let mut resizer = Child::start("resizes", &[path.to_str().unwrap(), &stores.to_string()]);
        resizer.expect("ready");
        resizer.tell("go");
        resizer.wait_until_stopped();
        std::thread::scope(|scope| {
            let purged = scope.spawn(|| cache.purge_tag("t", Purge::Hard));
            std::thread::sleep(Duration::from_millis(50));
            resizer.signal(libc::SIGCONT);
            purged.join().unwrap().unwrap();
        });
        resizer.expect("done");
        assert_eq!(cache.size(), 2 * SIZE);
        for number in 0..100 {
            assert_eq!(cache.contains(format!("{number}")).unwrap(), number % 2 == 1, "{number}, store {stores}");
        }
    }
}

#[test]
fn a_purge_waits_for_a_stopped_one_up_to_its_deadline() {
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let cache = open(&path);
    let mut purger = Child::start("purges", &[path.to_str().unwrap(), "tag", "1"]);
    purger.expect("ready");
    purger.tell("go");
    purger.wait_until_stopped();
    let error = cache.purge_tag("u", Purge::Hard).unwrap_err();
    assert!(matches!(error, Error::Busy { .. }), "{error:?}");
    cache.put("b", "value").unwrap();
    purger.signal(libc::SIGCONT);
    purger.expect("done");
    cache.purge_tag("u", Purge::Hard).unwrap();
}

#[test]
fn a_slow_reader_finds_nothing_that_was_purged_before() {
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let cache = open(&path);
    let reader = Options::new().read_only(true).open(&path).unwrap();
    let put = || {
        cache.put_with("a", "value", &PutOptions::new().tags(&["t"])).unwrap();
        cache.purge_tag("t", Purge::Hard).unwrap();
        // While the reader holds the entry and hasn't judged it yet, the purge is forgotten.
        let other = cache.clone();
        seams::pause_before_judging(move || drop(other.sweep()));
    };
    put();
    assert!(cache.get("a").unwrap().is_none());
    put();
    assert!(reader.get("a").unwrap().is_none());
    put();
    assert!(cache.iter().next().is_none());
    put();
    assert!(reader.iter().next().is_none());
}

#[test]
fn a_removing_update_spares_a_later_entry_of_the_new_volume() {
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let cache = open(&path);
    cache.put("a", "old").unwrap();
    let updated = cache.update("a", &PutOptions::new(), |_| {
        cache.resize(&Options::new().size(2 * SIZE)).unwrap();
        cache.put("a", "by somebody else").unwrap();
        Change::Remove
    });
    assert_eq!(updated.unwrap(), Updated::Superseded);
    assert_eq!(&*cache.get("a").unwrap().unwrap(), b"by somebody else");
    let removed = cache.update("a", &PutOptions::new(), |_| {
        cache.resize(&Options::new().size(SIZE)).unwrap();
        Change::Remove
    });
    assert_eq!(removed.unwrap(), Updated::Removed);
    assert!(!cache.contains("a").unwrap());
}

#[test]
fn serials_grow_across_a_resize() {
    let folder = fast_folder();
    let cache = open(&folder.path().join("volume"));
    let mut last = 0;
    for _ in 0..50 {
        last = cache.put("a", "value").unwrap();
    }
    cache.remove("a").unwrap();
    cache.resize(&Options::new().size(2 * SIZE)).unwrap();
    assert!(cache.put("a", "another").unwrap() > last);
    assert!(cache.replace_if("a", last, "what its reader made of the former", &PutOptions::new()).unwrap().is_none());
}

#[test]
fn an_entry_begun_before_a_forgotten_soft_purge_stays_stale() {
    let cache = Options::new().size(SIZE).heap().unwrap();
    let options = PutOptions::new().tags(&["t"]);
    let updated = cache.update("a", &options, |_| {
        cache.purge_tag("t", Purge::Soft).unwrap();
        // Each put sweeps a little, and all of them the whole volume.
        for number in 0..2000_u32 {
            cache.put(number.to_le_bytes(), "value").unwrap();
        }
        Change::Put(b"value".to_vec())
    });
    assert!(matches!(updated.unwrap(), Updated::Stored(_)));
    assert!(matches!(cache.lookup("a").unwrap(), Lookup::Stale(_)));
    cache.sync().unwrap();
    assert!(matches!(cache.lookup("a").unwrap(), Lookup::Stale(_)), "the purge is forgotten but still has effect");
}

#[test]
fn a_sweep_drops_entries_noted_by_a_dead_purger() {
    for (what, stores) in [("tag", 2), ("prefix", 3), ("all", 2)] {
        for stores in 0..stores {
            let folder = fast_folder();
            let cache = open(&folder.path().join("volume"));
            // Not retired; otherwise the sweep would have no reason to take the purge lock at its end.
            cache.purge_tag("another", Purge::Hard).unwrap();
            cache.put_with("a", "value", &PutOptions::new().tags(&["t"])).unwrap();
            cache.put("b", "value").unwrap();
            let purger = fork(|| {
                seams::die_after(stores);
                purge(&cache, what);
                seams::die_after(i64::MAX);
            });
            purger.wait();
            cache.sweep().unwrap();
            let found = cache.iter_all().count() as u64;
            assert_eq!(cache.stats().unwrap().entries, found, "{what}, died before its store {stores}");
        }
    }
}
