//! RFC 9111, sections 5.2.1 and 5.4: a client requires a younger response, or accepts an older one.

use eyewall_http::field::cache_control::RequestDirectives;
use eyewall_http::field::seconds::SECONDS_MAX;
use eyewall_http::reuse::{self, Reuse};

use crate::support::{fields, reuse, validate};

const STORED: &str = "cache-control: max-age=60\netag: \"a\"";

#[test]
fn a_fresh_answer_must_be_as_young_and_as_fresh_as_the_client_wants() {
    for (directives, seconds, expected) in [
        ("no-cache", 10, validate()),
        ("max-age=0", 10, validate()),
        ("max-age=9", 10, validate()),
        ("max-age=10", 10, Reuse::Fresh),
        ("max-age=soon", 10, validate()),
        ("max-age=99, max-age=5", 10, validate()),
        ("min-fresh=50", 10, Reuse::Fresh),
        ("min-fresh=51", 10, validate()),
        ("min-fresh=5, min-fresh=51", 10, validate()),
        ("min-fresh=soon", 10, Reuse::Fresh),
        ("no-store", 10, Reuse::Fresh),
        ("no-transform", 10, Reuse::Fresh),
        ("x-other=1", 10, Reuse::Fresh),
    ] {
        assert_eq!(reuse(STORED, &format!("cache-control: {directives}"), seconds), expected, "{directives}");
    }
}

#[test]
fn a_stale_answer_is_sent_if_the_client_takes_it() {
    for (directives, seconds, expected) in [
        ("max-stale", 99_999, Reuse::StaleAllowed),
        ("max-stale=30", 90, Reuse::StaleAllowed),
        ("max-stale=29", 90, validate()),
        ("max-stale=soon", 61, validate()),
        ("max-stale=0", 60, validate()),
        ("max-stale, max-stale=5", 90, validate()),
        ("max-stale=30, max-age=90", 90, Reuse::StaleAllowed),
        ("max-stale=30, max-age=89", 90, validate()),
        ("max-stale, no-cache", 90, validate()),
        ("max-stale, min-fresh=1", 90, validate()),
        ("max-age=99", 90, validate()),
    ] {
        assert_eq!(reuse(STORED, &format!("cache-control: {directives}"), seconds), expected, "{directives}");
    }
}

#[test]
fn an_only_if_cached_request_gets_the_stored_response_or_504() {
    let only = "cache-control: only-if-cached";
    assert_eq!(reuse(STORED, only, 10), Reuse::Fresh);
    assert_eq!(reuse(STORED, only, 60), Reuse::GatewayTimeout);
    assert_eq!(reuse(STORED, "cache-control: only-if-cached, max-stale", 60), Reuse::StaleAllowed);
    assert_eq!(reuse(STORED, "cache-control: only-if-cached, no-cache", 10), Reuse::GatewayTimeout);
    assert!(reuse::is_timeout_without_stored(&RequestDirectives::of(&fields(only))));
    assert!(!reuse::is_timeout_without_stored(&RequestDirectives::default()));
}

#[test]
fn pragma_counts_where_there_is_no_cache_control() {
    for (request, expected) in [
        ("pragma: no-cache", validate()),
        ("pragma: x, No-Cache", validate()),
        ("pragma: x", Reuse::Fresh),
        ("pragma: no-cache\ncache-control: max-age=99", Reuse::Fresh),
        ("pragma: no-cache\ncache-control:", Reuse::Fresh),
    ] {
        assert_eq!(reuse(STORED, request, 10), expected, "{request}");
    }
}

#[test]
fn max_stale_without_a_time_is_any_time() {
    let directives = RequestDirectives::of(&fields("cache-control: max-stale"));
    assert_eq!(directives.max_stale, Some(SECONDS_MAX));
}
