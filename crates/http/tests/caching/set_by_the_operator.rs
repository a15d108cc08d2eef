//! An operator knows the origin, and sets what its responses don't name.

use std::time::Duration;

use eyewall_http::field::cache_control::RequestDirectives;
use eyewall_http::freshness::Source;
use eyewall_http::policy::{Heuristic, Policy};
use eyewall_http::reuse::Reuse;
use eyewall_http::storing::NotStored;
use http::HeaderValue;
use http::header::CACHE_CONTROL;

use crate::support::{judge_with, reuse_with};

const MODIFIED: &str = "last-modified: Sat, 05 Nov 1994 08:49:37 GMT";

fn seconds(number: u64) -> Duration {
    Duration::from_secs(number)
}

fn lifetime(status: u16, response: &str, policy: &Policy) -> Option<(u32, Option<Source>)> {
    let stored = judge_with("", status, response, policy).ok()?;
    Some((stored.terms.lifetime_seconds, stored.source))
}

#[test]
fn a_page_that_says_nothing_is_kept_as_long_as_the_operator_says() {
    let policy = Policy { default_ttl: Some(seconds(60)), ..Policy::default() };
    let by_policy = Some((60, Some(Source::Policy)));
    assert_eq!(lifetime(200, "", &policy), by_policy);
    assert_eq!(lifetime(200, MODIFIED, &policy), by_policy);
    assert_eq!(lifetime(404, "", &policy), by_policy);
    assert_eq!(lifetime(500, "", &policy), None);
    assert_eq!(lifetime(200, "cache-control: max-age=9", &policy), Some((9, Some(Source::MaxAge))));
    for against in ["cache-control: no-store", "cache-control: private", "cache-control: no-cache", "set-cookie: a=b"] {
        assert_eq!(lifetime(200, against, &policy), None, "{against}");
    }
}

#[test]
fn guessing_can_be_tuned_and_turned_off() {
    let off = Policy { heuristic: None, ..Policy::default() };
    assert_eq!(lifetime(200, MODIFIED, &off), Some((0, None)));
    let tuned = Heuristic { percent: 50, lifetime_max: Duration::from_hours(1) };
    let tuned = Policy { heuristic: Some(tuned), ..Policy::default() };
    assert_eq!(lifetime(200, MODIFIED, &tuned), Some((3600, Some(Source::Heuristic))));
}

#[test]
fn lifetimes_have_a_least_and_a_most() {
    let policy = Policy { ttl_min: Some(seconds(10)), ttl_max: Some(seconds(20)), ..Policy::default() };
    for (control, expected) in [("max-age=0", 10), ("max-age=15", 15), ("max-age=99", 20)] {
        let found = lifetime(200, &format!("cache-control: {control}"), &policy);
        assert_eq!(found, Some((expected, Some(Source::MaxAge))), "{control}");
    }
    assert_eq!(lifetime(200, "cache-control: max-age=15, no-store", &policy), None);
}

#[test]
fn a_status_can_have_a_lifetime_of_its_own() {
    let policy = Policy { status_ttl: Some(seconds(5)), default_ttl: Some(seconds(60)), ..Policy::default() };
    for status in [404, 410, 500, 503, 402, 200] {
        assert_eq!(lifetime(status, "", &policy).map(|found| found.0), Some(5), "{status}");
    }
    assert_eq!(lifetime(404, "cache-control: max-age=9", &policy), Some((9, Some(Source::MaxAge))));
    let policy = Policy { status_ttl: None, ..policy };
    for (status, expected) in [(404, Some(60)), (501, Some(60)), (500, None), (403, None)] {
        assert_eq!(lifetime(status, "", &policy).map(|found| found.0), expected, "{status}");
    }
}

#[test]
fn a_lifetime_can_be_forced_but_forbidden_storage_can_not() {
    let policy = Policy { force_ttl: Some(seconds(30)), ttl_max: Some(seconds(20)), ..Policy::default() };
    for control in ["max-age=0", "s-maxage=9, max-age=99", "must-revalidate"] {
        let found = lifetime(200, &format!("cache-control: {control}"), &policy);
        assert_eq!(found, Some((20, Some(Source::Policy))), "{control}");
    }
    assert_eq!(lifetime(200, "cache-control: private", &policy), None);
    assert_ne!(reuse_with("cache-control: no-cache\netag: \"a\"", "", 1, &policy), Reuse::Fresh);
}

#[test]
fn clients_can_be_kept_from_reloading() {
    for request in ["no-cache", "max-age=0", "min-fresh=99", "max-age=0, no-store"] {
        let fields = [(CACHE_CONTROL, HeaderValue::from_static(request))].into_iter().collect();
        let directives = RequestDirectives::of(&fields);
        let bare = RequestDirectives { no_store: directives.no_store, ..RequestDirectives::default() };
        assert_eq!(directives.without_reloads(), bare, "{request}");
    }
}

#[test]
fn cookies_are_stored_if_asked_for_or_left_out_if_the_origin_says_so() {
    let cookie = "set-cookie: a=b\ncache-control: max-age=9";
    assert_eq!(judge_with("", 200, cookie, &Policy::default()).unwrap_err(), NotStored::SetCookie);
    let policy = Policy { store_set_cookie: true, ..Policy::default() };
    assert!(judge_with("", 200, cookie, &policy).unwrap().withheld.is_empty());
    for directive in ["no-cache=\"set-cookie\"", "private=\"Set-Cookie\""] {
        let stored = judge_with("", 200, &format!("{cookie}, {directive}"), &Policy::default()).unwrap();
        assert_eq!(stored.withheld, [http::header::SET_COOKIE], "{directive}");
    }
}
