//! Stale responses that are sent because they allow it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::Body;
use http::{Method, StatusCode};
use tokio::sync::Semaphore;

use crate::support::{Site, request, respond, site, volume};

/// A site that answers once, and then fails: 1 by an error, 2 by a status.
fn failing(control: &'static str, kind: usize) -> Site {
    let count = AtomicUsize::new(0);
    Site::over(
        volume(),
        |layer| layer,
        move |_, _| {
            let is_first = count.fetch_add(1, Ordering::SeqCst) == 0;
            async move {
                let mut response = respond(&[("cache-control", control), ("etag", "\"a\"")], "good");
                match (is_first, kind) {
                    (true, _) => {}
                    (false, 1) => return Err(io::Error::other("no database")),
                    (false, _) => {
                        response = respond(&[], "bad");
                        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
                    }
                }
                Ok(response)
            }
        },
    )
}

#[tokio::test]
async fn a_stale_response_is_sent_while_it_is_validated_in_the_background() {
    let (gate, count) = (Arc::new(Semaphore::new(1)), AtomicUsize::new(0));
    let permits = Arc::clone(&gate);
    let site = Site::over(
        volume(),
        |layer| layer,
        move |_, _| {
            let permits = Arc::clone(&permits);
            let number = count.fetch_add(1, Ordering::SeqCst) + 1;
            async move {
                permits.acquire().await.unwrap().forget();
                Ok(respond(&[("cache-control", "max-age=60, stale-while-revalidate=30")], format!("answer {number}")))
            }
        },
    );
    site.get("/").await;
    site.clock.advance(70);
    for _ in 0..3 {
        let stale = site.get("/").await;
        assert_eq!((stale.text(), stale.told()), ("answer 1", "Eyewall; hit; ttl=-10"));
        tokio::task::yield_now().await;
    }
    assert_eq!(site.count(), 2, "one validates for all");
    gate.add_permits(1);
    while site.get("/").await.text() != "answer 2" {
        tokio::task::yield_now().await;
    }
    assert_eq!(site.count(), 2);
    site.clock.advance(91);
    gate.add_permits(1);
    assert_eq!(site.get("/").await.text(), "answer 3", "the window is over");
}

#[tokio::test]
async fn a_stale_response_is_sent_if_the_service_fails() {
    for kind in [1, 2] {
        let site = failing("max-age=60, stale-if-error=30", kind);
        site.get("/").await;
        site.clock.advance(89);
        let stale = site.get("/").await;
        assert_eq!((stale.status, stale.text()), (StatusCode::OK, "good"));
        assert_eq!(stale.told(), "Eyewall; hit; ttl=-29; detail=stale-if-error");
    }
}

#[tokio::test]
async fn a_failure_is_the_answer_if_the_stale_response_does_not_permit_its_use() {
    for control in ["max-age=60", "max-age=60, must-revalidate, stale-if-error=30", "s-maxage=60, stale-if-error=30"] {
        let site = failing(control, 2);
        site.get("/").await;
        site.clock.advance(70);
        assert_eq!(site.get("/").await.status, StatusCode::SERVICE_UNAVAILABLE, "{control}");
        let site = failing(control, 1);
        site.get("/").await;
        site.clock.advance(70);
        assert!(site.start(request(Method::GET, "/", &[], Body::empty())).await.is_err(), "{control}");
    }
}

#[tokio::test]
async fn a_failure_does_not_replace_a_stored_response() {
    let site = failing("max-age=60", 2);
    site.get("/").await;
    site.clock.advance(70);
    assert_eq!(site.get("/").await.text(), "bad");
    assert_eq!(site.get_with("/", &[("cache-control", "max-stale")]).await.text(), "good");
}

/// A page. If a client asks for a failure, an error that is as fresh as the page.
fn failing_on_demand(page: &'static str) -> Site {
    site(move |parts, _| {
        let Some(status) = parts.headers.get("x-fail") else { return respond(&[("cache-control", page)], "page") };
        let mut response = respond(&[("cache-control", "max-age=300")], "error");
        *response.status_mut() = StatusCode::from_bytes(status.as_bytes()).unwrap();
        response
    })
}

#[tokio::test]
async fn an_error_does_not_replace_a_usable_response() {
    for page in ["max-age=300", "max-age=0, stale-while-revalidate=300"] {
        let site = failing_on_demand(page);
        site.get("/").await;
        for (status, why) in [
            ("400", "status"),
            ("414", "status"),
            ("431", "status"),
            ("404", "keeps-stored"),
            ("405", "keeps-stored"),
            ("500", "keeps-stored"),
            ("503", "keeps-stored"),
        ] {
            let reply = site.get_with("/", &[("cache-control", "no-cache"), ("x-fail", status)]).await;
            assert_eq!((reply.status.as_str(), reply.text()), (status, "error"));
            assert!(reply.told().ends_with(&format!("fwd-status={status}; detail={why}")), "{}", reply.told());
            assert_eq!(site.get("/").await.text(), "page", "{status} {page}");
        }
    }
}

#[tokio::test]
async fn an_error_is_stored_in_an_empty_place_unless_it_refuses_one_request() {
    let site = failing_on_demand("max-age=300");
    for (status, text) in [("400", "page"), ("431", "page"), ("404", "error"), ("405", "error"), ("503", "error")] {
        let path = format!("/{status}");
        site.get_with(&path, &[("x-fail", status)]).await;
        assert_eq!(site.get(&path).await.text(), text, "{status}");
    }
}

#[tokio::test]
async fn a_head_gets_the_stored_response_when_the_service_fails() {
    let site = failing("max-age=60, stale-if-error=30", 1);
    site.get("/").await;
    site.clock.advance(89);
    let head = site.ask(Method::HEAD, "/", &[]).await;
    assert_eq!((head.status, head.body.len()), (StatusCode::OK, 0));
    assert_eq!(head.told(), "Eyewall; hit; ttl=-29; detail=stale-if-error");
}
