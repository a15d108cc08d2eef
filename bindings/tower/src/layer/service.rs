//! The service that answers from the cache, and otherwise calls the inner service.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use eyewall_http::field::cache_status::{CacheStatus, Forward};
use eyewall_http::reuse;
use eyewall_page_cache::cached_body::CachedBody;
use eyewall_page_cache::pages::Pages;
use eyewall_page_cache::request_body::RequestBody;
use eyewall_page_cache::upstream::UpstreamBody;
use eyewall_page_cache::visit;
use http::header::UPGRADE;
use http::{Method, Request, Response};
use tower_service::Service;

use super::inner::{Answered, HttpService, Inner, Visit, answer};
use super::settings::Settings;
use super::{grpc, pass, query};

/// A service behind a [`CacheLayer`](crate::CacheLayer).
///
/// It is always ready: it answers stored responses whether or not the inner service is ready. For each request to the inner
/// service, it clones that service and waits until it is ready.
#[derive(Debug, Clone)]
pub struct CacheService<S> {
    inner: S,
    settings: Arc<Settings>,
    pages: Arc<Pages>,
}

impl<S> CacheService<S> {
    pub(super) fn new(inner: S, settings: Arc<Settings>, pages: Arc<Pages>) -> Self {
        Self { inner, settings, pages }
    }
}

/// The future of a response.
pub struct ResponseFuture<R, E>(Pin<Box<Answering<R, E>>>);

type Answering<R, E> = dyn Future<Output = Result<Response<CachedBody<R>>, E>> + Send;

impl<R, E> fmt::Debug for ResponseFuture<R, E> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}

impl<R, E> Future for ResponseFuture<R, E> {
    type Output = Result<Response<CachedBody<R>>, E>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(context)
    }
}

impl<S, B, R> Service<Request<B>> for CacheService<S>
where
    S: Service<Request<RequestBody<B>>, Response = Response<R>, Error: Send, Future: Send> + Clone + Send + 'static,
    S::Error: 'static,
    B: UpstreamBody,
    R: UpstreamBody,
{
    type Response = Response<CachedBody<R>>;
    type Error = S::Error;
    type Future = ResponseFuture<R, S::Error>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        ResponseFuture(Box::pin(decide(self.clone(), request)))
    }
}

async fn decide<S: HttpService<B>, B: UpstreamBody>(service: CacheService<S>, request: Request<B>) -> Answered<S, B> {
    let (parts, body) = request.into_parts();
    let CacheService { inner, settings, pages } = service;
    let target = settings.key.target(&parts);
    let address = target.as_ref().map(|target| settings.address(target)).unwrap_or_default();
    let (key, address_tag) = (settings.key.of_request(&address, &parts), settings.key.address_tag(&address));
    let inner = Inner::new(inner, Arc::clone(&settings), target, address_tag.clone());
    let visit = visit::Visit::new((&pages, &settings.cache), inner, parts, address);
    let visit = Visit { key, address_tag, ..visit };
    let parts = &visit.parts;
    let is_reading = reuse::is_answerable(&parts.method) || parts.method == Method::QUERY;
    let passing = if settings.bypasses(parts) {
        CacheStatus::forwarded(Forward::Bypass)
    } else if let Some(ttl) = grpc::ttl(&visit) {
        return grpc::answer(visit, body, ttl).await;
    } else if visit.upstream.target.is_none() || parts.headers.contains_key(UPGRADE) || !is_reading {
        // An upgrade is for the inner service alone, and a request without a host has no key.
        CacheStatus::forwarded(if is_reading { Forward::Bypass } else { Forward::Method })
    } else if parts.method == Method::QUERY {
        return query::answer_query(visit, body).await;
    } else if body.is_end_stream() {
        return answer(visit).await;
    } else {
        CacheStatus::forwarded(Forward::Bypass).detail("content")
    };
    pass::forward(&visit, RequestBody::passed(body), passing).await
}
