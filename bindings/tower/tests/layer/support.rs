//! A service behind a layer, a clock, and the requests that reached the service.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use axum::body::{Body, to_bytes};
use bytes::Bytes;
use eyewall::{Cache, Options};
use eyewall_tower::{CacheLayer, CachedBody};
use http::request::Parts;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use tower::util::BoxCloneSyncService;
use tower::{ServiceExt as _, service_fn};
use tower_layer::Layer as _;

/// Seconds that pass when a test advances the clock.
#[derive(Clone, Default)]
pub(crate) struct Clock(Arc<AtomicU64>);

impl Clock {
    pub(crate) fn now(&self) -> SystemTime {
        // A second that is no multiple of anything.
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_790_000_007 + self.0.load(Ordering::SeqCst))
    }

    pub(crate) fn advance(&self, seconds: u64) {
        self.0.fetch_add(seconds, Ordering::SeqCst);
    }
}

/// A service behind a layer.
#[derive(Clone)]
pub(crate) struct Site {
    pub(crate) layer: CacheLayer,
    pub(crate) clock: Clock,
    service: BoxCloneSyncService<Request<Body>, Response<CachedBody<Body>>, io::Error>,
    asked: Arc<Mutex<Vec<Parts>>>,
}

pub(crate) fn volume() -> Cache {
    Options::new().size(8 << 20).heap().unwrap()
}

/// A site that answers with this closure, with the defaults of the layer.
pub(crate) fn site(answer: impl Fn(&Parts, Bytes) -> Response<Body> + Send + Sync + 'static) -> Site {
    Site::new(|layer| layer, answer)
}

/// A site whose responses have these fields, and a text that counts them.
pub(crate) fn counting(fields: &'static [(&'static str, &'static str)]) -> Site {
    Site::new(|layer| layer, counted(fields))
}

pub(crate) fn counted(fields: &'static [(&'static str, &'static str)]) -> impl Fn(&Parts, Bytes) -> Response<Body> {
    let count = AtomicU64::new(0);
    move |_, _| {
        let number = count.fetch_add(1, Ordering::SeqCst) + 1;
        respond(fields, format!("answer {number}"))
    }
}

pub(crate) fn respond(fields: &[(&'static str, &str)], body: impl Into<Body>) -> Response<Body> {
    let mut response = Response::builder();
    for (name, value) in fields {
        response = response.header(*name, *value);
    }
    response.body(body.into()).unwrap()
}

impl Site {
    pub(crate) fn new(
        set: impl FnOnce(CacheLayer) -> CacheLayer,
        answer: impl Fn(&Parts, Bytes) -> Response<Body> + Send + Sync + 'static,
    ) -> Self {
        Self::over(volume(), set, move |parts, body| {
            let response = answer(&parts, body);
            async move { Ok(response) }
        })
    }

    /// A site on this volume whose responses may take time, or fail.
    pub(crate) fn over<F>(
        cache: Cache,
        set: impl FnOnce(CacheLayer) -> CacheLayer,
        answer: impl Fn(Parts, Bytes) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = io::Result<Response<Body>>> + Send,
    {
        let (clock, asked) = (Clock::default(), Arc::new(Mutex::new(Vec::new())));
        let time = clock.clone();
        let layer = set(CacheLayer::new(cache).clock(move || time.now()));
        let (answer, noted) = (Arc::new(answer), Arc::clone(&asked));
        let inner = service_fn(move |request: Request<eyewall_tower::RequestBody<Body>>| {
            let (answer, noted) = (Arc::clone(&answer), Arc::clone(&noted));
            async move {
                let (parts, body) = request.into_parts();
                noted.lock().unwrap().push(parts.clone());
                let content = to_bytes(Body::new(body), usize::MAX).await.map_err(io::Error::other)?;
                answer(parts, content).await
            }
        });
        let service = BoxCloneSyncService::new(layer.layer(inner));
        Self { layer, clock, service, asked }
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.get_with(path, &[]).await
    }

    pub(crate) async fn get_with(&self, path: &str, fields: &[(&str, &str)]) -> Reply {
        self.ask(Method::GET, path, fields).await
    }

    pub(crate) async fn ask(&self, method: Method, path: &str, fields: &[(&str, &str)]) -> Reply {
        self.send(request(method, path, fields, Body::empty())).await
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Reply {
        Reply::of(self.start(request).await.unwrap()).await
    }

    /// The head of the response, and its body as a stream.
    pub(crate) async fn start(&self, request: Request<Body>) -> io::Result<Response<CachedBody<Body>>> {
        self.service.clone().oneshot(request).await
    }

    /// The requests that have reached the service.
    pub(crate) fn asked(&self) -> Vec<Parts> {
        self.asked.lock().unwrap().clone()
    }

    pub(crate) fn count(&self) -> usize {
        self.asked().len()
    }
}

pub(crate) fn request(method: Method, path: &str, fields: &[(&str, &str)], body: Body) -> Request<Body> {
    let mut request = Request::builder().method(method).uri(path).header("host", "example.org");
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    request.body(body).unwrap()
}

/// A complete response.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) fields: HeaderMap,
    pub(crate) body: Bytes,
}

impl Reply {
    pub(crate) async fn of(response: Response<CachedBody<Body>>) -> Self {
        let (head, body) = response.into_parts();
        let body = to_bytes(Body::new(body), usize::MAX).await.unwrap();
        Self { status: head.status, fields: head.headers, body }
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    /// The value of a field; empty if it is absent.
    pub(crate) fn field(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The field `Cache-Status`.
    pub(crate) fn told(&self) -> &str {
        self.field("cache-status")
    }

    pub(crate) fn is_hit(&self) -> bool {
        self.told().starts_with("Eyewall; hit")
    }
}
