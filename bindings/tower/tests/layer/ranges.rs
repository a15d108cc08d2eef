//! Ranges of stored responses, and of others.

use http::StatusCode;

use crate::support::{Site, respond, site};

fn letters() -> Site {
    site(|_, _| respond(&[("cache-control", "max-age=60"), ("etag", "\"a\"")], "abcdefghij"))
}

#[tokio::test]
async fn a_range_of_a_stored_response_comes_from_the_volume() {
    let site = letters();
    site.get("/").await;
    let part = site.get_with("/", &[("range", "bytes=2-4")]).await;
    assert_eq!((part.status, part.text()), (StatusCode::PARTIAL_CONTENT, "cde"));
    assert_eq!((part.field("content-range"), part.field("content-length")), ("bytes 2-4/10", "3"));
    assert_eq!(site.get_with("/", &[("range", "bytes=-2")]).await.text(), "ij");
    assert_eq!(site.count(), 1);
}

#[tokio::test]
async fn several_ranges_are_parts_of_one_body() {
    let site = letters();
    site.get("/").await;
    let parts = site.get_with("/", &[("range", "bytes=0-0, 9-")]).await;
    assert_eq!(parts.status, StatusCode::PARTIAL_CONTENT);
    assert!(parts.field("content-type").starts_with("multipart/byteranges; boundary="));
    assert!(parts.text().contains("bytes 0-0/10\r\n\r\na\r\n") && parts.text().contains("bytes 9-9/10\r\n\r\nj\r\n"));
    assert_eq!(parts.field("content-length"), parts.body.len().to_string());
}

#[tokio::test]
async fn a_range_beyond_the_end_is_refused_and_one_of_another_version_is_ignored() {
    let site = letters();
    site.get("/").await;
    let beyond = site.get_with("/", &[("range", "bytes=10-")]).await;
    assert_eq!((beyond.status, beyond.field("content-range")), (StatusCode::RANGE_NOT_SATISFIABLE, "bytes */10"));
    let other = site.get_with("/", &[("range", "bytes=0-1"), ("if-range", "\"b\"")]).await;
    assert_eq!((other.status, other.text()), (StatusCode::OK, "abcdefghij"));
    assert_eq!(site.get_with("/", &[("range", "bytes=0-1"), ("if-range", "\"a\"")]).await.text(), "ab");
}

#[tokio::test]
async fn the_service_makes_a_range_of_a_response_that_is_not_stored() {
    let site = site(|parts, _| {
        let mut response = respond(&[("cache-control", "max-age=60"), ("content-range", "bytes 0-1/10")], "ab");
        assert!(parts.headers.contains_key("range") && parts.headers.contains_key("if-range"));
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
        response
    });
    for _ in 0..2 {
        let part = site.get_with("/", &[("range", "bytes=0-1"), ("if-range", "\"a\"")]).await;
        assert_eq!((part.status, part.text()), (StatusCode::PARTIAL_CONTENT, "ab"));
        assert_eq!(part.told(), "Eyewall; fwd=uri-miss; fwd-status=206; detail=partial");
    }
}

#[tokio::test]
async fn a_service_without_ranges_sends_the_whole_and_it_is_stored() {
    let site = letters();
    assert_eq!(site.get_with("/", &[("range", "bytes=0-1")]).await.text(), "abcdefghij");
    assert_eq!(site.get_with("/", &[("range", "bytes=0-1")]).await.text(), "ab");
    assert_eq!(site.count(), 1);
}
