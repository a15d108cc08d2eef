//! Validation of stored responses.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::body::Body;
use http::{Method, Response, StatusCode};

use crate::support::{Site, respond, site, volume};

fn not_modified(fields: &[(&'static str, &str)]) -> Response<Body> {
    let mut response = respond(fields, "");
    *response.status_mut() = StatusCode::NOT_MODIFIED;
    response
}

#[tokio::test]
async fn a_validated_response_is_fresh_again_with_newer_fields() {
    let site = site(|parts, _| match parts.headers.get("if-none-match") {
        Some(tag) if tag == "\"a\"" => {
            not_modified(&[("etag", "\"a\""), ("cache-control", "max-age=90"), ("x-own", "2")])
        }
        _ => respond(&[("etag", "\"a\""), ("cache-control", "max-age=60"), ("x-own", "1")], "body"),
    });
    site.get("/").await;
    site.clock.advance(60);
    let second = site.get("/").await;
    assert_eq!((second.status, second.text(), second.field("x-own")), (StatusCode::OK, "body", "2"));
    assert_eq!(second.told(), "Eyewall; fwd=stale; fwd-status=304; ttl=90");
    site.clock.advance(89);
    let third = site.get("/").await;
    assert_eq!((third.text(), third.told(), third.field("x-own")), ("body", "Eyewall; hit; ttl=1", "2"));
    assert_eq!(site.count(), 2);
}

#[tokio::test]
async fn a_changed_response_replaces_the_stored_one() {
    let site = site(|parts, _| {
        let body = if parts.headers.contains_key("if-modified-since") { "new" } else { "old" };
        respond(&[("last-modified", "Mon, 21 Sep 2020 00:00:00 GMT"), ("cache-control", "max-age=60")], body)
    });
    site.get("/").await;
    site.clock.advance(60);
    assert_eq!(site.get("/").await.text(), "new");
    assert_eq!((site.get("/").await.text(), site.count()), ("new", 2));
}

#[tokio::test]
async fn a_clients_validator_is_not_sent_to_the_service() {
    let site = site(|parts, _| {
        assert!(!parts.headers.contains_key("if-none-match"), "others may have nothing");
        respond(&[("etag", "\"a\""), ("cache-control", "max-age=60")], "body")
    });
    let reply = site.get_with("/", &[("if-none-match", "\"a\"")]).await;
    assert_eq!((reply.status, reply.body.len(), reply.field("etag")), (StatusCode::NOT_MODIFIED, 0, "\"a\""));
    assert_eq!(site.get("/").await.text(), "body");
    assert_eq!(site.count(), 1);
}

#[tokio::test]
async fn a_304_for_another_validator_is_retried_without_condition() {
    let site = site(|parts, _| match parts.headers.get("if-none-match") {
        Some(_) => not_modified(&[("etag", "\"other\"")]),
        None => respond(&[("etag", "\"a\""), ("cache-control", "max-age=60")], "body"),
    });
    site.get("/").await;
    site.clock.advance(60);
    assert_eq!((site.get("/").await.text(), site.count()), ("body", 3));
}

#[tokio::test]
async fn a_response_that_becomes_private_is_removed() {
    let is_private = Arc::new(AtomicBool::new(false));
    let switch = Arc::clone(&is_private);
    let site = site(move |parts, _| {
        let control = if switch.load(Ordering::SeqCst) { "private" } else { "max-age=60" };
        let fields = [("etag", "\"a\""), ("cache-control", control)];
        if parts.headers.contains_key("if-none-match") { not_modified(&fields) } else { respond(&fields, "body") }
    });
    site.get("/").await;
    site.clock.advance(60);
    is_private.store(true, Ordering::SeqCst);
    assert_eq!(site.get("/").await.text(), "body");
    let third = site.get("/").await;
    assert_eq!(third.told(), "Eyewall; fwd=uri-miss; fwd-status=200; detail=private");
}

#[tokio::test]
async fn an_answer_to_a_head_updates_the_stored_response() {
    let tag = Arc::new(AtomicBool::new(false));
    let switch = Arc::clone(&tag);
    let site = site(move |_, _| {
        let tag = if switch.load(Ordering::SeqCst) { "\"b\"" } else { "\"a\"" };
        respond(&[("etag", tag), ("cache-control", "max-age=60"), ("content-length", "4")], "body")
    });
    let reload = [("cache-control", "no-cache")];
    site.get("/").await;
    site.clock.advance(50);
    site.ask(Method::HEAD, "/", &reload).await;
    site.clock.advance(50);
    assert!(site.get("/").await.is_hit(), "it was the same, and is fresh again");
    tag.store(true, Ordering::SeqCst);
    site.ask(Method::HEAD, "/", &reload).await;
    assert_eq!(site.get("/").await.told(), "Eyewall; fwd=uri-miss; fwd-status=200; stored; ttl=60");
}

#[tokio::test]
async fn an_error_of_the_service_is_the_answer_if_no_stale_response_may_be_sent() {
    let fails = Arc::new(AtomicBool::new(false));
    let switch = Arc::clone(&fails);
    let site = Site::over(
        volume(),
        |layer| layer,
        move |_, _| {
            let fails = switch.load(Ordering::SeqCst);
            async move {
                if fails {
                    return Err(io::Error::other("no database"));
                }
                Ok(respond(&[("etag", "\"a\""), ("cache-control", "max-age=60, must-revalidate")], "body"))
            }
        },
    );
    site.get("/").await;
    site.clock.advance(60);
    fails.store(true, Ordering::SeqCst);
    let request = crate::support::request(Method::GET, "/", &[], Body::empty());
    assert_eq!(site.start(request).await.unwrap_err().to_string(), "no database");
    fails.store(false, Ordering::SeqCst);
    assert_eq!(site.get("/").await.text(), "body");
}
