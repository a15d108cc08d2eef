//! Bodies: streamed, cut off, too large, and with trailers; they are held while they are sent.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use eyewall::Options;
use http::{HeaderMap, Method};
use http_body::{Body as _, Frame};
use http_body_util::BodyExt as _;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::support::{Site, request, respond, site};

type Piece = io::Result<Frame<Bytes>>;

/// A body whose pieces a test sends.
struct Sent {
    pieces: UnboundedReceiver<Piece>,
    length: Option<u64>,
}

impl http_body::Body for Sent {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Piece>> {
        self.pieces.poll_recv(context)
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.length.map_or_else(http_body::SizeHint::default, http_body::SizeHint::with_exact)
    }
}

/// A site whose first answer has this body; the others are short.
fn sending(
    length: Option<u64>,
    set: impl FnOnce(eyewall_tower::CacheLayer) -> eyewall_tower::CacheLayer,
) -> (Site, UnboundedSender<Piece>) {
    let (sender, pieces) = unbounded_channel();
    let first = std::sync::Mutex::new(Some(Sent { pieces, length }));
    let site = Site::new(set, move |_, _| {
        let body = first.lock().unwrap().take().map_or_else(|| Body::from("another"), Body::new);
        respond(&[("cache-control", "max-age=60")], body)
    });
    (site, sender)
}

fn piece(text: &'static str) -> Frame<Bytes> {
    Frame::data(Bytes::from_static(text.as_bytes()))
}

async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn all_clients_get_a_body_while_it_arrives() {
    let (site, sender) = sending(None, |layer| layer);
    sender.send(Ok(piece("one "))).unwrap();
    let mut first = site.start(request(Method::GET, "/", &[], Body::empty())).await.unwrap().into_body();
    assert_eq!(first.frame().await.unwrap().unwrap().into_data().unwrap(), "one ");
    let mut late = site.start(request(Method::GET, "/", &[], Body::empty())).await.unwrap().into_body();
    assert_eq!(late.frame().await.unwrap().unwrap().into_data().unwrap(), "one ");
    sender.send(Ok(piece("two"))).unwrap();
    drop(sender);
    assert_eq!(first.collect().await.unwrap().to_bytes(), "two");
    assert_eq!(late.collect().await.unwrap().to_bytes(), "two");
    let stored = site.get("/").await;
    assert_eq!((stored.text(), stored.is_hit(), site.count()), ("one two", true, 1));
}

#[tokio::test]
async fn a_known_length_is_sent() {
    let (site, sender) = sending(Some(7), |layer| layer);
    let body = site.start(request(Method::GET, "/", &[], Body::empty())).await.unwrap().into_body();
    assert_eq!(body.size_hint().exact(), Some(7));
    sender.send(Ok(piece("one two"))).unwrap();
    drop(sender);
    assert_eq!(body.collect().await.unwrap().to_bytes(), "one two");
}

#[tokio::test]
async fn a_body_that_is_cut_off_is_an_error_to_its_clients_and_not_stored() {
    let (site, sender) = sending(None, |layer| layer);
    sender.send(Ok(piece("one "))).unwrap();
    sender.send(Err(io::Error::other("no database"))).unwrap();
    let body = site.start(request(Method::GET, "/", &[], Body::empty())).await.unwrap().into_body();
    let error = body.collect().await.unwrap_err();
    assert_eq!(error.to_string(), "the response was cut off: no database");
    assert_eq!(site.get("/").await.text(), "another");
}

#[tokio::test]
async fn a_body_of_known_length_is_stored_after_its_client_leaves() {
    let (site, sender) = sending(Some(7), |layer| layer);
    sender.send(Ok(piece("one "))).unwrap();
    drop(site.start(request(Method::GET, "/", &[], Body::empty())).await.unwrap());
    settle().await;
    sender.send(Ok(piece("two"))).unwrap();
    drop(sender);
    settle().await;
    let stored = site.get("/").await;
    assert_eq!((stored.text(), stored.is_hit()), ("one two", true));
}

#[tokio::test]
async fn a_body_of_unknown_length_is_given_up_when_its_last_client_leaves() {
    let (site, sender) = sending(None, |layer| layer);
    sender.send(Ok(piece("one "))).unwrap();
    drop(site.start(request(Method::GET, "/", &[], Body::empty())).await.unwrap());
    sender.closed().await;
    assert_eq!(site.get("/").await.text(), "another");
}

#[tokio::test]
async fn a_body_that_is_too_large_passes() {
    let (site, sender) = sending(Some(9), |layer| layer.body_bytes_max(8));
    sender.send(Ok(piece("123456789"))).unwrap();
    drop(sender);
    let reply = site.get("/").await;
    assert_eq!((reply.text(), reply.told()), ("123456789", "Eyewall; fwd=uri-miss; fwd-status=200; detail=too-large"));
    assert_eq!(site.get("/").await.text(), "another");
}

#[tokio::test]
async fn a_body_that_becomes_too_large_is_sent_to_its_end_and_not_stored() {
    let (site, sender) = sending(None, |layer| layer.body_bytes_max(8));
    let body = site.start(request(Method::GET, "/", &[], Body::empty())).await.unwrap().into_body();
    for _ in 0..5 {
        sender.send(Ok(piece("12345"))).unwrap();
    }
    drop(sender);
    assert_eq!(body.collect().await.unwrap().to_bytes().len(), 25);
    assert_eq!(site.get("/").await.text(), "another");
}

#[tokio::test]
async fn a_response_that_the_volume_refuses_is_not_stored() {
    let cache = Options::new().size(1 << 20).entry_bytes_max(4096).heap().unwrap();
    let site = Site::over(
        cache,
        |layer| layer,
        |_, _| async { Ok(respond(&[("cache-control", "max-age=60")], "x".repeat(4096))) },
    );
    assert!(site.get("/").await.told().ends_with("detail=too-large"));
    assert!(!site.get("/").await.is_hit());
}

#[tokio::test]
async fn trailers_are_stored_and_sent_with_the_whole() {
    let (site, sender) = sending(None, |layer| layer);
    sender.send(Ok(piece("body"))).unwrap();
    let mut trailers = HeaderMap::new();
    trailers.insert("x-sum", "1".parse().unwrap());
    sender.send(Ok(Frame::trailers(trailers.clone()))).unwrap();
    drop(sender);
    for _ in 0..2 {
        let response = site.start(request(Method::GET, "/", &[], Body::empty())).await.unwrap();
        assert!(!response.headers().contains_key("content-length"));
        let collected = response.into_body().collect().await.unwrap();
        assert_eq!(collected.trailers(), Some(&trailers));
        assert_eq!(collected.to_bytes(), "body");
    }
    assert_eq!(site.count(), 1);
    assert_eq!(site.get_with("/", &[("range", "bytes=0-1")]).await.text(), "bo");
}

#[tokio::test]
async fn a_hit_is_the_bytes_of_the_volume_held_until_the_last_of_them_is_gone() {
    let cache = Options::new().size(1 << 20).anonymous().unwrap();
    let site = Site::over(
        cache.clone(),
        |layer| layer,
        |parts, _| async move { Ok(respond(&[("cache-control", "max-age=60")], parts.uri.path().repeat(1000))) },
    );
    site.get("/first").await;
    let response = site.start(request(Method::GET, "/first", &[], Body::empty())).await.unwrap();
    let held = response.into_body().frame().await.unwrap().unwrap().into_data().unwrap();
    let pins =
        |cache: &eyewall::Cache| cache.details().unwrap().processes.iter().map(|process| process.pins).sum::<u64>();
    assert_eq!(pins(&cache), 1);
    for number in 0..1000 {
        site.get(&format!("/{number}")).await;
    }
    assert_eq!(held, "/first".repeat(1000), "nobody has written over it");
    drop(held);
    assert_eq!(pins(&cache), 0);
}

#[tokio::test]
async fn an_empty_body_is_stored_too() {
    let site = site(|_, _| respond(&[("cache-control", "max-age=60")], ""));
    site.get("/").await;
    let stored = site.get("/").await;
    assert_eq!((stored.is_hit(), stored.body.len(), stored.field("content-length")), (true, 0, "0"));
}

#[tokio::test]
async fn a_read_only_volume_stores_nothing_and_requests_are_still_answered() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("volume");
    drop(Options::new().size(1 << 20).open(&path).unwrap());
    let cache = Options::new().read_only(true).open(&path).unwrap();
    let site =
        Site::over(cache, |layer| layer, |_, _| async { Ok(respond(&[("cache-control", "max-age=60")], "page")) });
    for _ in 0..2 {
        let reply = site.get("/").await;
        assert!(reply.text() == "page" && !reply.is_hit());
    }
}

#[tokio::test]
async fn a_body_of_another_length_than_announced_is_cut_off() {
    let site = site(|parts, _| {
        let is_first = !parts.headers.contains_key("x-again");
        respond(
            &[("cache-control", "max-age=60"), ("content-length", if is_first { "9" } else { "4" })],
            Body::new(Unsized(Some("body"))),
        )
    });
    let body = site.start(request(Method::GET, "/", &[], Body::empty())).await.unwrap().into_body();
    let error = body.collect().await.unwrap_err();
    assert_eq!(error.to_string(), "the response was cut off: it is not as long as it says");
    assert_eq!(site.get_with("/", &[("x-again", "1")]).await.text(), "body");
}

/// A body of unknown length.
struct Unsized(Option<&'static str>);

impl http_body::Body for Unsized {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Piece>> {
        Poll::Ready(self.0.take().map(piece).map(Ok))
    }
}
