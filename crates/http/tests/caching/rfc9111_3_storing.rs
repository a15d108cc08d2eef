//! RFC 9111, section 3: whether the cache stores a response of the origin, or why not.

use std::time::Duration;

use eyewall_http::message::{Request, Response};
use eyewall_http::policy::Policy;
use eyewall_http::storing::{self, NotStored};
use eyewall_http::terms::Marks;
use http::{HeaderMap, Method, StatusCode};

use crate::support::{at_once, fields, judge, judge_with, names};

#[test]
fn each_reason_against_storing_has_its_name() {
    for (request, status, response, why) in [
        ("cache-control: no-store", 200, "cache-control: max-age=9", NotStored::RequestNoStore),
        ("", 103, "cache-control: max-age=9", NotStored::Status),
        ("", 304, "cache-control: max-age=9", NotStored::Status),
        ("", 431, "cache-control: max-age=9", NotStored::RefusedRequest),
        ("", 206, "cache-control: max-age=9", NotStored::Partial),
        ("", 206, "content-range: lines 0-4/9\ncache-control: max-age=9", NotStored::Partial),
        ("", 599, "cache-control: max-age=9, must-understand", NotStored::MustUnderstand),
        ("", 599, "cache-control: max-age=9, must-understand, no-store", NotStored::MustUnderstand),
        ("", 200, "cache-control: max-age=9, no-store", NotStored::NoStore),
        ("", 200, "cache-control: max-age=9, private", NotStored::Private),
        ("authorization: Basic eA==", 200, "cache-control: max-age=9", NotStored::Authorization),
        ("", 200, "cache-control: max-age=9\nset-cookie: a=b", NotStored::SetCookie),
        ("", 200, "cache-control: max-age=9\nvary: accept, *", NotStored::Vary),
        ("", 200, "cache-control: max-age=9\nvary: accept language", NotStored::Vary),
        ("", 200, "cache-control: max-age=9, no-cache", NotStored::NoCache),
        ("", 200, "", NotStored::NoLifetime),
        ("", 200, "cache-control: max-age=0", NotStored::Stale),
        ("", 200, "cache-control: max-age=9\nage: 9", NotStored::Stale),
        ("", 201, "etag: \"a\"", NotStored::NoLifetime),
    ] {
        let found = judge_with(request, status, response, &Policy::default());
        assert_eq!(found.map_err(NotStored::as_str), Err(why.as_str()), "{request} / {status} / {response}");
    }
}

#[test]
fn an_explicitly_fresh_response_is_stored_whatever_its_final_status() {
    for status in [200, 203, 204, 299, 301, 302, 303, 307, 404, 405, 410, 451, 499, 500, 501, 502, 503, 504, 599] {
        assert!(judge_with("", status, "cache-control: max-age=9", &Policy::default()).is_ok(), "{status}");
    }
}

#[test]
fn a_status_that_refuses_one_request_is_never_stored() {
    let always = Policy {
        status_ttl: Some(Duration::from_secs(9)),
        force_ttl: Some(Duration::from_secs(9)),
        ..Policy::default()
    };
    for status in [400, 401, 403, 406, 407, 408, 411, 412, 413, 414, 416, 417, 421, 425, 426, 428, 429, 431, 511] {
        for response in
            ["", "cache-control: public, max-age=9, s-maxage=9", "cache-control: max-age=9, must-understand"]
        {
            let found = judge_with("", status, response, &always);
            assert_eq!(found.unwrap_err(), NotStored::RefusedRequest, "{status} {response}");
        }
    }
    assert!(NotStored::RefusedRequest.is_of_request() && !NotStored::NoStore.is_of_request());
}

#[test]
fn only_answers_to_get_and_query_are_stored() {
    for method in [Method::HEAD, Method::POST, Method::PUT, Method::OPTIONS, Method::from_bytes(b"REPORT").unwrap()] {
        let request = Request { method: &method, fields: &HeaderMap::new() };
        let response = Response { status: StatusCode::OK, fields: &fields("cache-control: max-age=9") };
        let found = storing::judge(request, response, at_once(), &Policy::default());
        assert_eq!(found.unwrap_err(), NotStored::Method, "{method}");
    }
}

#[test]
fn a_cache_that_knows_the_status_does_not_heed_no_store_beside_must_understand() {
    assert!(judge("cache-control: max-age=9, no-store, must-understand").is_ok());
}

#[test]
fn an_answer_to_a_named_user_is_stored_if_the_origin_says_that_others_may_have_it() {
    for (directives, is_stored) in [
        ("max-age=9", false),
        ("max-age=9, public", true),
        ("max-age=9, must-revalidate", true),
        ("s-maxage=9", true),
        ("max-age=9, proxy-revalidate", false),
        ("max-age=9, immutable", false),
    ] {
        let response = format!("cache-control: {directives}");
        let found = judge_with("authorization: Basic eA==", 200, &response, &Policy::default());
        assert_eq!(found.is_ok(), is_stored, "{directives}");
    }
}

#[test]
fn a_stale_response_with_a_validator_is_stored() {
    for validator in ["etag: \"a\"", "etag: W/\"a\"", "last-modified: Sun, 06 Nov 1994 08:49:37 GMT"] {
        for directives in ["max-age=0", "no-cache", "no-cache, max-age=9", "x=y"] {
            let stored = judge(&format!("{validator}\ncache-control: {directives}")).unwrap();
            assert!(stored.terms.marks.contains(Marks::HAS_VALIDATOR));
        }
    }
    assert_eq!(judge("last-modified: yesterday").unwrap_err(), NotStored::NoLifetime);
}

#[test]
fn fields_of_the_connection_and_those_that_private_and_no_cache_name_are_not_stored() {
    let stored = judge(
        "connection: close, X-Hop
         x-hop: 1
         keep-alive: timeout=5
         proxy-authenticate: Basic
         transfer-encoding: chunked
         x-user: me
         x-once: 1
         x-kept: 1
         set-cookie: a=b
         cache-control: max-age=9, private=\"x-user, x-absent\", no-cache=\"set-cookie,X-Once\"",
    )
    .unwrap();
    assert_eq!(
        stored.withheld,
        names(&[
            "connection",
            "keep-alive",
            "proxy-authenticate",
            "set-cookie",
            "transfer-encoding",
            "x-hop",
            "x-once",
            "x-user",
        ])
    );
    assert!(!stored.terms.marks.contains(Marks::NO_CACHE));
}

#[test]
fn a_response_that_is_worth_nothing_without_the_fields_named_is_treated_as_a_whole() {
    assert_eq!(judge("cache-control: max-age=9, private=\"content-encoding\"").unwrap_err(), NotStored::Private);
    assert_eq!(judge("cache-control: max-age=9, private=\"vary\"").unwrap_err(), NotStored::Private);
    assert_eq!(judge("cache-control: max-age=9, no-cache=\"etag\"").unwrap_err(), NotStored::NoCache);
}

#[test]
fn a_partial_response_with_a_content_range_is_stored_as_a_part() {
    let stored =
        judge_with("", 206, "content-range: bytes 0-4/9\ncache-control: max-age=9", &Policy::default()).unwrap();
    assert!(stored.terms.marks.contains(Marks::PARTIAL));
    let several =
        "content-range: bytes 0-4/9\ncontent-type: multipart/byteranges; boundary=x\ncache-control: max-age=9";
    assert_eq!(judge_with("", 206, several, &Policy::default()).unwrap_err(), NotStored::Partial);
}

#[test]
fn the_answer_to_a_post_is_that_to_a_get_if_the_origin_says_so_and_for_how_long() {
    let target: http::Uri = "http://example.org/form?a".parse().unwrap();
    let policy = Policy { default_ttl: Some(std::time::Duration::from_secs(9)), ..Policy::default() };
    let is_answer = |status, lines: &str| {
        let fields = fields(lines);
        storing::is_answer_to_get(&target, Response { status, fields: &fields }, at_once().received, &policy)
    };
    for (location, is_so) in [
        ("content-location: /form?a", true),
        ("content-location: http://example.org:80/form?a", true),
        ("content-location: http://example.org/form?a", true),
        ("content-location: /form", false),
        ("content-location: http://example.com/form?a", false),
        ("content-location: /form?a\ncontent-location: /form?a", false),
        ("etag: \"a\"", false),
    ] {
        let lines = format!("cache-control: max-age=9\n{location}");
        assert_eq!(is_answer(StatusCode::OK, &lines), is_so, "{location}");
        assert!(!is_answer(StatusCode::NOT_FOUND, &lines));
    }
    for (lifetime, is_so) in [
        ("cache-control: s-maxage=9", true),
        ("expires: Sat, 06 Nov 2094 08:49:37 GMT", true),
        ("cdn-cache-control: max-age=9", true),
        ("cache-control: public", false),
        ("last-modified: Sun, 06 Nov 1994 08:49:37 GMT", false),
    ] {
        assert_eq!(is_answer(StatusCode::OK, &format!("content-location: /form?a\n{lifetime}")), is_so, "{lifetime}");
    }
}
