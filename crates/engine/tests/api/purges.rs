//! Purges by tag, by prefix, and of everything, hard and soft, while entries are being made, and with full tables.

use std::time::Duration;

use eyewall::{Cache, Change, Error, Lookup, Options, Purge, PutOptions, Touch, Updated};

use crate::common::fast_folder;

fn cache() -> Cache {
    Options::new().size(4 << 20).heap().unwrap()
}

fn put(cache: &Cache, key: &str, tags: &[&str]) {
    cache.put_with(key, "value", &PutOptions::new().tags(tags)).unwrap();
}

/// `f`resh, `s`tale or `-` for each key.
fn states(cache: &Cache, keys: &[&str]) -> String {
    let state = |key: &&str| match cache.lookup(key).unwrap() {
        Lookup::Fresh(_) => 'f',
        Lookup::Stale(_) => 's',
        Lookup::Negative(_) => 'n',
        Lookup::Miss => '-',
    };
    keys.iter().map(state).collect()
}

#[test]
fn a_tag_purges_all_that_carry_it_and_nothing_else() {
    let cache = cache();
    put(&cache, "a", &["one"]);
    put(&cache, "b", &["one", "two"]);
    put(&cache, "c", &["two"]);
    put(&cache, "d", &[]);
    cache.purge_tag("one", Purge::Hard).unwrap();
    assert_eq!(states(&cache, &["a", "b", "c", "d"]), "--ff");
    put(&cache, "a", &["one"]);
    assert_eq!(states(&cache, &["a"]), "f", "later entries aren't purged");
    cache.purge_tag("two", Purge::Soft).unwrap();
    assert_eq!(states(&cache, &["a", "b", "c", "d"]), "f-sf");
    cache.purge_tag("two", Purge::Hard).unwrap();
    assert_eq!(states(&cache, &["c"]), "-");
    cache.purge_tag("two", Purge::Soft).unwrap();
    assert_eq!(states(&cache, &["c"]), "-", "a later soft purge revives nothing");
    let stats = cache.stats().unwrap();
    assert_eq!((stats.purges, stats.purge_overflows), (4, 0));
}

#[test]
fn a_prefix_purges_the_keys_that_begin_with_it() {
    let cache = cache();
    let keys = ["/shop/1", "/shop/2", "/shop", "/blog/1"];
    for key in keys {
        put(&cache, key, &[]);
    }
    cache.purge_prefix("/shop/", Purge::Hard).unwrap();
    assert_eq!(states(&cache, &keys), "--ff");
    cache.purge_prefix("/", Purge::Soft).unwrap();
    assert_eq!(states(&cache, &keys), "--ss");
    put(&cache, "/shop/1", &[]);
    assert_eq!(states(&cache, &keys), "f-ss");
    cache.purge_prefix("", Purge::Hard).unwrap();
    assert_eq!(states(&cache, &keys), "----");
}

#[test]
fn everything_can_be_purged_at_once() {
    let cache = cache();
    put(&cache, "a", &["one"]);
    cache.put_negative("b", 404, &PutOptions::new()).unwrap();
    cache.purge_all(Purge::Soft).unwrap();
    assert_eq!(states(&cache, &["a", "b"]), "s-");
    cache.purge_all(Purge::Hard).unwrap();
    assert_eq!(states(&cache, &["a", "b"]), "--");
    assert_eq!(cache.iter_all().count(), 0);
}

#[test]
fn a_touch_revives_a_soft_purged_entry_which_ends_with_its_times() {
    let cache = cache();
    cache.put_with("a", "value", &PutOptions::new().ttl(Duration::from_mins(5)).tags(&["one"])).unwrap();
    cache.purge_tag("one", Purge::Soft).unwrap();
    let Lookup::Stale(hit) = cache.lookup("a").unwrap() else { panic!("stale") };
    assert_eq!(hit.ttl_left(), Some(Duration::ZERO));
    assert!(hit.usable_left().is_some_and(|left| left > Duration::from_mins(4)));
    drop(hit);
    assert!(cache.touch("a", &Touch::new()).unwrap());
    assert_eq!(states(&cache, &["a"]), "f");
}

#[test]
fn a_purge_beats_an_update_that_began_before_it() {
    let cache = cache();
    for (purge, purged) in [("one", true), ("two", false)] {
        let options = PutOptions::new().tags(&["one"]);
        cache.put_with("a", "old", &options).unwrap();
        let updated = cache.update("a", &options, |_| {
            cache.purge_tag(purge, Purge::Hard).unwrap();
            Change::Put(b"new".to_vec())
        });
        assert_eq!(updated.unwrap() == Updated::Superseded, purged, "{purge}");
        assert_eq!(cache.contains("a").unwrap(), !purged);
    }
    let updated = cache.update("a/b", &PutOptions::new(), |_| {
        cache.purge_prefix("a/", Purge::Hard).unwrap();
        // The rule is forgotten before the update ends, so nobody can tell any more whether it covered the entry.
        cache.sweep().unwrap();
        Change::Put(b"new".to_vec())
    });
    assert_eq!(updated.unwrap(), Updated::Superseded);
    assert!(!cache.contains("a/b").unwrap());
}

#[test]
fn a_full_table_purges_too_much_and_counts_it() {
    let cache = Options::new().size(512 << 10).heap().unwrap();
    put(&cache, "a", &["tag a"]);
    put(&cache, "b", &[]);
    for number in 0..200 {
        cache.purge_tag(&format!("other {number}"), Purge::Hard).unwrap();
    }
    assert!(cache.stats().unwrap().purge_overflows > 0);
    assert_eq!(states(&cache, &["a", "b"]), "-f", "tagged entries may go, others don't");
    // Never too little: what each purge covered is gone, and stays so.
    for number in 0..200 {
        let (key, tag) = (format!("key {number}"), format!("tag {number}"));
        put(&cache, &key, &[&tag]);
        cache.purge_tag(&tag, Purge::Hard).unwrap();
        for earlier in 0..=number {
            assert!(!cache.contains(format!("key {earlier}")).unwrap());
        }
    }
    for number in 0..70 {
        put(&cache, &format!("/{number}/"), &[]);
        cache.purge_prefix(format!("/{number}/"), Purge::Hard).unwrap();
    }
    for number in 0..70 {
        assert!(!cache.contains(format!("/{number}/")).unwrap());
    }
    assert_eq!(states(&cache, &["b"]), "-", "older than the oldest of 64 rules");
}

#[test]
fn a_sweep_frees_purged_entries_and_forgets_the_purges() {
    let folder = fast_folder();
    let cache = Options::new().size(4 << 20).open(folder.path().join("volume")).unwrap();
    for number in 0..1000 {
        put(&cache, &format!("{}/{number}", number % 4), &[["even", "odd"][number % 2]]);
    }
    cache.purge_tag("odd", Purge::Hard).unwrap();
    cache.purge_prefix("0/", Purge::Hard).unwrap();
    cache.purge_prefix("2/", Purge::Soft).unwrap();
    assert_eq!(cache.stats().unwrap().entries, 1000);
    assert_eq!(cache.sweep().unwrap(), 750);
    let stats = cache.stats().unwrap();
    assert_eq!((stats.entries, stats.evictions_purged), (250, 750));
    assert!(matches!(cache.lookup("2/2").unwrap(), Lookup::Stale(_)), "marked, since its rule is forgotten");
    for number in 0..64 {
        cache.purge_prefix(format!("x{number}"), Purge::Hard).unwrap();
    }
    assert_eq!(cache.stats().unwrap().purge_overflows, 0, "all rules were free again");
    assert_eq!(cache.iter_all().count(), 250);
    assert!(cache.verify().unwrap().is_sound());
}

#[test]
fn puts_sweep_as_they_go() {
    let cache = cache();
    for number in 0..500 {
        put(&cache, &format!("{number}"), &["t"]);
    }
    cache.purge_tag("t", Purge::Hard).unwrap();
    for number in 0..4000 {
        put(&cache, &format!("other {}", number % 100), &[]);
    }
    assert_eq!(cache.stats().unwrap().evictions_purged, 500);
}

#[test]
fn all_processes_and_openers_see_a_purge() {
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let cache = Options::new().size(512 << 10).open(&path).unwrap();
    put(&cache, "a", &["one"]);
    put(&cache, "b", &[]);
    let reader = Options::new().read_only(true).open(&path).unwrap();
    assert_eq!(states(&reader, &["a", "b"]), "ff");
    cache.purge_tag("one", Purge::Hard).unwrap();
    cache.purge_prefix("b", Purge::Soft).unwrap();
    assert_eq!(states(&reader, &["a", "b"]), "-s");
    assert!(matches!(reader.purge_tag("one", Purge::Hard), Err(Error::ReadOnly { .. })));
    assert!(matches!(reader.purge_prefix("one", Purge::Hard), Err(Error::ReadOnly { .. })));
    assert!(matches!(reader.sweep(), Err(Error::ReadOnly { .. })));
    drop((cache, reader));
    assert_eq!(states(&Cache::open(&path).unwrap(), &["a", "b"]), "-s", "the purge outlives its process");
}

#[test]
fn tags_and_prefixes_have_limits() {
    let cache = cache();
    let many: Vec<String> = (0..33).map(|number| number.to_string()).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    put(&cache, "a", &many[..32]);
    assert_eq!(cache.get("a").unwrap().unwrap().tags().count(), 32);
    let error = cache.put_with("a", "other", &PutOptions::new().tags(&many)).unwrap_err();
    assert!(error.to_string().contains("the entry has 33 tags, the limit is 32"), "{error}");
    for tag in ["", &"x".repeat(256)] {
        assert!(matches!(cache.purge_tag(tag, Purge::Hard), Err(Error::TagLength { max: 255, .. })));
        assert!(matches!(
            cache.put_with("a", "other", &PutOptions::new().tags(&[tag])),
            Err(Error::TagLength { bytes, .. }) if bytes == tag.len()
        ));
    }
    assert!(matches!(cache.purge_prefix(vec![0; 65_536], Purge::Hard), Err(Error::KeyTooLong { .. })));
    let metadata = vec![1; 65_530];
    let options = PutOptions::new().metadata(&metadata).tags(&["tag"]);
    assert!(matches!(cache.put_with("a", "", &options), Err(Error::MetadataTooLong { bytes: 65_545, .. })));
    assert_eq!(&*cache.get("a").unwrap().unwrap(), b"value", "the old entry stays");
}
