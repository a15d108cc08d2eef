//! RFC 9111, sections 4 and 4.2.4: a stored response that is no longer fresh.

use std::time::Duration;

use eyewall_http::policy::Policy;
use eyewall_http::reuse::{self, OnFailure, Reuse};
use http::{Method, StatusCode};

use crate::support::{at, judge_with, reuse, reuse_with, validate};

#[test]
fn it_is_sent_while_it_is_fresh_and_not_at_the_end_of_its_lifetime() {
    let stored = "cache-control: max-age=60\netag: \"a\"";
    assert_eq!(reuse(stored, "", 59), Reuse::Fresh);
    assert_eq!(reuse(stored, "", 60), validate());
    assert_eq!(reuse("cache-control: max-age=60", "", 59), Reuse::Fresh);
    assert_eq!(reuse("cache-control: max-age=60", "", 60), Reuse::MustNotUse);
}

#[test]
fn a_response_with_no_cache_is_validated_while_it_is_fresh() {
    let stored = "cache-control: max-age=60, no-cache, stale-if-error=60\netag: \"a\"";
    assert_eq!(reuse(stored, "", 0), validate());
    assert_eq!(reuse(stored, "cache-control: max-stale", 90), validate());
}

#[test]
fn the_origin_can_forbid_that_it_is_sent_stale() {
    let windows = "stale-while-revalidate=60, stale-if-error=60";
    for forbidding in ["max-age=60, must-revalidate", "max-age=60, proxy-revalidate", "s-maxage=60"] {
        let stored = format!("cache-control: {forbidding}, {windows}\netag: \"a\"");
        assert_eq!(reuse(&stored, "", 59), Reuse::Fresh, "{forbidding}");
        for request in ["", "cache-control: max-stale", "cache-control: stale-if-error=99"] {
            assert_eq!(reuse(&stored, request, 61), validate(), "{forbidding}: {request}");
        }
    }
}

#[test]
fn an_origin_that_is_away_may_be_stood_in_for_if_the_operator_says_for_how_long() {
    let policy = Policy { stale_if_unreachable: Some(Duration::from_secs(100)), ..Policy::default() };
    let stored = "cache-control: max-age=60\netag: \"a\"";
    let unreachable = Some(Duration::from_secs(90));
    let expected = Reuse::Validate { on_failure: OnFailure { error: None, unreachable } };
    assert_eq!(reuse_with(stored, "", 70, &policy), expected);
    assert_eq!(reuse_with(stored, "", 160, &policy), validate());
    assert_eq!(reuse_with("cache-control: max-age=60, must-revalidate\netag: \"a\"", "", 70, &policy), validate());
}

#[test]
fn an_error_does_not_replace_a_response_that_may_still_be_sent() {
    let withstands = |stored: &str, status: u16, answer: u16, seconds: u64| {
        let status = StatusCode::from_u16(status).unwrap();
        let terms = judge_with("", status.as_u16(), stored, &Policy::default()).unwrap().terms;
        let answer = StatusCode::from_u16(answer).unwrap();
        reuse::withstands(&terms, status, answer, at(seconds), &Policy::default())
    };
    let plain = "cache-control: max-age=60";
    let windows = "cache-control: max-age=60, stale-while-revalidate=30, stale-if-error=60";
    for (stored, status, answer, seconds, expected) in [
        (plain, 200, 404, 59, true),
        (plain, 200, 503, 59, true),
        (plain, 301, 500, 59, true),
        (plain, 200, 404, 60, false),
        (plain, 200, 200, 0, false),
        (plain, 200, 302, 0, false),
        (plain, 404, 503, 0, false),
        (windows, 200, 404, 89, true),
        (windows, 200, 404, 91, false),
        (windows, 200, 503, 91, true),
        (windows, 200, 503, 121, false),
        ("cache-control: no-cache, max-age=60\netag: \"a\"", 200, 404, 0, false),
    ] {
        assert_eq!(withstands(stored, status, answer, seconds), expected, "{stored} {status} {answer} {seconds}");
    }
}

#[test]
fn a_stored_answer_to_get_answers_get_and_head() {
    assert!(reuse::is_answerable(&Method::GET) && reuse::is_answerable(&Method::HEAD));
    assert!(!reuse::is_answerable(&Method::POST) && !reuse::is_answerable(&Method::DELETE));
}

#[test]
fn errors_of_the_origin_are_those_that_another_try_could_mend() {
    for (status, expected) in
        [(500, true), (502, true), (503, true), (504, true), (501, false), (404, false), (200, false)]
    {
        assert_eq!(reuse::is_failure(StatusCode::from_u16(status).unwrap()), expected, "{status}");
    }
}

#[test]
fn a_response_that_expired_before_its_date_is_stale_since_then() {
    let stored = "date: Sun, 06 Nov 1994 08:49:37 GMT\nexpires: Sun, 06 Nov 1994 08:49:07 GMT\netag: \"a\"";
    assert_eq!(reuse(stored, "cache-control: max-stale=35", 5), Reuse::StaleAllowed);
    assert_eq!(reuse(stored, "cache-control: max-stale=34", 5), validate());
    let no_date = "expires: 0\netag: \"a\"";
    assert_eq!(reuse(no_date, "cache-control: max-stale=5", 5), Reuse::StaleAllowed);
}
