//! One request in, one response out.

use std::fmt;
use std::time::Instant;

use http::header::ALLOW;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::Incoming;

use super::body::Body;
use super::cache_status::CACHE_STATUS;
use super::files::Files;
use super::proxy::Proxy;
use super::reply;

/// Where answers come from when the cache has none.
pub(crate) enum Source {
    Files(Files),
    Origin(Proxy),
}

impl fmt::Display for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Files(files) => write!(formatter, "the folder {}", files.root().display()),
            Self::Origin(proxy) => write!(formatter, "the origin {}", proxy.origins()),
        }
    }
}

/// What all connections share.
pub(crate) struct Service {
    source: Source,
}

impl Service {
    pub(crate) fn new(source: Source) -> Self {
        Self { source }
    }

    pub(crate) async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let started = Instant::now();
        let (request, _) = request.into_parts();
        let response = if request.method == Method::GET || request.method == Method::HEAD {
            match &self.source {
                Source::Files(files) => files.answer(&request).await,
                Source::Origin(proxy) => proxy.answer(&request).await,
            }
        } else {
            method_not_allowed()
        };
        tracing::info!(
            method = %request.method,
            target = %request.uri,
            status = response.status().as_u16(),
            cache = response.headers().get(CACHE_STATUS).and_then(|value| value.to_str().ok()).unwrap_or("-"),
            microseconds = started.elapsed().as_micros() as u64,
        );
        response
    }
}

fn method_not_allowed() -> Response<Body> {
    let mut response = reply::error(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD are answered here");
    response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    response
}
