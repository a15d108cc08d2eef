//! RFC 9110, section 13, and RFC 9111, section 4.3.2: preconditions have one order. An origin evaluates all of
//! them, a cache only some.
#![cfg(test)]

mod fields;

use std::time::{Duration, SystemTime};

use eyewall_http::precondition::{Outcome, Representation, Role, evaluate, fields_of_not_modified};
use fields::fields;
use http::{HeaderMap, HeaderName, Method, StatusCode};

type Lines<'a> = &'a [(&'a str, &'a str)];

const BEFORE: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
const MODIFIED: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const AFTER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";
const MADE: &str = "Sun, 06 Nov 1994 09:00:00 GMT";

fn outcome(role: Role, method: &Method, request: &[(&str, &str)], status: u16, response: &HeaderMap) -> &'static str {
    let received = httpdate::parse_http_date(MADE).unwrap();
    let status = StatusCode::from_u16(status).unwrap();
    let current = Representation { status, fields: response, received };
    name(&evaluate(role, method, &fields(request), Some(&current)))
}

fn name(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Proceed => "proceed",
        Outcome::NotModified => "304",
        Outcome::Failed => "412",
        Outcome::Partial(_) => "206",
    }
}

fn stored() -> HeaderMap {
    fields(&[("etag", "\"a\""), ("last-modified", MODIFIED), ("date", MADE)])
}

#[test]
fn the_table_of_a_get() {
    let rows: &[(Lines<'_>, &str, &str)] = &[
        // request, origin, cache
        (&[], "proceed", "proceed"),
        (&[("if-none-match", "\"a\"")], "304", "304"),
        (&[("if-none-match", "W/\"a\"")], "304", "304"),
        (&[("if-none-match", "*")], "304", "304"),
        (&[("if-none-match", "\"b\"")], "proceed", "proceed"),
        (&[("if-none-match", "\"b\""), ("if-modified-since", AFTER)], "proceed", "proceed"),
        (&[("if-none-match", "b"), ("if-modified-since", AFTER)], "proceed", "proceed"),
        (&[("if-modified-since", MODIFIED)], "304", "304"),
        (&[("if-modified-since", AFTER)], "304", "304"),
        (&[("if-modified-since", BEFORE)], "proceed", "proceed"),
        (&[("if-modified-since", "yesterday")], "proceed", "proceed"),
        (&[("if-modified-since", AFTER), ("if-modified-since", AFTER)], "proceed", "proceed"),
        (&[("if-match", "\"a\"")], "proceed", "proceed"),
        (&[("if-match", "*")], "proceed", "proceed"),
        (&[("if-match", "\"b\"")], "412", "proceed"),
        (&[("if-match", "W/\"a\"")], "412", "proceed"),
        (&[("if-match", "\"b\""), ("if-none-match", "\"a\"")], "412", "304"),
        (&[("if-match", "\"a\""), ("if-none-match", "\"a\"")], "304", "304"),
        (&[("if-match", "\"a\""), ("if-unmodified-since", BEFORE)], "proceed", "proceed"),
        (&[("if-unmodified-since", BEFORE)], "412", "proceed"),
        (&[("if-unmodified-since", MODIFIED)], "proceed", "proceed"),
        (&[("if-unmodified-since", "x")], "proceed", "proceed"),
        (&[("range", "bytes=0-1")], "206", "206"),
        (&[("range", "bytes=0-1"), ("if-none-match", "\"a\"")], "304", "304"),
        (&[("range", "bytes=0-1"), ("if-none-match", "\"b\"")], "206", "206"),
        (&[("range", "bytes=0-1"), ("if-match", "\"b\"")], "412", "206"),
        (&[("range", "chapters=0-1")], "proceed", "proceed"),
        (&[("if-range", "\"a\"")], "proceed", "proceed"),
    ];
    for (request, origin, cache) in rows {
        assert_eq!(outcome(Role::Origin, &Method::GET, request, 200, &stored()), *origin, "{request:?}");
        assert_eq!(outcome(Role::Cache, &Method::GET, request, 200, &stored()), *cache, "{request:?}");
    }
}

#[test]
fn a_range_applies_under_a_validator_that_is_strong_and_the_same() {
    for (if_range, response, expected) in [
        ("\"a\"", stored(), "206"),
        (MODIFIED, stored(), "206"),
        ("Sunday, 06-Nov-94 08:49:37 GMT", stored(), "206"),
        ("\"b\"", stored(), "proceed"),
        ("W/\"a\"", stored(), "proceed"),
        (AFTER, stored(), "proceed"),
        (BEFORE, stored(), "proceed"),
        ("a", stored(), "proceed"),
        ("\"a\", \"b\"", stored(), "proceed"),
        ("\"a\"", fields(&[("etag", "W/\"a\"")]), "proceed"),
        ("W/\"a\"", fields(&[("etag", "W/\"a\"")]), "proceed"),
        // A date of the same second is weak: the representation could have changed again in it.
        (MODIFIED, fields(&[("last-modified", MODIFIED), ("date", MODIFIED)]), "proceed"),
        (MODIFIED, fields(&[("last-modified", MODIFIED), ("date", AFTER)]), "206"),
        // Without a date it was made when it was received.
        (MODIFIED, fields(&[("last-modified", MODIFIED)]), "206"),
        (MADE, fields(&[("last-modified", MADE)]), "proceed"),
    ] {
        let request = [("range", "bytes=0-1"), ("if-range", if_range)];
        assert_eq!(outcome(Role::Cache, &Method::GET, &request, 200, &response), expected, "{if_range} {response:?}");
    }
}

#[test]
fn other_methods_fail_where_a_get_is_told_that_it_has_it() {
    for (method, request, expected) in [
        (Method::HEAD, ("if-none-match", "\"a\""), "304"),
        (Method::HEAD, ("if-modified-since", AFTER), "304"),
        (Method::HEAD, ("range", "bytes=0-1"), "proceed"),
        (Method::PUT, ("if-none-match", "\"a\""), "412"),
        (Method::PUT, ("if-none-match", "*"), "412"),
        (Method::PUT, ("if-modified-since", AFTER), "proceed"),
        (Method::PUT, ("if-match", "\"b\""), "412"),
        (Method::PUT, ("if-match", "\"a\""), "proceed"),
        (Method::PUT, ("range", "bytes=0-1"), "proceed"),
        (Method::DELETE, ("if-unmodified-since", BEFORE), "412"),
        (Method::OPTIONS, ("if-match", "\"b\""), "proceed"),
        (Method::TRACE, ("if-none-match", "*"), "proceed"),
        (Method::CONNECT, ("if-match", "\"b\""), "proceed"),
        (Method::from_bytes(b"QUERY").unwrap(), ("if-none-match", "\"a\""), "304"),
    ] {
        assert_eq!(outcome(Role::Origin, &method, &[request], 200, &stored()), expected, "{method} {request:?}");
    }
}

#[test]
fn preconditions_are_ignored_where_the_answer_were_no_success() {
    for status in [301, 404, 500] {
        for request in [("if-none-match", "\"a\""), ("if-match", "\"b\""), ("range", "bytes=0-1")] {
            assert_eq!(outcome(Role::Origin, &Method::GET, &[request], status, &stored()), "proceed", "{status}");
        }
    }
    // Ranges are of a 200 only.
    assert_eq!(outcome(Role::Cache, &Method::GET, &[("range", "bytes=0-1")], 203, &stored()), "proceed");
    assert_eq!(outcome(Role::Cache, &Method::GET, &[("if-none-match", "\"a\"")], 203, &stored()), "304");
}

#[test]
fn a_change_that_relies_on_a_missing_representation_fails() {
    for (role, method, request, expected) in [
        (Role::Origin, Method::PUT, ("if-match", "*"), "412"),
        (Role::Origin, Method::PUT, ("if-match", "\"a\""), "412"),
        (Role::Origin, Method::PUT, ("if-none-match", "*"), "proceed"),
        (Role::Origin, Method::PUT, ("if-unmodified-since", BEFORE), "proceed"),
        (Role::Origin, Method::GET, ("if-match", "*"), "proceed"),
        (Role::Cache, Method::PUT, ("if-match", "*"), "proceed"),
        (Role::Cache, Method::GET, ("if-none-match", "*"), "proceed"),
    ] {
        assert_eq!(
            name(&evaluate(role, &method, &fields(&[request]), None)),
            expected,
            "{role:?} {method} {request:?}"
        );
    }
}

#[test]
fn a_cache_takes_the_date_if_there_is_no_last_modified() {
    let dated = fields(&[("date", MODIFIED)]);
    let bare = fields(&[]);
    for (role, since, response, expected) in [
        (Role::Cache, MODIFIED, &dated, "304"),
        (Role::Cache, BEFORE, &dated, "proceed"),
        (Role::Cache, MADE, &bare, "304"),
        (Role::Cache, AFTER, &bare, "proceed"),
        (Role::CacheOfOrigin, MODIFIED, &dated, "304"),
        (Role::CacheOfOrigin, BEFORE, &dated, "proceed"),
        (Role::Origin, MADE, &dated, "proceed"),
        (Role::Origin, MADE, &bare, "proceed"),
    ] {
        let request = [("if-modified-since", since)];
        assert_eq!(outcome(role, &Method::GET, &request, 200, response), expected, "{role:?} {since}");
    }
}

#[test]
fn an_origin_with_a_stored_response_evaluates_all_preconditions() {
    for (role, expected) in [(Role::Cache, "proceed"), (Role::Origin, "412"), (Role::CacheOfOrigin, "412")] {
        let found = outcome(role, &Method::GET, &[("if-match", "\"b\"")], 200, &stored());
        assert_eq!(found, expected, "{role:?}");
    }
}

#[test]
fn dates_before_the_epoch_and_far_away_are_no_trouble() {
    for date in ["Thu, 01 Jan 1970 00:00:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT", "Mon, 01 Jan 0001 00:00:00 GMT"] {
        let response = fields(&[("last-modified", date), ("date", date)]);
        let current = Representation {
            status: StatusCode::OK,
            fields: &response,
            received: SystemTime::UNIX_EPOCH + Duration::from_secs(1),
        };
        let request = fields(&[("if-range", date), ("range", "bytes=0-"), ("if-modified-since", date)]);
        evaluate(Role::Cache, &Method::GET, &request, Some(&current));
    }
}

#[test]
fn a_304_has_fields_for_caches_and_none_of_the_representation() {
    let response = fields(&[
        ("cache-control", "max-age=5"),
        ("cache-control", "public"),
        ("content-length", "5"),
        ("content-type", "text/html"),
        ("content-encoding", "gzip"),
        ("etag", "\"a\""),
        ("vary", "accept"),
        ("cdn-cache-control", "max-age=9"),
        ("set-cookie", "a=b"),
    ]);
    let kept = fields_of_not_modified(&response, &[HeaderName::from_static("cdn-cache-control")]);
    let expected = fields(&[
        ("cache-control", "max-age=5"),
        ("cache-control", "public"),
        ("etag", "\"a\""),
        ("vary", "accept"),
        ("cdn-cache-control", "max-age=9"),
    ]);
    assert_eq!(kept, expected);
}
