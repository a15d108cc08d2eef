//! A caller that needn't store each value asks which ones displace much, for keys that were asked for only once.

use eyewall::{Cache, Options, PutOptions};

const SIZE: u64 = 1 << 20;
/// The smallest value that displaces much.
const MUCH: u64 = SIZE / 32 + 1;

fn put_pages(cache: &Cache, pages: usize) {
    for number in 0..pages {
        cache.put(format!("page {number}"), [7; 8000]).unwrap();
    }
}

/// More than half of its size was written, and nothing was evicted.
fn half_written() -> Cache {
    let cache = Options::new().size(SIZE).heap().unwrap();
    put_pages(&cache, 80);
    cache
}

#[test]
fn a_volume_of_which_less_than_half_was_written_has_room_for_everything() {
    let cache = Options::new().size(SIZE).heap().unwrap();
    assert!(!cache.displaces_much("film", MUCH));
    put_pages(&cache, 60);
    assert!(!cache.displaces_much("film", MUCH));
    put_pages(&cache, 10);
    assert!(cache.displaces_much("film", MUCH));
}

#[test]
fn what_takes_a_thirty_second_part_of_the_volume_or_less_displaces_little() {
    let cache = half_written();
    assert!(cache.displaces_much("film", u64::MAX) && cache.displaces_much("film", MUCH));
    assert!(!cache.displaces_much("film", MUCH - 1) && !cache.displaces_much("film", 0));
}

#[test]
fn a_request_that_was_noted_makes_the_next_one_the_second() {
    let cache = half_written();
    assert!(cache.get("film").unwrap().is_none());
    assert!(cache.displaces_much("film", MUCH), "the miss is of the present request");
    assert!(cache.displaces_much("film", MUCH), "the question leaves no trace");
    cache.note_request("film");
    assert!(!cache.displaces_much("film", MUCH));
}

#[test]
fn a_key_that_was_asked_for_and_put_is_known() {
    let cache = half_written();
    assert!(cache.get("film").unwrap().is_none());
    cache.put("film", "short").unwrap();
    assert!(!cache.displaces_much("film", MUCH), "it would replace an entry");
    cache.remove("film").unwrap();
    assert!(!cache.displaces_much("film", MUCH), "it was asked for");
}

#[test]
fn an_entry_is_replaced_whether_or_not_it_was_asked_for() {
    let cache = half_written();
    cache.put_with("film", "short", &PutOptions::new()).unwrap();
    assert!(!cache.displaces_much("film", MUCH));
    cache.put_negative("none", 404, &PutOptions::new()).unwrap();
    assert!(!cache.displaces_much("none", MUCH));
    cache.remove("film").unwrap();
    assert!(cache.displaces_much("film", MUCH), "a put without a miss is no request");
}

#[test]
fn who_cannot_store_is_told_nothing_and_notes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("volume");
    let cache = Options::new().size(SIZE).open(&path).unwrap();
    put_pages(&cache, 80);
    let reader = Options::new().read_only(true).open(&path).unwrap();
    assert!(!reader.displaces_much("film", MUCH));
    reader.note_request("film");
    for cache in [&cache, &reader] {
        assert!(!cache.displaces_much("", MUCH));
        cache.note_request("");
    }
    assert!(cache.displaces_much("film", MUCH));
}
