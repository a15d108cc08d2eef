//! Failures that are remembered on request.

use std::io;
use std::time::Duration;

use axum::body::Body;
use eyewall::Purge;
use http::{Method, StatusCode};

use crate::support::{Site, request, respond, volume};

/// A site that fails: by an error, or by a status with this body.
fn failing(is_remembered: bool, status: Option<StatusCode>, body: &'static str) -> Site {
    Site::over(
        volume(),
        |layer| if is_remembered { layer.remember_failures(Duration::from_mins(1)) } else { layer },
        move |_, _| async move {
            let Some(status) = status else { return Err(io::Error::other("no database")) };
            let mut response = respond(&[], body);
            *response.status_mut() = status;
            Ok(response)
        },
    )
}

#[tokio::test]
async fn an_error_of_the_service_is_a_502_for_a_while() {
    let site = failing(true, None, "");
    let asked = || request(Method::GET, "/", &[], Body::empty());
    assert_eq!(site.start(asked()).await.unwrap_err().to_string(), "no database");
    let remembered = site.get("/").await;
    assert_eq!((remembered.status, site.count()), (StatusCode::BAD_GATEWAY, 1));
    assert!(remembered.told().starts_with("Eyewall; hit; ttl=") && remembered.told().ends_with("; detail=negative"));
    assert_eq!(remembered.field("cache-control"), "no-store");
    let own = request(Method::GET, "/", &[("cache-control", "no-cache")], Body::empty());
    assert!(site.start(own).await.is_err(), "a request with no-cache gets an answer of its own");
    site.layer.purger().address("http://example.org/", Purge::Hard).await.unwrap();
    assert!(site.start(asked()).await.is_err(), "it is forgotten");
}

#[tokio::test]
async fn a_status_is_remembered_alone_if_the_response_has_no_body() {
    for status in [StatusCode::NOT_FOUND, StatusCode::GONE, StatusCode::SERVICE_UNAVAILABLE] {
        let site = failing(true, Some(status), "");
        let first = site.get("/").await;
        assert_eq!((first.status, first.text()), (status, ""));
        assert!(first.told().ends_with("; stored; ttl=60"), "{}", first.told());
        let second = site.get("/").await;
        assert_eq!((second.status, site.count()), (status, 1));
        assert!(second.told().ends_with("; detail=negative") && second.text().starts_with(status.as_str()));
    }
}

#[tokio::test]
async fn a_failure_with_a_body_is_stored_with_it() {
    let site = failing(true, Some(StatusCode::NOT_FOUND), "no such page");
    site.get("/").await;
    let second = site.get("/").await;
    assert_eq!((second.status, second.text(), site.count()), (StatusCode::NOT_FOUND, "no such page", 1));
    assert_eq!(second.told(), "Eyewall; hit; ttl=60");
}

#[tokio::test]
async fn failures_are_not_remembered_by_default() {
    for status in [None, Some(StatusCode::NOT_FOUND)] {
        let site = failing(false, status, "");
        for number in 1..=2 {
            let answered = site.start(request(Method::GET, "/", &[], Body::empty())).await;
            assert_eq!((answered.is_err(), site.count()), (status.is_none(), number));
        }
    }
}
