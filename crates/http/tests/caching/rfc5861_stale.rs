//! RFC 5861: an origin permits stale responses for a while: during a revalidation, or if it fails.

use std::time::Duration;

use eyewall_http::policy::Policy;
use eyewall_http::reuse::Reuse;

use crate::support::{reuse, reuse_with, validate, validate_or_stale_for};

#[test]
fn a_stale_answer_is_sent_for_a_while_and_validated_meanwhile() {
    let stored = "cache-control: max-age=60, stale-while-revalidate=30\netag: \"a\"";
    for (request, seconds, expected) in [
        ("", 59, Reuse::Fresh),
        ("", 60, Reuse::StaleWhileRevalidate),
        ("", 90, Reuse::StaleWhileRevalidate),
        ("", 91, validate()),
        ("cache-control: no-cache", 70, validate()),
        ("cache-control: max-age=99", 70, validate()),
        ("cache-control: min-fresh=1", 70, validate()),
        ("cache-control: max-stale=5", 70, validate()),
        ("cache-control: max-stale=10", 70, Reuse::StaleWhileRevalidate),
        ("cache-control: max-stale", 99, Reuse::StaleAllowed),
    ] {
        assert_eq!(reuse(stored, request, seconds), expected, "{request} at {seconds}");
    }
}

#[test]
fn a_failure_may_be_answered_by_a_stale_one_by_the_word_of_either_side() {
    let stored = "cache-control: max-age=60, stale-if-error=30";
    for (request, seconds, expected) in [
        ("", 60, validate_or_stale_for(30)),
        ("", 89, validate_or_stale_for(1)),
        ("", 90, Reuse::MustNotUse),
        ("cache-control: stale-if-error=50", 90, validate_or_stale_for(20)),
        ("cache-control: stale-if-error=5", 70, validate_or_stale_for(20)),
        ("cache-control: max-age=0", 10, validate_or_stale_for(80)),
        ("cache-control: no-cache", 70, Reuse::MustNotUse),
    ] {
        assert_eq!(reuse(stored, request, seconds), expected, "{request} at {seconds}");
    }
    let plain = "cache-control: max-age=60\netag: \"a\"";
    assert_eq!(reuse(plain, "cache-control: stale-if-error=50", 70), validate_or_stale_for(40));
}

#[test]
fn a_window_that_is_no_number_is_none_and_of_several_the_smallest_counts() {
    for window in ["soon", "-5", "1.5", "", "\"x\""] {
        let stored = format!("etag: \"a\"\ncache-control: max-age=60, stale-while-revalidate={window}");
        assert_eq!(reuse(&stored, "", 61), validate(), "{window}");
    }
    let several = "etag: \"a\"\ncache-control: max-age=60, stale-while-revalidate=9, stale-while-revalidate=3";
    assert_eq!(reuse(several, "", 63), Reuse::StaleWhileRevalidate);
    assert_eq!(reuse(several, "", 64), validate());
}

#[test]
fn an_operator_may_give_windows_to_responses_that_name_none() {
    let policy = Policy {
        stale_while_revalidate: Some(Duration::from_secs(10)),
        stale_if_error: Some(Duration::from_secs(30)),
        ..Policy::default()
    };
    let plain = "cache-control: max-age=60\netag: \"a\"";
    assert_eq!(reuse_with(plain, "", 70, &policy), Reuse::StaleWhileRevalidate);
    assert_eq!(reuse_with(plain, "", 71, &policy), validate_or_stale_for(19));
    let none = "cache-control: max-age=60, stale-while-revalidate=0, stale-if-error=0\netag: \"a\"";
    assert_eq!(reuse_with(none, "", 61, &policy), validate());
    let forbidden = "cache-control: max-age=60, must-revalidate\netag: \"a\"";
    assert_eq!(reuse_with(forbidden, "", 61, &policy), validate());
}

#[test]
fn an_operator_may_let_windows_count_beside_s_maxage() {
    let policy = Policy { s_maxage_forbids_stale: false, ..Policy::default() };
    let stored = "cache-control: s-maxage=60, stale-while-revalidate=10\netag: \"a\"";
    assert_eq!(reuse(stored, "", 61), validate());
    assert_eq!(reuse_with(stored, "", 61, &policy), Reuse::StaleWhileRevalidate);
    let plain = "cache-control: s-maxage=60\netag: \"a\"";
    assert_eq!(reuse_with(plain, "cache-control: max-stale", 61, &policy), validate());
}
