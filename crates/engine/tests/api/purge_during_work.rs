//! An entry whose work began before a purge, and that is stored after it. A caller that says when the work began
//! loses to the purge, in every way of storing it.

use std::io::Write as _;
use std::time::Duration;

use eyewall::{Cache, Change, Committed, Epoch, Fill, FillOptions, Lookup, Options, Purge, PutOptions, Touch, Updated};

use crate::common::fast_folder;

type Store = fn(&Cache, &PutOptions<'_>);

/// The ways of storing the entry of `/a`.
const STORES: [(&str, Store); 6] = [
    ("put", |cache, options| assert!(cache.put_with("/a", "new", options).is_ok())),
    ("add", |cache, options| assert!(cache.add("/a", "new", options).is_ok())),
    ("large", |cache, options| assert!(cache.put_with("/a", vec![7; 20_000], options).is_ok())),
    ("writer", |cache, options| {
        let mut writer = cache.writer("/a", options, None).unwrap();
        writer.write_all(b"new").unwrap();
        writer.commit().unwrap();
    }),
    ("update", |cache, options| {
        assert!(cache.update("/a", options, |_| Change::Put(b"new".to_vec())).is_ok());
    }),
    ("fill", |cache, options| {
        let options = FillOptions::new().put(*options);
        let fill = || Ok::<_, std::fmt::Error>(Fill::Value(b"new".to_vec()));
        assert!(cache.get_or_fill("/a", Duration::from_secs(5), &options, fill).is_ok());
    }),
];

type PurgeBy = fn(&Cache, Purge);

/// Purges that cover it, and two that don't.
const PURGES: [(&str, PurgeBy, bool); 5] = [
    ("tag", |cache, kind| cache.purge_tag("page", kind).unwrap(), true),
    ("prefix", |cache, kind| cache.purge_prefix("/", kind).unwrap(), true),
    ("all", |cache, kind| cache.purge_all(kind).unwrap(), true),
    ("another tag", |cache, kind| cache.purge_tag("other", kind).unwrap(), false),
    ("another prefix", |cache, kind| cache.purge_prefix("/b", kind).unwrap(), false),
];

fn cache() -> Cache {
    Options::new().size(4 << 20).heap().unwrap()
}

fn options(begun: Epoch) -> PutOptions<'static> {
    PutOptions::new().tags(&["page"]).begun_in(begun)
}

fn state(cache: &Cache, key: &str) -> &'static str {
    match cache.lookup(key).unwrap() {
        Lookup::Fresh(_) => "fresh",
        Lookup::Stale(_) => "stale",
        Lookup::Negative(_) => "negative",
        Lookup::Miss => "gone",
    }
}

fn after(kind: Purge, is_meant: bool) -> &'static str {
    match kind {
        _ if !is_meant => "fresh",
        Purge::Hard => "gone",
        Purge::Soft => "stale",
    }
}

#[test]
fn every_purge_since_counts_for_every_way_of_storing() {
    for (way, store) in STORES {
        for (what, purge, is_meant) in PURGES {
            for kind in [Purge::Hard, Purge::Soft] {
                let cache = cache();
                let begun = cache.epoch().unwrap();
                purge(&cache, kind);
                store(&cache, &options(begun));
                assert_eq!(state(&cache, "/a"), after(kind, is_meant), "{way}, {what}, {kind:?}");
                store(&cache, &options(cache.epoch().unwrap()));
                assert_eq!(state(&cache, "/a"), "fresh", "{way}, {what}, {kind:?}: begun after it");
            }
        }
    }
}

#[test]
fn failures_and_touches_can_be_dated_too() {
    for (what, purge, is_meant) in PURGES {
        for kind in [Purge::Hard, Purge::Soft] {
            let cache = cache();
            cache.put_with("/a", "old", &options(cache.epoch().unwrap()).ttl(Duration::from_mins(1))).unwrap();
            let begun = cache.epoch().unwrap();
            cache.purge_tag("unheard of", Purge::Hard).unwrap();
            purge(&cache, kind);
            cache.put_negative("/none", 404, &options(begun)).unwrap();
            // A stale negative entry is of no use.
            let expected = if is_meant { "gone" } else { "negative" };
            assert_eq!(state(&cache, "/none"), expected, "{what}, {kind:?}");
            let in_place = Touch::new().ttl(Some(Duration::from_mins(9)), Duration::ZERO).begun_in(begun);
            for touch in [in_place, in_place.metadata(b"new")] {
                let is_there = !is_meant || kind == Purge::Soft;
                assert_eq!(cache.touch("/a", &touch).unwrap(), is_there, "{what}, {kind:?}");
                // Without a stale time, a stale entry ends.
                let expected = if is_meant { "gone" } else { "fresh" };
                assert_eq!(state(&cache, "/a").replace("stale", "gone"), expected, "{what}, {kind:?}");
            }
        }
    }
}

#[test]
fn a_touch_revives_an_entry_made_stale_before_the_touch_began() {
    let cache = cache();
    cache.put_with("/a", "old", &options(cache.epoch().unwrap())).unwrap();
    let before = cache.epoch().unwrap();
    cache.purge_all(Purge::Soft).unwrap();
    let behind = cache.epoch().unwrap();
    assert_ne!(before, behind);
    let touch = Touch::new().ttl(None, Duration::ZERO);
    cache.touch("/a", &touch.begun_in(before)).unwrap();
    assert_eq!(state(&cache, "/a"), "stale");
    cache.touch("/a", &touch.begun_in(behind)).unwrap();
    assert_eq!(state(&cache, "/a"), "fresh");
}

#[test]
fn a_put_that_loses_to_a_purge_leaves_later_entries_alone() {
    for (way, store) in STORES {
        let cache = cache();
        let begun = cache.epoch().unwrap();
        cache.purge_all(Purge::Hard).unwrap();
        cache.put("/a", "of behind").unwrap();
        store(&cache, &options(begun));
        let hit = cache.get("/a").unwrap();
        assert_eq!(hit.as_deref(), Some(&b"of behind"[..]), "{way}");
    }
}

#[test]
fn a_forgotten_purge_still_counts() {
    for (way, store) in STORES {
        for (what, purge, _) in PURGES {
            let cache = cache();
            let begun = cache.epoch().unwrap();
            purge(&cache, Purge::Hard);
            // Nobody can tell any more what was covered.
            cache.sweep().unwrap();
            store(&cache, &options(begun));
            assert_eq!(state(&cache, "/a"), "gone", "{way}, {what}");
        }
    }
}

#[test]
fn a_writer_is_told_that_it_was_superseded() {
    let cache = cache();
    let begun = cache.epoch().unwrap();
    cache.purge_tag("page", Purge::Hard).unwrap();
    let writer = cache.writer("/a", &options(begun), Some(0)).unwrap();
    assert_eq!(writer.commit().unwrap(), Committed::Superseded);
    let updated = cache.update("/a", &options(begun), |_| Change::Put(Vec::new())).unwrap();
    assert_eq!(updated, Updated::Superseded);
}

#[test]
fn an_epoch_is_of_its_cache_alone() {
    let (cache, other) = (cache(), cache());
    cache.put_with("/a", "new", &options(cache.clone().epoch().unwrap())).unwrap();
    assert_eq!(state(&cache, "/a"), "fresh");
    other.put_with("/a", "new", &options(cache.epoch().unwrap())).unwrap();
    assert_eq!(state(&other, "/a"), "gone", "nobody knows what was purged there since");
}

#[test]
fn an_epoch_survives_a_resize() {
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let cache = Options::new().size(1 << 20).open(&path).unwrap();
    let early = cache.epoch().unwrap();
    cache.purge_tag("other", Purge::Hard).unwrap();
    let begun = cache.epoch().unwrap();
    Cache::open(&path).unwrap().resize(&Options::new().size(2 << 20)).unwrap();
    cache.put_with("/a", "new", &options(begun)).unwrap();
    assert_eq!((cache.size(), state(&cache, "/a")), (2 << 20, "fresh"));
    cache.put_with("/b", "new", &options(early)).unwrap();
    assert_eq!(state(&cache, "/b"), "gone", "the notes of purges aren't copied");
    cache.purge_tag("page", Purge::Hard).unwrap();
    cache.put_with("/b", "new", &options(begun)).unwrap();
    assert_eq!(state(&cache, "/b"), "gone");
}

#[test]
fn a_purge_by_another_process_s_handle_counts() {
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let cache = Options::new().size(1 << 20).open(&path).unwrap();
    let begun = cache.epoch().unwrap();
    Cache::open(&path).unwrap().purge_tag("page", Purge::Hard).unwrap();
    cache.put_with("/a", "new", &options(begun)).unwrap();
    assert_eq!(state(&cache, "/a"), "gone");
}

#[test]
fn one_version_of_an_entry_can_be_removed() {
    let cache = cache();
    let old = cache.put("/a", "old").unwrap();
    let new = cache.put_with("/a", "new", &options(cache.epoch().unwrap())).unwrap();
    assert!(!cache.remove_if("/a", old).unwrap());
    assert_eq!(state(&cache, "/a"), "fresh");
    cache.purge_all(Purge::Soft).unwrap();
    assert!(cache.remove_if("/a", new).unwrap(), "even if stale");
    assert!(!cache.remove_if("/a", new).unwrap());
    assert_eq!(state(&cache, "/a"), "gone");
}
