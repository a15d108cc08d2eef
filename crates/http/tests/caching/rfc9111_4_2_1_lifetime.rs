//! RFC 9111, sections 4.2.1 and 4.2.2: how long a response is fresh, by its fields or by a guess.

use eyewall_http::freshness::Source;
use eyewall_http::policy::Policy;

use crate::support::{DATE, judge_with};

const MINUTE_LATER: &str = "Sun, 06 Nov 1994 08:50:37 GMT";
const DAY_BEFORE: &str = "Sat, 05 Nov 1994 08:49:37 GMT";

/// The lifetime in seconds of a response with this `Date` and a validator, and where it is from.
fn lifetime(status: u16, response: &str) -> (u32, Option<Source>) {
    let response = format!("date: {DATE}\netag: \"a\"\n{response}");
    let stored = judge_with("", status, &response, &Policy::default()).unwrap();
    (stored.terms.lifetime_seconds, stored.source)
}

#[test]
fn the_word_to_shared_caches_goes_before_the_others() {
    let expires = format!("expires: {MINUTE_LATER}");
    for (control, expected) in [
        ("cache-control: s-maxage=9, max-age=5", (9, Some(Source::SMaxage))),
        ("cache-control: max-age=5", (5, Some(Source::MaxAge))),
        ("", (60, Some(Source::Expires))),
    ] {
        assert_eq!(lifetime(200, &format!("{control}\n{expires}")), expected, "{control}");
    }
}

#[test]
fn an_expires_that_is_no_date_or_in_the_past_is_stale_and_of_several_the_earliest_counts() {
    for (lines, expected) in [
        ("expires: 0".to_owned(), 0),
        ("expires:".to_owned(), 0),
        (format!("expires: {DAY_BEFORE}"), 0),
        (format!("expires: {MINUTE_LATER}\nexpires: 0"), 0),
        (format!("expires: {MINUTE_LATER}\nexpires: {MINUTE_LATER}"), 60),
        ("expires: Sunday, 06-Nov-94 08:50:37 GMT".to_owned(), 60),
        ("expires: Sun Nov  6 08:50:37 1994".to_owned(), 60),
        ("expires: Sun, 06 Nov 1994 08:50:37 UTC".to_owned(), 0),
        ("expires: Sun, 06 Nov 94 08:50:37 GMT".to_owned(), 0),
    ] {
        assert_eq!(lifetime(200, &lines), (expected, Some(Source::Expires)), "{lines}");
    }
}

#[test]
fn without_a_date_the_time_of_receipt_counts() {
    for date in ["", "date: foo\n"] {
        let response = format!("{date}expires: {MINUTE_LATER}");
        let stored = judge_with("", 200, &response, &Policy::default()).unwrap();
        assert_eq!(stored.terms.lifetime_seconds, 60);
    }
}

#[test]
fn a_tenth_of_the_time_since_the_last_change_is_guessed_and_a_day_at_most() {
    for (modified, expected) in [
        (DAY_BEFORE, (8640, Some(Source::Heuristic))),
        ("Thu, 01 Jan 1970 00:00:00 GMT", (86400, Some(Source::Heuristic))),
        (DATE, (0, Some(Source::Heuristic))),
        (MINUTE_LATER, (0, None)),
        ("yesterday", (0, None)),
    ] {
        assert_eq!(lifetime(200, &format!("last-modified: {modified}")), expected, "{modified}");
    }
}

#[test]
fn it_is_guessed_for_statuses_that_are_cacheable_by_default_or_with_public() {
    let modified = format!("last-modified: {DAY_BEFORE}");
    for status in [200, 203, 204, 300, 301, 308, 404, 405, 410, 501] {
        assert_eq!(lifetime(status, &modified), (8640, Some(Source::Heuristic)), "{status}");
    }
    for status in [201, 202, 302, 303, 307, 402, 409, 500, 502, 503, 599] {
        assert!(judge_with("", status, &modified, &Policy::default()).is_err(), "{status}");
        let public = format!("{modified}\ncache-control: public");
        assert_eq!(lifetime(status, &public), (8640, Some(Source::Heuristic)), "{status}");
    }
}

#[test]
fn no_lifetime_is_guessed_against_the_origin() {
    let modified = format!("last-modified: {DAY_BEFORE}");
    for said in ["expires: 0", "cache-control: max-age=0", "cache-control: max-age=soon", "cache-control: s-maxage"] {
        assert_eq!(lifetime(200, &format!("{modified}\n{said}")).0, 0, "{said}");
    }
}
