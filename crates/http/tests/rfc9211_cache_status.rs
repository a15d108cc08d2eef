//! RFC 9211: each cache reports what it did with a request.
#![cfg(test)]

mod fields;

use eyewall_http::field::cache_status::{CacheStatus, Forward};
use fields::fields;
use http::StatusCode;
use proptest::prelude::*;

#[test]
fn a_member_reports_what_happened() {
    for (status, expected) in [
        (CacheStatus::hit(), "Eyewall; hit"),
        (CacheStatus::hit().ttl(27), "Eyewall; hit; ttl=27"),
        (CacheStatus::hit().ttl(-412), "Eyewall; hit; ttl=-412"),
        (CacheStatus::hit().ttl(i64::MIN), "Eyewall; hit; ttl=-999999999999999"),
        // A hit has forwarded nothing.
        (CacheStatus::hit().forward_status(StatusCode::OK).stored(true).collapsed(true), "Eyewall; hit"),
        (
            CacheStatus::forwarded(Forward::UriMiss)
                .forward_status(StatusCode::OK)
                .stored(true)
                .ttl(30)
                .collapsed(true),
            "Eyewall; fwd=uri-miss; fwd-status=200; stored; ttl=30; collapsed",
        ),
        (
            CacheStatus::forwarded(Forward::Bypass).forward_status(StatusCode::NOT_FOUND).detail("authorization"),
            "Eyewall; fwd=bypass; fwd-status=404; detail=authorization",
        ),
        (
            CacheStatus::forwarded(Forward::Stale).stored(false).detail("origin \"down\""),
            "Eyewall; fwd=stale; detail=\"origin \\\"down\\\"\"",
        ),
        (
            CacheStatus::hit().key(b"https://example.org/a\\b?\"c\"\xff\r\n"),
            "Eyewall; hit; key=\"https://example.org/a\\\\b?\\\"c\\\"%FF%0D%0A\"",
        ),
    ] {
        assert_eq!(status.member("Eyewall"), expected);
    }
    assert_eq!(CacheStatus::hit().member("my cache"), "\"my cache\"; hit");
}

#[test]
fn each_reason_to_forward_has_its_token() {
    for (why, token) in [
        (Forward::Bypass, "bypass"),
        (Forward::Method, "method"),
        (Forward::UriMiss, "uri-miss"),
        (Forward::VaryMiss, "vary-miss"),
        (Forward::Miss, "miss"),
        (Forward::Request, "request"),
        (Forward::Stale, "stale"),
        (Forward::Partial, "partial"),
    ] {
        assert_eq!(CacheStatus::forwarded(why).member("E"), format!("E; fwd={token}"));
    }
}

#[test]
fn a_member_follows_those_of_caches_nearer_to_the_origin() {
    let mut response = fields(&[("cache-status", "OriginCache; hit")]);
    CacheStatus::forwarded(Forward::Miss).append_to(&mut response, "Eyewall");
    assert_eq!(response, fields(&[("cache-status", "OriginCache; hit"), ("cache-status", "Eyewall; fwd=miss")]));
}

proptest! {
    #[test]
    fn whatever_the_key_the_field_can_be_read(key in prop::collection::vec(any::<u8>(), 0..40), detail in ".{0,20}") {
        let member = CacheStatus::hit().key(&key).detail(&detail).member(&detail);
        let read = sfv::Parser::new(&member).parse_list_with_visitor(sfv::visitor::Ignored);
        prop_assert!(read.is_ok(), "{}", member);
    }
}
