//! RFC 10008: a cache treats QUERY like GET, except that the content is part of the key.

#![cfg(test)]

mod fields;

use std::time::SystemTime;

use eyewall_http::message::{Exchange, Request, Response};
use eyewall_http::policy::Policy;
use eyewall_http::precondition::{self, Outcome, Representation, Role};
use eyewall_http::storing::{self, NotStored};
use eyewall_http::{invalidation, query, reuse};
use fields::fields;
use http::{Method, StatusCode};

#[test]
fn its_answers_are_stored_as_those_of_get_are() {
    let now = SystemTime::now();
    let exchange = Exchange { requested: now, received: now };
    for (response, expected) in [
        (&[("cache-control", "max-age=9")][..], Ok(())),
        (&[("etag", "\"a\"")], Ok(())),
        (&[("cache-control", "no-store")], Err(NotStored::NoStore)),
        (&[], Err(NotStored::NoLifetime)),
    ] {
        let response = fields(response);
        let judged = |method| {
            let request = Request { method, fields: &fields(&[("content-type", "text/plain")]) };
            let response = Response { status: StatusCode::OK, fields: &response };
            storing::judge(request, response, exchange, &Policy::default())
        };
        assert_eq!(judged(&Method::QUERY).map(drop), expected, "{response:?}");
        assert_eq!(judged(&Method::QUERY), judged(&Method::GET));
    }
    assert!(!reuse::is_answerable(&Method::QUERY), "not out of what a GET has stored");
}

#[test]
fn it_is_conditional_as_get_is_and_has_no_ranges() {
    let current = fields(&[("etag", "\"a\""), ("last-modified", "Sun, 06 Nov 1994 08:49:37 GMT")]);
    let current = Representation { status: StatusCode::OK, fields: &current, received: SystemTime::now() };
    for (request, expected) in [
        ([("if-none-match", "\"a\"")], Outcome::NotModified),
        ([("if-none-match", "\"b\"")], Outcome::Proceed),
        ([("if-modified-since", "Sun, 06 Nov 1994 08:49:37 GMT")], Outcome::NotModified),
        ([("range", "bytes=0-1")], Outcome::Proceed),
    ] {
        let outcome = precondition::evaluate(Role::Cache, &Method::QUERY, &fields(&request), Some(&current));
        assert_eq!(outcome, expected, "{request:?}");
    }
}

#[test]
fn it_changes_nothing() {
    let target = "http://a.example/b".parse().unwrap();
    let answer = fields(&[("location", "/c"), ("content-location", "/d")]);
    assert!(invalidation::invalidated(&Method::QUERY, &target, StatusCode::OK, &answer).is_empty());
}

#[test]
fn requests_differ_by_content_and_its_metadata() {
    let identity = |lines: &[(&str, &str)], content: &str| {
        let mut bytes = Vec::new();
        query::identify(&fields(lines), content.as_bytes(), |piece| bytes.extend_from_slice(piece));
        bytes
    };
    let different = [
        identity(&[], ""),
        identity(&[], "a"),
        identity(&[("content-type", "a")], ""),
        identity(&[("content-type", "")], "a"),
        identity(&[("content-encoding", "a")], ""),
        identity(&[("content-language", "a")], ""),
        identity(&[("content-location", "a")], ""),
        identity(&[("content-type", "a"), ("content-type", "a")], ""),
        identity(&[("content-type", "a"), ("content-encoding", "a")], ""),
        identity(&[("content-type", "A")], ""),
        identity(&[("content-type", "a, a")], ""),
    ];
    for (number, one) in different.iter().enumerate() {
        assert!(!different[..number].contains(one), "number {number}");
    }
    assert_eq!(identity(&[("accept", "text/html")], "a"), identity(&[], "a"), "that is for Vary");
}
