//! Large bodies are stored in fragments while they arrive. The service is asked for missing fragments.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use eyewall::{Cache, Options};
use http::request::Parts;
use http::{Method, Response, StatusCode};
use http_body::Frame;
use http_body_util::BodyExt as _;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::support::{Site, request, respond};

const MEBIBYTE: usize = 1 << 20;
const FIELDS: [(&str, &str); 2] = [("cache-control", "max-age=60"), ("etag", "\"a\"")];

/// Bytes in which no two nearby places are alike.
fn large(bytes: usize) -> Bytes {
    (0..bytes).map(|position| (position / 251) as u8 ^ position as u8).collect()
}

fn volume() -> Cache {
    Options::new().size(64 << 20).heap().unwrap()
}

fn over(cache: Cache, answer: impl Fn(&Parts) -> Response<Body> + Send + Sync + 'static) -> Site {
    Site::over(
        cache,
        |layer| layer.body_bytes_max(32 << 20),
        move |parts, _| {
            let response = answer(&parts);
            async move { Ok(response) }
        },
    )
}

/// The keys of the fragments of all bodies.
fn fragments(cache: &Cache) -> Vec<Vec<u8>> {
    let is_fragment = |key: &[u8]| {
        let blank = key.iter().position(|byte| *byte == b' ');
        blank.is_some_and(|blank| key[blank..].contains(&b'/'))
    };
    cache.iter().map(|hit| hit.key().to_vec()).filter(|key| is_fragment(key)).collect()
}

#[tokio::test]
async fn a_large_body_comes_from_its_fragments_whole_and_in_part() {
    let (cache, body) = (volume(), large(3 * MEBIBYTE + 7));
    let whole = body.clone();
    let site = over(cache.clone(), move |_| respond(&FIELDS, whole.clone()));
    let first = site.get("/").await;
    assert_eq!((&first.body, first.told()), (&body, "Eyewall; fwd=uri-miss; fwd-status=200; stored; ttl=60"));
    assert!(fragments(&cache).iter().all(|key| key.starts_with(b"tower:http://example.org/ ")));
    assert!(fragments(&cache).len() >= 4);
    let second = site.get("/").await;
    assert!(second.is_hit() && second.body == body);
    let part = site.get_with("/", &[("range", "bytes=1048570-1048589")]).await;
    assert_eq!((part.status, &part.body), (StatusCode::PARTIAL_CONTENT, &body.slice(1_048_570..1_048_590)));
    let had = site.get_with("/", &[("if-none-match", "\"a\"")]).await;
    assert_eq!((had.status, site.count()), (StatusCode::NOT_MODIFIED, 1));
}

#[tokio::test]
async fn a_fragment_that_is_gone_is_asked_for_by_its_range() {
    for gives_parts in [true, false] {
        let (cache, body) = (volume(), large(3 * MEBIBYTE));
        let whole = body.clone();
        let site = over(cache.clone(), move |parts| {
            let range = parts.headers.get("range").filter(|_| gives_parts).map(|range| range.to_str().unwrap());
            let Some((first, last)) = range.and_then(|range| range.strip_prefix("bytes=")?.split_once('-')) else {
                return respond(&FIELDS, whole.clone());
            };
            let (first, last): (usize, usize) = (first.parse().unwrap(), last.parse().unwrap());
            let mut response = respond(&FIELDS, whole.slice(first..=last));
            let range = format!("bytes {first}-{last}/{}", whole.len());
            response.headers_mut().insert("content-range", range.parse().unwrap());
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
            response
        });
        site.get("/").await;
        let gone = fragments(&cache).into_iter().find(|key| key.ends_with(b"/1")).unwrap();
        assert!(cache.remove(&gone).unwrap());
        let again = site.get("/").await;
        assert!(again.body == body, "gives parts: {gives_parts}");
        let asked = site.asked();
        assert!(asked.len() == 2 && asked[1].headers["if-range"] == "\"a\"");
        assert!(site.get("/").await.is_hit());
        assert_eq!(site.count(), 2, "it is stored again");
    }
}

#[tokio::test]
async fn a_fragment_that_belongs_to_another_version_is_not_mixed_in() {
    let (cache, old, new) = (volume(), large(3 * MEBIBYTE), large(3 * MEBIBYTE).slice(1..));
    let count = std::sync::atomic::AtomicUsize::new(0);
    let (first, others) = (old.clone(), new.clone());
    let site = over(cache.clone(), move |_| {
        if count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 0 {
            return respond(&FIELDS, first.clone());
        }
        respond(&[("cache-control", "max-age=60"), ("etag", "\"b\"")], others.clone())
    });
    site.get("/").await;
    let gone = fragments(&cache).into_iter().find(|key| key.ends_with(b"/0")).unwrap();
    assert!(cache.remove(&gone).unwrap());
    let again = site.get("/").await;
    assert!(again.body == new && again.field("etag") == "\"b\"");
}

#[tokio::test]
async fn a_large_body_without_an_entity_tag_passes() {
    let cache = Options::new().size(64 << 20).entry_bytes_max(1 << 20).heap().unwrap();
    let body = large(2 * MEBIBYTE);
    let whole = body.clone();
    let site = over(cache, move |_| respond(&FIELDS[..1], whole.clone()));
    for _ in 0..2 {
        let reply = site.get("/").await;
        assert!(reply.body == body && reply.told().ends_with("detail=too-large"), "{}", reply.told());
    }
}

/// A body of this length, whose pieces a test sends.
struct Sent(UnboundedReceiver<Bytes>, u64);

impl http_body::Body for Sent {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.0.poll_recv(context).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn size_hint(&self) -> http_body::SizeHint {
        http_body::SizeHint::with_exact(self.1)
    }
}

/// A site whose first response has a body of this many mebibytes, which a test sends. The other responses are short.
fn sending(mebibytes: usize) -> (Site, UnboundedSender<Bytes>) {
    let (sender, pieces) = unbounded_channel();
    let first = std::sync::Mutex::new(Some(Sent(pieces, (mebibytes * MEBIBYTE) as u64)));
    let site = over(volume(), move |_| {
        respond(&FIELDS, first.lock().unwrap().take().map_or_else(|| Body::from("another"), Body::new))
    });
    (site, sender)
}

#[tokio::test]
async fn a_request_during_a_large_fill_reads_the_same_body() {
    let (site, sender) = sending(3);
    let body = large(3 * MEBIBYTE);
    let mut first = site.start(request(Method::GET, "/", &[], Body::empty())).await.unwrap().into_body();
    sender.send(body.slice(..MEBIBYTE)).unwrap();
    let begun = first.frame().await.unwrap().unwrap().into_data().unwrap();
    let second = site.start(request(Method::GET, "/", &[], Body::empty())).await.unwrap();
    let part = site.start(request(Method::GET, "/", &[("range", "bytes=0-9")], Body::empty())).await.unwrap();
    assert_eq!(part.into_body().collect().await.unwrap().to_bytes(), body.slice(..10));
    let second = tokio::spawn(second.into_body().collect());
    sender.send(body.slice(MEBIBYTE..)).unwrap();
    drop(sender);
    assert!(first.collect().await.unwrap().to_bytes() == body.slice(begun.len()..));
    assert!(second.await.unwrap().unwrap().to_bytes() == body);
    assert_eq!(site.count(), 1);
}

#[tokio::test]
async fn a_large_body_without_readers_is_given_up_unless_it_is_nearly_complete() {
    let (site, sender) = sending(12);
    drop(site.start(request(Method::GET, "/", &[], Body::empty())).await.unwrap());
    sender.send(large(MEBIBYTE)).unwrap();
    sender.closed().await;
}

#[tokio::test]
async fn a_miss_with_a_large_body_has_the_extensions_of_its_response() {
    #[derive(Clone, PartialEq, Debug)]
    struct Note(u32);
    let site = over(volume(), |_| {
        let mut response = respond(&FIELDS, large(2 * MEBIBYTE));
        response.extensions_mut().insert(Note(7));
        response
    });
    let miss = site.start(request(Method::GET, "/", &[], Body::empty())).await.unwrap();
    assert_eq!(miss.extensions().get(), Some(&Note(7)));
}

#[tokio::test]
async fn a_large_body_with_trailers_is_stored_whole() {
    let cache = volume();
    let site = over(cache.clone(), |_| {
        let fields = [FIELDS[0], FIELDS[1], ("trailer", "x-sum")];
        respond(&fields, large(2 * MEBIBYTE))
    });
    assert_eq!(site.get("/").await.told(), "Eyewall; fwd=uri-miss; fwd-status=200; stored; ttl=60");
    assert!(fragments(&cache).is_empty() && site.get("/").await.is_hit());
}
