//! QUERY: a GET with content.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use http::Method;
use http_body::Frame;

use crate::support::{Reply, Site, request, respond, site};

async fn query(site: &Site, content: impl Into<Body>, kind: &str) -> Reply {
    site.send(request(Method::QUERY, "/search", &[("content-type", kind)], content.into())).await
}

fn searching() -> Site {
    site(|parts, content| {
        let answer = format!("{} {}", parts.method, content.len());
        respond(&[("cache-control", "max-age=60")], answer)
    })
}

#[tokio::test]
async fn the_same_query_gets_the_same_answer() {
    let site = searching();
    for _ in 0..2 {
        assert_eq!(query(&site, "cats", "text/plain").await.text(), "QUERY 4");
        assert_eq!(query(&site, "mice!", "text/plain").await.text(), "QUERY 5");
        assert_eq!(query(&site, "cats", "text/html").await.text(), "QUERY 4");
        assert_eq!(site.get("/search").await.text(), "GET 0");
    }
    assert_eq!(site.count(), 4);
    assert!(query(&site, "cats", "text/plain").await.is_hit());
}

#[tokio::test]
async fn a_change_of_the_address_removes_them_all() {
    let site = searching();
    query(&site, "cats", "text/plain").await;
    site.ask(Method::POST, "/search", &[]).await;
    assert!(!query(&site, "cats", "text/plain").await.is_hit());
}

#[tokio::test]
async fn long_content_passes_whole() {
    let site = searching();
    for _ in 0..2 {
        let reply = query(&site, "x".repeat(100_000), "text/plain").await;
        assert_eq!(reply.text(), "QUERY 100000");
        assert_eq!(reply.told(), "Eyewall; fwd=method; fwd-status=200; detail=content");
    }
}

#[tokio::test]
async fn content_that_is_cut_off_is_an_error_to_the_service() {
    let site = searching();
    let body = Body::new(CutOff(Some("start")));
    let error = site.start(request(Method::QUERY, "/search", &[], body)).await.unwrap_err();
    assert!(error.to_string().contains("gone"), "{error}");
}

/// A body that fails behind its start.
struct CutOff(Option<&'static str>);

impl http_body::Body for CutOff {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let start = self.0.take().map(|text| Frame::data(Bytes::from(text)));
        Poll::Ready(Some(start.ok_or_else(|| io::Error::other("gone"))))
    }
}
