//! RFC 9111, sections 3.2 and 4.3.5: a newer response without a body updates the fields of a stored one, or shows
//! that it is outdated.
#![cfg(test)]

mod fields;

use eyewall_http::update::{HeadEffect, effect_of_head, updated};
use fields::fields;
use http::StatusCode;

#[test]
fn each_field_of_the_newer_response_replaces_all_lines_of_that_name() {
    let stored = fields(&[
        ("x-both", "1"),
        ("x-both", "2"),
        ("x-old", "stays"),
        ("cache-control", "max-age=1"),
        ("content-type", "text/plain"),
        ("content-location", "/a"),
    ]);
    let newer = fields(&[
        ("x-both", "3"),
        ("x-new", "1"),
        ("x-new", "2"),
        ("cache-control", "max-age=9"),
        ("content-type", "text/plain;charset=utf-8"),
        ("content-location", "/b"),
    ]);
    let expected = fields(&[
        ("x-both", "3"),
        ("x-new", "1"),
        ("x-new", "2"),
        ("x-old", "stays"),
        ("cache-control", "max-age=9"),
        ("content-type", "text/plain;charset=utf-8"),
        ("content-location", "/b"),
    ]);
    assert_eq!(updated(&stored, &newer), expected);
}

#[test]
fn fields_of_the_stored_bytes_stay_and_fields_of_a_connection_are_not_added() {
    let stored = [
        ("content-length", "5"),
        ("content-encoding", "gzip"),
        ("content-range", "bytes 0-4/5"),
        ("content-md5", "a"),
        ("content-digest", "sha-256=:AAAA:"),
        ("etag", "\"a\""),
    ];
    let newer = fields(&[
        ("content-length", "0"),
        ("content-encoding", "br"),
        ("content-range", "bytes 0-1/5"),
        ("content-md5", "b"),
        ("content-digest", "sha-256=:BBBB:"),
        ("etag", "W/\"a\""),
        ("connection", "x-mine"),
        ("x-mine", "1"),
        ("keep-alive", "1"),
        ("transfer-encoding", "chunked"),
        ("proxy-authenticate", "Basic"),
        ("upgrade", "h2c"),
    ]);
    assert_eq!(updated(&fields(&stored), &newer), fields(&stored));
}

#[test]
fn a_tag_comes_where_there_was_none() {
    assert_eq!(updated(&fields(&[]), &fields(&[("etag", "\"a\"")])), fields(&[("etag", "\"a\"")]));
}

#[test]
fn the_age_of_the_old_response_is_not_that_of_the_new_one() {
    let stored = fields(&[("age", "100"), ("date", "Sun, 06 Nov 1994 08:49:37 GMT")]);
    let newer = fields(&[("date", "Sun, 06 Nov 1994 08:59:37 GMT")]);
    assert_eq!(updated(&stored, &newer), newer);
    assert_eq!(updated(&stored, &fields(&[("age", "3")]))["age"], "3");
}

#[test]
fn a_head_updates_or_outdates() {
    let modified = "Sun, 06 Nov 1994 08:49:37 GMT";
    let stored = fields(&[("etag", "\"a\""), ("last-modified", modified), ("content-length", "5"), ("x-a", "1")]);
    let rows: &[(&[(&str, &str)], bool)] = &[
        (&[], true),
        (&[("etag", "\"a\"")], true),
        (&[("etag", "\"b\"")], false),
        (&[("etag", "W/\"a\"")], false),
        (&[("last-modified", modified)], true),
        (&[("last-modified", "Sunday, 06-Nov-94 08:49:37 GMT")], true),
        (&[("last-modified", "Sun, 06 Nov 1994 08:49:38 GMT")], false),
        (&[("last-modified", "lately")], false),
        (&[("content-length", "5")], true),
        (&[("content-length", "6")], false),
        (&[("content-length", "five")], false),
        (&[("content-encoding", "gzip")], false),
        (&[("etag", "\"a\""), ("last-modified", modified), ("content-length", "5")], true),
        (&[("etag", "\"a\""), ("content-length", "6")], false),
    ];
    for (answer, is_updated) in rows {
        let mut lines = answer.to_vec();
        lines.push(("x-a", "2"));
        match effect_of_head(&stored, Some(5), StatusCode::OK, &fields(&lines)) {
            HeadEffect::Updated(fields) => {
                assert!(is_updated, "{answer:?}");
                assert_eq!(fields["x-a"], "2");
                assert_eq!(fields["content-length"], "5");
            }
            HeadEffect::Outdated => assert!(!is_updated, "{answer:?}"),
            HeadEffect::None => panic!("{answer:?}"),
        }
    }
}

#[test]
fn a_head_that_is_no_200_says_nothing_and_one_with_more_validators_than_are_stored_outdates() {
    let stored = fields(&[("content-length", "5")]);
    for status in [206, 304, 404, 410, 500] {
        let status = StatusCode::from_u16(status).unwrap();
        assert_eq!(effect_of_head(&stored, Some(5), status, &fields(&[("etag", "\"b\"")])), HeadEffect::None);
    }
    for answer in [("etag", "\"a\""), ("last-modified", "Sun, 06 Nov 1994 08:49:37 GMT")] {
        assert_eq!(effect_of_head(&stored, Some(5), StatusCode::OK, &fields(&[answer])), HeadEffect::Outdated);
    }
    let answer = fields(&[("content-length", "5")]);
    assert_eq!(effect_of_head(&stored, None, StatusCode::OK, &answer), HeadEffect::Outdated);
}
