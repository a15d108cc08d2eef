//! RFC 9111, sections 3.3 and 3.4: a partial response is stored, answers requests for its bytes, and grows by
//! later parts with the same strong validator.
#![cfg(test)]

mod fields;

use std::iter;
use std::ops::Range;
use std::time::SystemTime;

use eyewall_http::field::range::ByteRanges;
use eyewall_http::partial::{PartialContent, RangeSet};
use eyewall_http::ranges::Served;
use eyewall_http::strong_validator;
use fields::fields;
use http::StatusCode;
use proptest::prelude::*;

type Lines<'a> = &'a [(&'a str, &'a str)];

const MODIFIED: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const MADE: &str = "Sun, 06 Nov 1994 09:00:00 GMT";

fn now() -> SystemTime {
    httpdate::parse_http_date(MADE).unwrap()
}

/// A 206 with this range, all of whose bytes came, and more fields.
fn part(content_range: &str, bytes: u64, more: &[(&str, &str)]) -> Option<PartialContent> {
    let mut lines = more.to_vec();
    lines.push(("content-range", content_range));
    PartialContent::of(StatusCode::PARTIAL_CONTENT, &fields(&lines), bytes, true, now())
}

fn tagged(content_range: &str, bytes: u64) -> PartialContent {
    part(content_range, bytes, &[("etag", "\"a\"")]).unwrap()
}

fn range_set(range: Range<u64>) -> RangeSet {
    iter::once(range).collect()
}

fn asked(range: &str) -> ByteRanges {
    ByteRanges::of(&fields(&[("range", range)])).unwrap()
}

#[test]
fn a_cut_off_response_is_kept_as_an_incomplete_200() {
    let partial = part("bytes 4-8/10", 5, &[("content-length", "5"), ("content-digest", "sha-256=:AAAA:")]).unwrap();
    assert_eq!(partial.fields(), &fields(&[("content-length", "10")]));
    assert_eq!(partial.range_set(), &range_set(4..9));
    assert_eq!(partial.complete_length(), Some(10));
    assert!(!partial.is_complete());
    // A response that was cut off has the bytes that arrived.
    assert_eq!(part("bytes 4-8/10", 2, &[]).unwrap().range_set(), &range_set(4..6));
    assert!(part("bytes 0-9/10", 10, &[]).unwrap().is_complete());
    assert_eq!(part("bytes 4-8/*", 5, &[("content-length", "5")]).unwrap().fields(), &fields(&[]));
}

#[test]
fn a_200_that_broke_off_has_its_beginning() {
    let of = |lines, bytes, is_whole| PartialContent::of(StatusCode::OK, &fields(lines), bytes, is_whole, now());
    let partial = of(&[("content-length", "10")], 4, false).unwrap();
    assert_eq!((partial.range_set(), partial.complete_length()), (&range_set(0..4), Some(10)));
    let partial = of(&[], 4, false).unwrap();
    assert_eq!((partial.range_set(), partial.complete_length()), (&range_set(0..4), None));
    assert!(of(&[], 4, true).unwrap().is_complete());
    assert!(of(&[], 0, true).unwrap().is_complete());
    assert!(of(&[("content-length", "10")], 0, false).is_none());
    assert!(of(&[("content-length", "3")], 4, false).is_none());
}

#[test]
fn a_contradictory_or_multipart_response_is_not_kept() {
    assert!(part("bytes 4-8/10", 6, &[]).is_none());
    assert!(part("bytes 4-8/10", 0, &[]).is_none());
    assert!(part("bytes */10", 5, &[]).is_none());
    assert!(part("chapters 4-8/10", 5, &[]).is_none());
    let multipart = fields(&[("content-type", "multipart/byteranges; boundary=b")]);
    assert!(PartialContent::of(StatusCode::PARTIAL_CONTENT, &multipart, 100, true, now()).is_none());
    assert!(PartialContent::of(StatusCode::NOT_FOUND, &fields(&[]), 5, true, now()).is_none());
}

#[test]
fn a_part_answers_ranges_that_it_has_completely() {
    let known = tagged("bytes 4-8/10", 5);
    let unknown = tagged("bytes 4-8/*", 5);
    for (range, of_known, of_unknown) in [
        ("bytes=4-8", Some(Served::Part(4..9)), Some(Served::Part(4..9))),
        ("bytes=6-7", Some(Served::Part(6..8)), Some(Served::Part(6..8))),
        ("bytes=4-4,8-8", Some(Served::Parts(vec![4..5, 8..9])), Some(Served::Parts(vec![4..5, 8..9]))),
        ("bytes=8-9", None, None),
        ("bytes=6-", None, None),
        ("bytes=-1", None, None),
        ("bytes=3-4", None, None),
        ("bytes=4-5,0-0", None, None),
        ("bytes=10-", Some(Served::Unsatisfiable), None),
        ("bytes=20-30", Some(Served::Unsatisfiable), None),
        ("bytes=4-5,4-5,4-5,4-5", None, None),
        ("bytes=4-99999999999999999999", None, None),
    ] {
        assert_eq!(known.select(&asked(range)), of_known, "{range}");
        assert_eq!(unknown.select(&asked(range)), of_unknown, "{range}");
    }
    let end = tagged("bytes 4-9/10", 6);
    assert_eq!(end.select(&asked("bytes=6-")), Some(Served::Part(6..10)));
    assert_eq!(end.select(&asked("bytes=-2")), Some(Served::Part(8..10)));
}

#[test]
fn parts_of_the_same_strong_validator_are_combined() {
    let dated = [("last-modified", MODIFIED), ("date", MADE)];
    let rows: &[(Lines<'_>, Lines<'_>, bool)] = &[
        (&[("etag", "\"a\"")], &[("etag", "\"a\"")], true),
        (&[("etag", "\"a\"")], &[("etag", "\"b\"")], false),
        (&[("etag", "W/\"a\"")], &[("etag", "W/\"a\"")], false),
        (&[("etag", "\"a\"")], &[], false),
        (&[], &[], false),
        (&dated, &dated, true),
        (&dated, &[("last-modified", MODIFIED), ("date", MODIFIED)], false),
        (&dated, &[("last-modified", MADE), ("date", MADE)], false),
        (&dated, &[("last-modified", MODIFIED), ("etag", "\"a\"")], false),
        (&[("etag", "\"a\""), ("last-modified", MADE)], &[("etag", "\"a\""), ("last-modified", MODIFIED)], true),
    ];
    for (one, other, is_combined) in rows {
        let (one, other) = (part("bytes 0-4/10", 5, one).unwrap(), part("bytes 5-9/10", 5, other).unwrap());
        let both = one.combined(&other);
        assert_eq!(both.is_some(), *is_combined, "{one:?} {other:?}");
        assert!(both.is_none_or(|both| both.is_complete()));
    }
}

#[test]
fn a_complete_combination_is_a_200_with_the_newer_fields() {
    let older = part("bytes 0-4/10", 5, &[("etag", "\"a\""), ("x-a", "1"), ("x-b", "1"), ("age", "5")]).unwrap();
    let newer = part("bytes 5-9/10", 5, &[("etag", "\"a\""), ("x-a", "2"), ("content-length", "5")]).unwrap();
    let both = older.combined(&newer).unwrap();
    let expected = fields(&[("etag", "\"a\""), ("x-a", "2"), ("x-b", "1"), ("content-length", "10")]);
    assert_eq!(both.fields(), &expected);
    assert_eq!(both.select(&asked("bytes=3-6")), Some(Served::Part(3..7)));

    let broken_off = fields(&[("etag", "\"a\""), ("x-a", "3")]);
    let broken_off = PartialContent::of(StatusCode::OK, &broken_off, 2, false, now()).unwrap();
    let all = both.combined(&broken_off).unwrap();
    assert_eq!(all.fields(), &fields(&[("etag", "\"a\""), ("x-a", "3"), ("content-length", "10")]));
    assert!(all.is_complete());
}

#[test]
fn lengths_that_differ_keep_parts_apart() {
    let first = tagged("bytes 0-4/10", 5);
    assert!(first.combined(&tagged("bytes 5-9/11", 5)).is_none());
    assert!(first.combined(&tagged("bytes 5-11/*", 7)).is_none());
    let open = tagged("bytes 0-4/*", 5).combined(&tagged("bytes 7-8/*", 2)).unwrap();
    assert_eq!((open.complete_length(), open.is_complete()), (None, false));
    let closed = open.combined(&tagged("bytes 4-9/10", 6)).unwrap();
    assert!(closed.is_complete());
    assert_eq!(closed.fields()["content-length"], "10");
}

#[test]
fn a_fill_asks_for_missing_ranges_under_the_validator() {
    let partial = tagged("bytes 0-4/20", 5).combined(&tagged("bytes 10-11/20", 2)).unwrap();
    assert_eq!(partial.range_set().missing(&(3..15)).ranges(), [5..10, 12..15]);
    assert_eq!(strong_validator::if_range(partial.fields(), now()).unwrap(), "\"a\"");
    for (lines, expected) in [
        (vec![("etag", "W/\"a\""), ("last-modified", MODIFIED)], None),
        (vec![("last-modified", MODIFIED)], Some(MODIFIED)),
        (vec![("last-modified", MODIFIED), ("date", MODIFIED)], None),
        (vec![], None),
    ] {
        let value = strong_validator::if_range(&fields(&lines), now());
        assert_eq!(value.as_ref().map(|value| value.to_str().unwrap()), expected, "{lines:?}");
    }
}

proptest! {
    #[test]
    fn pieces_are_a_set_of_places(inserted in prop::collection::vec((0_u64..30, 0_u64..8), 0..12), wanted in (0_u64..30, 0_u64..12)) {
        let mut places = [false; 64];
        let mut range_set = RangeSet::default();
        for (start, length) in inserted {
            range_set.insert(start..start + length);
            (start..start + length).for_each(|place| places[place as usize] = true);
        }
        let is_there = |place: u64| places[place as usize];
        for place in 0..64 {
            prop_assert_eq!(range_set.has(&(place..place + 1)), place < 63 && is_there(place));
        }
        let ranges = range_set.ranges();
        prop_assert!(ranges.iter().all(|range| range.start < range.end));
        prop_assert!(ranges.windows(2).all(|pair| pair[0].end < pair[1].start));
        let wanted = wanted.0..wanted.0 + wanted.1;
        prop_assert_eq!(range_set.has(&wanted), wanted.clone().all(is_there));
        let missing: Vec<u64> = range_set.missing(&wanted).ranges().iter().cloned().flatten().collect();
        let by_hand: Vec<u64> = wanted.filter(|place| !is_there(*place)).collect();
        prop_assert_eq!(missing, by_hand);
    }

    #[test]
    fn parts_in_any_order_cover_their_union(parts in prop::collection::vec((0_u64..20, 1_u64..8), 1..8)) {
        let of = |start: u64, length: u64| {
            let end = (start + length).min(20);
            tagged(&format!("bytes {start}-{}/20", end - 1), end - start)
        };
        let covered = |place: u64| parts.iter().any(|(start, length)| (*start..start + length).contains(&place));
        let mut partial = of(parts[0].0, parts[0].1);
        for (start, length) in &parts[1..] {
            partial = partial.combined(&of(*start, *length)).unwrap();
        }
        for place in 0..20 {
            let is_answered = partial.select(&asked(&format!("bytes={place}-{place}"))).is_some();
            prop_assert_eq!(is_answered, covered(place));
        }
        prop_assert_eq!(partial.is_complete(), (0..20).all(covered));
    }
}

#[test]
fn pieces_reach_to_the_last_64_bit_position() {
    let mut partial = range_set(u64::MAX - 2..u64::MAX);
    partial.insert(0..u64::MAX - 2);
    assert!(partial.has(&(0..u64::MAX)));
    assert_eq!(partial.missing(&(0..u64::MAX)), RangeSet::default());
}
