//! The right to change a key and the right to fill one, as values to hold instead of closures to run.

#![cfg(test)]

mod common;

use std::io::Write as _;
use std::time::Duration;

use common::{Child, fast_folder, fork, listen, play, say};
use eyewall::{
    Cache, Committed, Error, FillOptions, Filled, Filling, Flight, Hit, Lookup, NotStored, Options, Purge, PutOptions,
    Updated,
};

fn plain() -> PutOptions<'static> {
    PutOptions::new()
}

#[test]
fn child() {
    play(&[("holder", hold_until_killed)]);
}

fn cache() -> Cache {
    Options::new().size(8 << 20).lock_deadline(Duration::from_millis(50)).heap().unwrap()
}

/// The flight of a key that nobody has filled.
fn flight<'a>(cache: &'a Cache, key: &str) -> Flight<'a> {
    match cache.begin_fill(key, Duration::ZERO, &FillOptions::new()).unwrap() {
        Filling::Ours(flight) => flight,
        Filling::Found(found) => panic!("the key has an entry: {found:?}"),
    }
}

#[test]
fn a_claimed_entry_is_put_removed_or_left() {
    let cache = cache();
    let claimed = cache.claim("key").unwrap();
    assert!(claimed.entry().is_none() && claimed.key() == b"key");
    assert!(matches!(claimed.put("1", &plain().metadata(b"m")).unwrap(), Updated::Stored(_)));

    let claimed = cache.claim("key").unwrap();
    assert_eq!(claimed.entry().map(|entry| (entry.value(), entry.metadata())), Some((&b"1"[..], &b"m"[..])));
    drop(claimed);
    assert_eq!(&*cache.get("key").unwrap().unwrap(), b"1");

    assert_eq!(cache.claim("key").unwrap().remove().unwrap(), Updated::Removed);
    assert!(cache.get("key").unwrap().is_none());
    assert!(matches!(cache.claim(""), Err(Error::KeyEmpty)));
}

#[test]
fn an_entry_taken_from_a_claim_outlives_it() {
    let cache = cache();
    cache.put("key", "before").unwrap();
    let mut claimed = cache.claim("key").unwrap();
    let entry = claimed.take_entry().unwrap();
    assert!(claimed.entry().is_none());
    claimed.put("after", &plain()).unwrap();
    assert_eq!(&*entry, b"before");
    assert_eq!(&*cache.get("key").unwrap().unwrap(), b"after");
}

#[test]
fn a_second_claim_waits_until_its_deadline() {
    let cache = cache();
    let claimed = cache.claim("key").unwrap();
    assert!(matches!(cache.claim("key"), Err(Error::Busy { .. })));
    assert!(matches!(cache.begin_fill("key", Duration::ZERO, &FillOptions::new()), Err(Error::Busy { .. })));
    cache.claim("another").unwrap().put("1", &plain()).unwrap();
    drop(claimed);
    cache.claim("key").unwrap();
}

#[test]
fn a_put_removal_or_purge_meanwhile_supersedes_a_claim() {
    let cache = cache();
    let meanwhile: [&dyn Fn(); 4] = [
        &|| {
            cache.put("key", "meanwhile").unwrap();
        },
        &|| {
            cache.remove("key").unwrap();
        },
        &|| cache.purge_prefix("k", Purge::Hard).unwrap(),
        &|| {
            cache.clear().unwrap();
        },
    ];
    for somebody in meanwhile {
        cache.put("key", "before").unwrap();
        let claimed = cache.claim("key").unwrap();
        somebody();
        let left = cache.get("key").unwrap().map(|hit| hit.to_vec());
        assert_eq!(claimed.put("after", &plain()).unwrap(), Updated::Superseded);
        assert_eq!(cache.get("key").unwrap().map(|hit| hit.to_vec()), left);
    }
}

#[test]
fn a_claim_ends_in_the_volume_that_replaced_its_own() {
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let cache = Options::new().size(1 << 20).open(&path).unwrap();
    let other = Cache::open(&path).unwrap();
    cache.put("key", "1").unwrap();
    let claimed = cache.claim("key").unwrap();
    let absent = cache.claim("absent").unwrap();
    other.resize(&Options::new().size(4 << 20)).unwrap();
    assert!(matches!(claimed.put("2", &plain()).unwrap(), Updated::Stored(_)));
    assert_eq!(&*other.get("key").unwrap().unwrap(), b"2");
    other.put("absent", "by somebody else").unwrap();
    assert_eq!(absent.put("lost", &plain()).unwrap(), Updated::Superseded);

    let claimed = cache.claim("key").unwrap();
    other.resize(&Options::new().size(1 << 20)).unwrap();
    assert_eq!(claimed.remove().unwrap(), Updated::Removed);
    assert!(other.get("key").unwrap().is_none());
}

#[test]
fn a_flight_stores_remembers_or_gives_up() {
    let cache = cache();
    drop(flight(&cache, "key"));
    assert_eq!(flight(&cache, "key").key(), b"key");
    let serial = flight(&cache, "key").store("made", &plain().metadata(b"m")).unwrap();
    let Filling::Found(Filled::Hit(hit)) = cache.begin_fill("key", Duration::ZERO, &FillOptions::new()).unwrap() else {
        panic!("the flight's value was stored")
    };
    assert_eq!((hit.serial(), hit.metadata()), (serial, &b"m"[..]));
    drop(hit);

    flight(&cache, "gone").remember(404, Duration::from_mins(1));
    assert!(matches!(cache.lookup("gone").unwrap(), Lookup::Negative(hit) if hit.reason() == Some(404)));
    let found = cache.begin_fill("gone", Duration::ZERO, &FillOptions::new()).unwrap();
    assert!(matches!(found, Filling::Found(Filled::Negative(404))));
}

#[test]
fn the_value_of_a_flight_is_refused_or_superseded() {
    let cache = cache();
    let late = flight(&cache, "key");
    cache.put("key", "meanwhile").unwrap();
    assert!(matches!(late.store("late", &plain()), Err(NotStored::Superseded)));
    assert_eq!(&*cache.get("key").unwrap().unwrap(), b"meanwhile");
    let refused = flight(&cache, "large").store(vec![0; 4 << 20], &plain());
    assert!(matches!(refused, Err(NotStored::Refused(Error::EntryTooLarge { .. }))));
    drop(flight(&cache, "large"));
}

#[test]
fn others_may_take_a_stale_entry_while_one_refills_it() {
    let cache = cache();
    let options = plain().ttl(Duration::from_mins(1)).stale(Duration::from_mins(1));
    cache.put_with("key", "old", &options).unwrap();
    cache.purge_all(Purge::Soft).unwrap();
    let ours = flight(&cache, "key");
    let stale = FillOptions::new().use_stale(true);
    let found = cache.begin_fill("key", Duration::ZERO, &stale).unwrap();
    assert!(matches!(found, Filling::Found(Filled::Stale(hit)) if &*hit == b"old"));
    ours.store("new", &options).unwrap();
    assert_eq!(&*cache.get("key").unwrap().unwrap(), b"new");
}

fn hold_until_killed(arguments: &[&str]) {
    let cache = Cache::open(arguments[0]).unwrap();
    let _claimed = cache.claim("claimed").unwrap();
    let _flight = flight(&cache, "filled");
    say("held");
    listen();
}

#[test]
fn the_death_of_its_process_ends_a_claim_and_a_flight() {
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let cache = Options::new().size(1 << 20).open(&path).unwrap();
    cache.put("claimed", "before").unwrap();
    let mut holder = Child::start("holder", &[path.to_str().unwrap()]);
    holder.expect("held");
    holder.kill();
    let claimed = cache.claim("claimed").unwrap();
    assert_eq!(claimed.entry().map(Hit::value), Some(&b"before"[..]));
    drop(claimed);
    flight(&cache, "filled").store("after all", &plain()).unwrap();
}

#[test]
fn a_hit_says_where_its_value_lies_in_the_file() {
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let cache = Options::new().size(1 << 20).open(&path).unwrap();
    cache.put_with("key", "the value", &plain().metadata(b"metadata").tags(&["tag"])).unwrap();
    let hit = cache.get("key").unwrap().unwrap();
    let range = hit.file_range().unwrap();
    let file = std::fs::read(&path).unwrap();
    assert_eq!(&file[range.start as usize..range.end as usize], b"the value");

    let reader = Options::new().read_only(true).open(&path).unwrap();
    assert_eq!(reader.get("key").unwrap().unwrap().file_range(), None, "a copy");
    let nameless = Options::new().size(1 << 20).anonymous().unwrap();
    nameless.put("key", "the value").unwrap();
    assert_eq!(nameless.get("key").unwrap().unwrap().file_range(), None);
}

#[test]
fn a_flight_is_written_piece_by_piece_while_others_wait() {
    let cache = cache();
    let mut writer = flight(&cache, "key").into_writer(&plain().metadata(b"m"), Some(10)).unwrap();
    writer.write_all(b"01234").unwrap();
    assert!(matches!(cache.begin_fill("key", Duration::ZERO, &FillOptions::new()), Err(Error::Busy { .. })));
    writer.write_all(b"56789").unwrap();
    assert!(matches!(writer.commit().unwrap(), Committed::Stored(_)));
    let hit = cache.get("key").unwrap().unwrap();
    assert_eq!((hit.value(), hit.metadata()), (&b"0123456789"[..], &b"m"[..]));
}

#[test]
fn a_flight_without_a_commit_passes_to_the_next_caller() {
    let cache = cache();
    flight(&cache, "key").into_writer(&plain(), None).unwrap().abort();
    let refused = flight(&cache, "key").into_writer(&plain(), Some(1 << 30));
    assert!(matches!(refused, Err(Error::EntryTooLarge { .. })));
    flight(&cache, "key").store("1", &plain()).unwrap();
    assert_eq!(cache.stats().unwrap().pins, 0);
}

#[test]
fn a_purge_or_put_since_a_flight_began_wins_over_its_writer() {
    let cache = cache();
    let tagged = plain().tags(&["t"]);
    let filling = flight(&cache, "key");
    cache.purge_tag("t", Purge::Hard).unwrap();
    let writer = filling.into_writer(&tagged, None).unwrap();
    writer.commit().unwrap();
    assert!(cache.get("key").unwrap().is_none(), "the flight began before the purge");

    let filling = flight(&cache, "key");
    cache.put("key", "newer").unwrap();
    let mut writer = filling.into_writer(&plain(), None).unwrap();
    writer.write_all(b"older").unwrap();
    assert_eq!(writer.commit().unwrap(), Committed::Superseded);
    assert_eq!(&*cache.get("key").unwrap().unwrap(), b"newer");
}

#[test]
fn a_flight_of_a_volume_that_was_resized_since_is_not_written() {
    let folder = fast_folder();
    let cache = Options::new().size(8 << 20).open(folder.path().join("volume")).unwrap();
    let filling = flight(&cache, "key");
    cache.clone().resize(&Options::new().size(16 << 20)).unwrap();
    assert!(matches!(filling.into_writer(&plain(), None), Err(Error::Interrupted { .. })));
    flight(&cache, "key").store("1", &plain()).unwrap();
}

#[test]
fn a_flight_is_not_written_by_a_forked_child() {
    let cache = cache();
    let mut kept = Some(flight(&cache, "key"));
    fork(|| {
        let inherited = kept.take().unwrap();
        assert!(matches!(inherited.into_writer(&plain(), None), Err(Error::Interrupted { .. })));
    })
    .finish();
    kept.unwrap().store("1", &plain()).unwrap();
}
