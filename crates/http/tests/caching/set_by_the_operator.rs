//! An operator knows the origin, and sets what it doesn't say.

use std::time::Duration;

use eyewall_http::freshness::Source;
use eyewall_http::policy::{Heuristic, NegativeTtl, Policy};
use eyewall_http::reuse::Reuse;
use eyewall_http::storing::NotStored;

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
fn errors_have_lifetimes_of_their_own() {
    let negative_ttl = NegativeTtl { absent: Some(seconds(5)), server_error: Some(seconds(1)) };
    let policy = Policy { negative_ttl, default_ttl: Some(seconds(60)), ..Policy::default() };
    for (status, expected) in
        [(404, Some(5)), (410, Some(5)), (500, Some(1)), (503, Some(1)), (501, Some(60)), (403, None), (200, Some(60))]
    {
        assert_eq!(lifetime(status, "", &policy).map(|found| found.0), expected, "{status}");
    }
    assert_eq!(lifetime(404, "cache-control: max-age=9", &policy), Some((9, Some(Source::MaxAge))));
}

#[test]
fn clients_can_be_kept_from_reloading() {
    let policy = Policy { ignore_reloads: true, ..Policy::default() };
    for request in
        ["cache-control: no-cache", "cache-control: max-age=0", "cache-control: min-fresh=99", "pragma: no-cache"]
    {
        assert_eq!(reuse_with("cache-control: max-age=60", request, 10, &policy), Reuse::Fresh, "{request}");
    }
    let no_cache = "cache-control: max-age=60, no-cache\netag: \"a\"";
    assert_ne!(reuse_with(no_cache, "", 10, &policy), Reuse::Fresh);
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
