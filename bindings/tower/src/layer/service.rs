//! The service that answers from the cache, and asks another where it can't.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use eyewall_http::field::cache_status::{CacheStatus, Forward};
use eyewall_http::reuse;
use http::header::UPGRADE;
use http::{Method, Request, Response};
use tower_service::Service;

use super::answer::Pages;
use super::body::{CachedBody, RequestBody};
use super::fill::Content;
use super::inner::Inner;
use super::settings::Settings;
use super::visit::Visit;

/// A service with a [`CacheLayer`](crate::CacheLayer) before it.
///
/// It is always ready: what is stored is answered whether or not the inner service is. That one is cloned for each request that
/// goes to it, and waited for.
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

/// A response that is on its way.
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
    B: Content,
    R: Content,
{
    type Response = Response<CachedBody<R>>;
    type Error = S::Error;
    type Future = ResponseFuture<R, S::Error>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (parts, body) = request.into_parts();
        let (settings, pages) = (Arc::clone(&self.settings), Arc::clone(&self.pages));
        let visit = Visit::new(self.inner.clone(), settings, pages, parts);
        ResponseFuture(Box::pin(answer(visit, body)))
    }
}

async fn answer<S, B>(mut visit: Visit<S, B>, body: B) -> Result<Response<CachedBody<S::Content>>, S::Fault>
where
    S: Inner<B>,
    B: Content,
{
    let parts = &visit.parts;
    let is_reading = reuse::is_answerable(&parts.method) || parts.method == Method::QUERY;
    if visit.settings.bypasses(parts) {
        return visit.forward(RequestBody::passed(body), CacheStatus::forwarded(Forward::Bypass)).await;
    }
    if let Some(ttl) = visit.cached_grpc() {
        return visit.answer_grpc(body, ttl).await;
    }
    // An upgrade is for the inner service alone, and a request that names no host is for nobody's key.
    if visit.target.is_none() || parts.headers.contains_key(UPGRADE) || !is_reading {
        let why = if is_reading { Forward::Bypass } else { Forward::Method };
        return visit.forward(RequestBody::passed(body), CacheStatus::forwarded(why)).await;
    }
    if parts.method == Method::QUERY {
        return visit.answer_query(body).await;
    }
    if !body.is_end_stream() {
        let status = CacheStatus::forwarded(Forward::Bypass).detail("content");
        return visit.forward(RequestBody::passed(body), status).await;
    }
    visit.answer().await
}
