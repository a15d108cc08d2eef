//! RFC 9110, section 14: requests for ranges are parsed, cut to the representation, and answered by 206, 416 or
//! the whole.
#![cfg(test)]

mod fields;

use eyewall_http::field::range::{ByteRanges, ContentRange, RANGES_MAX, RangeSpec, accepts_bytes, request};
use eyewall_http::ranges::{Boundary, Multipart, Segment, Served, fields_of_part, fields_of_unsatisfiable, select};
use fields::fields;

fn asked(range: &str) -> Option<ByteRanges> {
    ByteRanges::of(&fields(&[("range", range)]))
}

#[test]
fn a_range_field_is_read_or_ignored() {
    use RangeSpec::{From, FromTo, Suffix};
    let rows: &[(&str, Option<&[RangeSpec]>)] = &[
        ("bytes=0-499", Some(&[FromTo(0, 499)])),
        ("bytes=9500-", Some(&[From(9500)])),
        ("bytes=-500", Some(&[Suffix(500)])),
        ("BYTES=0-0, -1", Some(&[FromTo(0, 0), Suffix(1)])),
        ("bytes=,0-1,,5-,", Some(&[FromTo(0, 1), From(5)])),
        ("bytes= 0-1 ,\t2-3", Some(&[FromTo(0, 1), FromTo(2, 3)])),
        ("bytes=-0", Some(&[Suffix(0)])),
        ("bytes=0000-0001", Some(&[FromTo(0, 1)])),
        ("bytes=1-99999999999999999999999", Some(&[FromTo(1, u64::MAX)])),
        ("bytes=99999999999999999999999-", Some(&[From(u64::MAX)])),
        ("bytes=18446744073709551615-18446744073709551615", Some(&[FromTo(u64::MAX, u64::MAX)])),
        ("bytes=5-4", None),
        ("bytes=0-1,5-4", None),
        ("bytes=", None),
        ("bytes=,", None),
        ("bytes", None),
        ("bytes=-", None),
        ("bytes=a-b", None),
        ("bytes=0-1-2", None),
        ("bytes=0 - 1", None),
        ("bytes=+0-1", None),
        ("bytes=--1", None),
        ("bytes=0x0-0x1", None),
        ("bytes=\"0-1\"", None),
        ("bytes 0-1", None),
        ("bytes =0-1", None),
        ("items=0-1", None),
        ("0-1", None),
        ("", None),
    ];
    for (range, expected) in rows {
        assert_eq!(asked(range).as_ref().map(ByteRanges::specs), *expected, "{range}");
    }
    assert_eq!(ByteRanges::of(&fields(&[("range", "bytes=0-1"), ("range", "bytes=2-3")])), None);
    assert_eq!(ByteRanges::of(&fields(&[])), None);
}

#[test]
fn too_many_ranges_are_ignored() {
    let many = |count: usize| format!("bytes={}", vec!["1-2"; count].join(","));
    assert!(asked(&many(RANGES_MAX)).is_some());
    assert!(asked(&many(RANGES_MAX + 1)).is_none());
}

#[test]
fn ranges_are_cut_merged_and_kept_in_order() {
    use Served::{Part, Parts, Unsatisfiable, Whole};
    for (range, length, expected) in [
        ("bytes=0-499", 10_000, Part(0..500)),
        ("bytes=-500", 10_000, Part(9500..10_000)),
        ("bytes=9500-", 10_000, Part(9500..10_000)),
        ("bytes=0-", 10, Part(0..10)),
        ("bytes=0-99", 10, Part(0..10)),
        ("bytes=-99", 10, Part(0..10)),
        ("bytes=9-9", 10, Part(9..10)),
        ("bytes=10-10", 10, Unsatisfiable),
        ("bytes=10-", 10, Unsatisfiable),
        ("bytes=-0", 10, Unsatisfiable),
        ("bytes=10-, -0, 99-100", 10, Unsatisfiable),
        ("bytes=10-, 3-4", 10, Part(3..5)),
        ("bytes=0-0,-1", 10_000, Parts(vec![0..1, 9999..10_000])),
        ("bytes=500-600,601-999", 10_000, Part(500..1000)),
        ("bytes=500-700,601-999", 10_000, Part(500..1000)),
        ("bytes=601-999,500-700", 10_000, Part(500..1000)),
        ("bytes=8-9,0-1,4-5", 10, Parts(vec![8..10, 0..2, 4..6])),
        ("bytes=8-9,0-1,4-5,2-2", 10, Parts(vec![8..10, 0..3, 4..6])),
        ("bytes=4-5,8-9,0-1,2-3", 10, Parts(vec![0..6, 8..10])),
        ("bytes=0-5,0-5,0-5", 10, Part(0..6)),
        ("bytes=0-5,0-5,0-5,0-5", 10, Whole),
        ("bytes=0-,0-,0-,0-,0-", 10, Whole),
        // An empty representation has no byte, but an end.
        ("bytes=0-", 0, Unsatisfiable),
        ("bytes=0-0", 0, Unsatisfiable),
        ("bytes=-0", 0, Unsatisfiable),
        ("bytes=-1", 0, Whole),
        ("bytes=0-0,-1", 0, Whole),
        // Lengths at the end of what 64 bits count.
        ("bytes=18446744073709551614-", u64::MAX, Part(u64::MAX - 1..u64::MAX)),
        ("bytes=18446744073709551615-", u64::MAX, Unsatisfiable),
        ("bytes=0-18446744073709551615", u64::MAX, Part(0..u64::MAX)),
        ("bytes=-99999999999999999999", u64::MAX, Part(0..u64::MAX)),
    ] {
        assert_eq!(select(&asked(range).unwrap(), length), expected, "{range} of {length}");
    }
}

#[test]
fn content_range_is_read_and_written() {
    let satisfied = |range, complete_length| ContentRange::Satisfied { range, complete_length };
    for (text, expected) in [
        ("bytes 42-1233/1234", satisfied(42..1234, Some(1234))),
        ("bytes 42-1233/*", satisfied(42..1234, None)),
        ("bytes 0-0/1", satisfied(0..1, Some(1))),
        ("bytes */1234", ContentRange::Unsatisfied { complete_length: 1234 }),
        ("bytes */0", ContentRange::Unsatisfied { complete_length: 0 }),
        ("bytes 0-18446744073709551614/*", satisfied(0..u64::MAX, None)),
    ] {
        assert_eq!(ContentRange::parse(text.as_bytes()).as_ref(), Some(&expected), "{text}");
        assert_eq!(expected.value().unwrap(), text);
    }
    for text in [
        "bytes 2-1/5",
        "bytes 0-5/5",
        "bytes 5-5/5",
        "bytes 0-18446744073709551615/*",
        "bytes 0-1/18446744073709551616",
        "bytes */*",
        "bytes 0-1",
        "bytes 0-/5",
        "bytes -1/5",
        "bytes=0-1/5",
        "bytes 0-1/5, bytes 2-3/5",
        "bytes",
        "items 0-1/5",
        "",
    ] {
        assert_eq!(ContentRange::parse(text.as_bytes()), None, "{text}");
    }
    assert_eq!(satisfied(5..5, Some(9)).value(), None);
    let twice = fields(&[("content-range", "bytes 0-1/5"), ("content-range", "bytes 0-1/5")]);
    assert_eq!(ContentRange::of(&twice), None);
}

#[test]
fn accept_ranges_says_yes_or_no_or_nothing() {
    for (value, expected) in [("bytes", true), ("Bytes", true), ("items, bytes", true), ("none", false), ("", false)] {
        assert_eq!(accepts_bytes(&fields(&[("accept-ranges", value)])), Some(expected), "{value}");
    }
    assert_eq!(accepts_bytes(&fields(&[])), None);
}

#[test]
fn a_cache_asks_for_ranges_as_a_client_does() {
    assert_eq!(request(&[0..5, 7..8]).unwrap(), "bytes=0-4,7-7");
    let range = 3..u64::MAX;
    assert_eq!(request(std::slice::from_ref(&range)).unwrap(), "bytes=3-18446744073709551614");
    assert_eq!(request(&[]), None);
    let empty = 4..4;
    assert_eq!(request(std::slice::from_ref(&empty)), None);
}

#[test]
fn a_206_has_the_fields_of_the_200_with_range_and_length_of_its_own() {
    let whole = fields(&[
        ("content-type", "text/plain"),
        ("content-length", "10"),
        ("content-digest", "sha-256=:AAAA:"),
        ("repr-digest", "sha-256=:BBBB:"),
        ("content-md5", "x"),
        ("etag", "\"a\""),
    ]);
    let part = fields_of_part(&whole, &(2..5), Some(10)).unwrap();
    let expected = fields(&[
        ("content-type", "text/plain"),
        ("content-length", "3"),
        ("content-range", "bytes 2-4/10"),
        ("repr-digest", "sha-256=:BBBB:"),
        ("etag", "\"a\""),
    ]);
    assert_eq!(part, expected);
    assert_eq!(fields_of_part(&whole, &(2..5), None).unwrap()["content-range"], "bytes 2-4/*");
    assert_eq!(fields_of_part(&whole, &(2..2), Some(10)), None);
    assert_eq!(fields_of_unsatisfiable(10), fields(&[("content-range", "bytes */10")]));
}

#[test]
fn several_parts_make_a_body_whose_length_is_known_before_it_is_sent() {
    let whole = fields(&[("content-type", "text/plain; charset=utf-8"), ("content-length", "10"), ("etag", "\"a\"")]);
    let body = Multipart::new(&whole, vec![8..10, 0..2], Some(10), Boundary::new("THIS_STRING").unwrap()).unwrap();
    let text: Vec<u8> = body
        .segments()
        .flat_map(|segment| match segment {
            Segment::Head(text) => text,
            Segment::Bytes(range) => b"0123456789"[range.start as usize..range.end as usize].to_vec(),
        })
        .collect();
    let expected = "--THIS_STRING\r\n\
        Content-Type: text/plain; charset=utf-8\r\n\
        Content-Range: bytes 8-9/10\r\n\
        \r\n\
        89\r\n\
        --THIS_STRING\r\n\
        Content-Type: text/plain; charset=utf-8\r\n\
        Content-Range: bytes 0-1/10\r\n\
        \r\n\
        01\r\n\
        --THIS_STRING--\r\n";
    assert_eq!(String::from_utf8(text).unwrap(), expected);
    assert_eq!(body.content_length(), expected.len() as u64);
    let head = body.fields(&whole);
    let length = expected.len().to_string();
    let expected = fields(&[
        ("content-type", "multipart/byteranges; boundary=THIS_STRING"),
        ("content-length", &length),
        ("etag", "\"a\""),
    ]);
    assert_eq!(head, expected);
}

#[test]
fn a_body_that_can_not_be_counted_is_not_made() {
    let boundary = || Boundary::new("b").unwrap();
    let whole = fields(&[]);
    assert!(Multipart::new(&whole, vec![0..u64::MAX - 1, u64::MAX - 1..u64::MAX], None, boundary()).is_none());
    assert!(Multipart::new(&whole, vec![], Some(1), boundary()).is_none());
    assert!(Multipart::new(&whole, vec![0..1, 5..5], Some(9), boundary()).is_none());
}

#[test]
fn a_boundary_can_not_bring_a_head_of_its_own() {
    for text in ["", "a b", "a\r\nX: y", "a\"", "a;b", "\u{e4}", &"x".repeat(71)] {
        assert!(Boundary::new(text).is_err(), "{text:?}");
    }
    assert!(Boundary::new("x".repeat(70)).is_ok());
    assert!(Boundary::new("0aZ-_").is_ok());
}
