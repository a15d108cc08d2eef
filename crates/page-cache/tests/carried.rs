//! Two caches: one makes responses for the other, which doesn't judge them again.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use eyewall::Purge;
use eyewall_fleet::{AsOf, Reign};
use eyewall_page_cache::carried::Carried;
use eyewall_page_cache::compression::Compression;
use eyewall_page_cache::pages::Pages;
use eyewall_page_cache::reply::Reply;
use eyewall_page_cache::settings::Settings;
use eyewall_page_cache::store::{PurgeTarget, Store};
use eyewall_page_cache::upstream::{Question, Upstream};
use eyewall_page_cache::visit::Visit;
use http::header::{ACCEPT_ENCODING, ACCEPT_LANGUAGE, AGE, CACHE_STATUS, ETAG, IF_NONE_MATCH};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};

type Answer = dyn Fn(&HeaderMap) -> Response<&'static str> + Send + Sync;

/// An origin, or a cache that stands in for it.
#[derive(Clone)]
struct Site {
    asked: Arc<AtomicU64>,
    /// Whether the question may be answered by another cache.
    is_for_all: Arc<Mutex<Vec<bool>>>,
    answer: Arc<Answer>,
}

impl Site {
    fn new(answer: impl Fn(&HeaderMap) -> Response<&'static str> + Send + Sync + 'static) -> Self {
        Self { asked: Arc::default(), is_for_all: Arc::default(), answer: Arc::new(answer) }
    }
}

impl Upstream for Site {
    type Body = Full<Bytes>;
    type Error = Infallible;

    async fn ask(&self, question: Question<'_>) -> Result<Response<Self::Body>, Infallible> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.is_for_all.lock().unwrap_or_else(PoisonError::into_inner).push(question.is_for_all);
        Ok((self.answer)(&question.fields).map(|body| Full::from(Bytes::from_static(body.as_bytes()))))
    }
}

struct Cache {
    pages: Arc<Pages>,
    settings: Arc<Settings>,
    site: Site,
}

impl Cache {
    fn new(site: Site) -> Self {
        let cache = eyewall::Options::new().size(4 << 20).heap().unwrap();
        let pages = Arc::new(Pages::new(Arc::new(Store::new(cache)), None));
        let settings = Settings { compression: Some(Compression::default()), ..Settings::default() };
        Self { pages, settings: Arc::new(settings), site }
    }

    async fn get(&self, fields: &[(http::HeaderName, &'static str)], for_cache: Option<u64>) -> Reply<Full<Bytes>> {
        let mut request = Request::get("/news").body(()).unwrap();
        for (name, value) in fields {
            request.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        let (parts, ()) = request.into_parts();
        let visit =
            Visit::new((&self.pages, &self.settings), self.site.clone(), parts, "http://example.org/news".to_owned());
        let as_of = for_cache.map(|line| AsOf { line, written_in: Reign::new("a"), reign: Reign::new("a") });
        Arc::new(Visit { as_of, is_for_cache: for_cache.is_some(), ..visit }).answer().await.unwrap()
    }
}

fn page() -> Response<&'static str> {
    Response::builder()
        .header("cache-control", "max-age=60, stale-while-revalidate=600")
        .header("content-type", "text/html")
        .header("vary", "accept-language")
        .header("surrogate-key", "news")
        .header(ETAG, "\"1\"")
        .body("the news")
        .unwrap()
}

async fn body(reply: Reply<Full<Bytes>>) -> Bytes {
    reply.into_body().collect().await.unwrap().to_bytes()
}

#[tokio::test]
async fn a_response_for_another_cache_has_what_that_needs_and_no_other_form() {
    let cache = Cache::new(Site::new(|_| page()));
    for line in [7, 9] {
        let reply = cache.get(&[(ACCEPT_ENCODING, "gzip"), (ACCEPT_LANGUAGE, "de")], Some(line)).await;
        let carried = reply.extensions().get::<Carried>().unwrap().clone();
        assert_eq!((carried.status, carried.as_of.line), (StatusCode::OK, line));
        assert_eq!((carried.vary, carried.tags), (vec![ACCEPT_LANGUAGE], vec!["news".to_owned()]));
        assert!(!carried.fields.contains_key(CACHE_STATUS) && carried.fields.contains_key(ETAG));
        assert_eq!(carried.terms.lifetime_seconds, 60);
        assert_eq!((carried.length, &body(reply).await[..]), (Some(8), &b"the news"[..]));
    }
    assert_eq!(cache.site.asked.load(Ordering::Relaxed), 1);
    let reply = cache.get(&[], None).await;
    assert!(reply.extensions().get::<Carried>().is_none(), "a client");
}

#[tokio::test]
async fn what_is_not_stored_is_for_no_other_cache() {
    let cache = Cache::new(Site::new(|_| Response::builder().header("cache-control", "private").body("x").unwrap()));
    assert!(cache.get(&[], Some(7)).await.extensions().get::<Carried>().is_none());
    assert!(cache.get(&[], Some(7)).await.extensions().get::<Carried>().is_none());
    // The second request knows that the first one's answer could not be stored.
    assert_eq!(*cache.site.is_for_all.lock().unwrap(), [true, false]);
}

#[tokio::test]
async fn a_purged_response_is_validated_before_another_cache_gets_it() {
    let cache = Cache::new(Site::new(|asked| {
        let status = if asked.contains_key(IF_NONE_MATCH) { StatusCode::NOT_MODIFIED } else { StatusCode::OK };
        let mut page = page();
        *page.status_mut() = status;
        page
    }));
    body(cache.get(&[], Some(7)).await).await;
    cache.pages.store.purge(PurgeTarget::Everything, Purge::Soft).unwrap();
    let reply = cache.get(&[], Some(8)).await;
    assert_eq!(cache.site.asked.load(Ordering::Relaxed), 2, "stale-while-revalidate is for clients");
    assert_eq!(reply.extensions().get::<Carried>().unwrap().as_of.line, 8);
}

/// A site whose responses come from another cache.
fn peer(is_kept: bool) -> Site {
    let maker = Cache::new(Site::new(|_| page()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let making = std::thread::spawn(move || {
        runtime.block_on(async {
            let reply = maker.get(&[], Some(7)).await;
            reply.extensions().get::<Carried>().unwrap().clone()
        })
    });
    let carried = Carried { is_kept, ..making.join().unwrap() };
    Site::new(move |asked| {
        let status = if asked.contains_key(IF_NONE_MATCH) { StatusCode::NOT_MODIFIED } else { carried.status };
        let mut response = Response::new("the news");
        *response.status_mut() = status;
        *response.headers_mut() = carried.fields.clone();
        // What the maker's rules have removed.
        response.headers_mut().remove("surrogate-key");
        response.headers_mut().remove("cache-control");
        response.headers_mut().insert(AGE, 5.into());
        let terms = eyewall_http::terms::Terms { initial_age_ms: 5000, ..carried.terms };
        response.extensions_mut().insert(Carried { terms, ..carried.clone() });
        response
    })
}

#[tokio::test]
async fn a_response_of_another_cache_keeps_its_terms_tags_and_age() {
    let cache = Cache::new(peer(true));
    assert_eq!(body(cache.get(&[], None).await).await, "the news");
    let reply = cache.get(&[], None).await;
    assert_eq!(reply.headers()[AGE], "5");
    assert_eq!(reply.headers()[CACHE_STATUS], "Eyewall; hit; ttl=55");
    assert_eq!(body(reply).await, "the news");
    // Another variant.
    body(cache.get(&[(ACCEPT_LANGUAGE, "de")], None).await).await;
    assert_eq!(cache.site.asked.load(Ordering::Relaxed), 2);
    // The answer to the validation has no body, and keeps the terms, too.
    cache.pages.store.purge(PurgeTarget::Tag("news"), Purge::Soft).unwrap();
    let settings = Settings { compression: None, ..Settings::default() };
    let cache = Cache { settings: Arc::new(settings), ..cache };
    // `stale-while-revalidate` would answer first.
    let reply = cache.get(&[(http::header::CACHE_CONTROL, "max-age=0")], None).await;
    assert_eq!(reply.headers()[CACHE_STATUS], "Eyewall; fwd=stale; fwd-status=304; ttl=55");
    assert_eq!(body(reply).await, "the news");
    cache.pages.store.purge(PurgeTarget::Tag("news"), Purge::Hard).unwrap();
    body(cache.get(&[], None).await).await;
    assert_eq!(cache.site.asked.load(Ordering::Relaxed), 4);
}

#[tokio::test]
async fn a_response_that_another_cache_keeps_is_passed_on() {
    let cache = Cache::new(peer(false));
    for asked in 1..=2 {
        let reply = cache.get(&[], None).await;
        let status = reply.headers()[CACHE_STATUS].clone();
        assert_eq!(status, "Eyewall; fwd=uri-miss; fwd-status=200; detail=peer");
        assert_eq!(body(reply).await, "the news");
        assert_eq!(cache.site.asked.load(Ordering::Relaxed), asked);
    }
    assert_eq!(*cache.site.is_for_all.lock().unwrap(), [true, true]);
    let reply = cache.get(&[(IF_NONE_MATCH, "\"1\"")], None).await;
    assert_eq!(reply.status(), StatusCode::NOT_MODIFIED);
}
