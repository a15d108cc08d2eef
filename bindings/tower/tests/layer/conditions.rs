//! Conditions of clients: they have a response already, or expect a state.

use http::{Method, StatusCode};

use crate::support::{counting, respond, site};

#[tokio::test]
async fn a_client_with_the_stored_response_gets_a_304() {
    let site = counting(&[
        ("cache-control", "max-age=60"),
        ("etag", "\"a\""),
        ("last-modified", "Mon, 21 Sep 2020 00:00:00 GMT"),
        ("content-type", "text/plain"),
    ]);
    site.get("/").await;
    for fields in [("if-none-match", "\"b\", W/\"a\""), ("if-modified-since", "Mon, 21 Sep 2020 00:00:00 GMT")] {
        for method in [Method::GET, Method::HEAD] {
            let reply = site.ask(method, "/", &[fields]).await;
            assert_eq!((reply.status, reply.body.len(), reply.field("etag")), (StatusCode::NOT_MODIFIED, 0, "\"a\""));
            assert_eq!(reply.field("content-type"), "");
        }
    }
    assert_eq!(site.get_with("/", &[("if-none-match", "\"b\"")]).await.text(), "answer 1");
    assert_eq!(site.count(), 1);
}

#[tokio::test]
async fn a_response_without_last_modified_is_compared_by_its_date() {
    let date = "Mon, 21 Sep 2026 12:00:00 GMT";
    let site = counting(&[("cache-control", "max-age=3000000000"), ("date", "Mon, 21 Sep 2026 12:00:00 GMT")]);
    site.get("/").await;
    assert_eq!(site.get_with("/", &[("if-modified-since", date)]).await.status, StatusCode::NOT_MODIFIED);
    let earlier = ("if-modified-since", "Mon, 21 Sep 2026 11:59:59 GMT");
    assert_eq!(site.get_with("/", &[earlier]).await.text(), "answer 1");
    assert_eq!(site.count(), 1);
}

#[tokio::test]
async fn a_client_with_a_false_precondition_gets_a_412() {
    let site = counting(&[("cache-control", "max-age=60"), ("etag", "\"a\"")]);
    for _ in 0..2 {
        let reply = site.get_with("/", &[("if-match", "\"b\"")]).await;
        assert_eq!(reply.status, StatusCode::PRECONDITION_FAILED);
    }
    assert_eq!(site.get_with("/", &[("if-match", "\"a\"")]).await.text(), "answer 1");
    assert_eq!(site.count(), 1);
}

#[tokio::test]
async fn an_unstorable_response_is_asked_for_with_the_clients_own_conditions() {
    let site = site(|parts, _| {
        let mut response = respond(&[("cache-control", "private"), ("etag", "\"a\"")], "own");
        if parts.headers.contains_key("if-none-match") {
            *response.body_mut() = axum::body::Body::empty();
            *response.status_mut() = StatusCode::NOT_MODIFIED;
        }
        response
    });
    assert_eq!(site.get("/").await.text(), "own");
    let reply = site.get_with("/", &[("if-none-match", "\"a\"")]).await;
    assert_eq!(reply.status, StatusCode::NOT_MODIFIED);
    assert!(site.asked()[1].headers.contains_key("if-none-match"), "the service needn't make what the client has");
}

#[tokio::test]
async fn a_204_and_a_304_tell_no_length_though_the_service_does() {
    for (status, control) in [
        (StatusCode::NO_CONTENT, "no-store"),
        (StatusCode::NO_CONTENT, "max-age=60"),
        (StatusCode::NOT_MODIFIED, "private"),
        (StatusCode::OK, "no-store"),
    ] {
        let site = site(move |_, _| {
            let text = if status == StatusCode::OK { "12345" } else { "" };
            let mut response = respond(&[("cache-control", control), ("content-length", "5")], text);
            *response.status_mut() = status;
            response
        });
        let length = if status == StatusCode::OK { "5" } else { "" };
        // The second GET is answered from the cache if the first was stored. A POST always bypasses the cache.
        for method in [Method::GET, Method::GET, Method::HEAD, Method::POST] {
            let reply = site.ask(method.clone(), "/", &[("if-none-match", "\"a\"")]).await;
            assert_eq!((reply.status, reply.field("content-length")), (status, length), "{method} {control}");
        }
    }
}
