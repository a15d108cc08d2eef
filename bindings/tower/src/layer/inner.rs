//! The inner service as the upstream of the page cache.

use std::borrow::Cow;
use std::future::poll_fn;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use eyewall_http::coding::Codings;
use eyewall_http::policy::Policy;
use eyewall_page_cache::cached_body::CachedBody;
use eyewall_page_cache::request_body::RequestBody;
use eyewall_page_cache::settings::Settings as CacheSettings;
use eyewall_page_cache::upstream::{Failure, Question, Rules, Upstream, UpstreamBody};
use eyewall_page_cache::visit;
use http::{Extensions, HeaderMap, Request, Response, StatusCode, Uri};
use tower_service::Service;

use super::settings::Settings;
use super::tags;

/// A request, with all that is needed to answer it.
pub(super) type Visit<S, B> = visit::Visit<Inner<S, B>>;

/// The answer to a request.
pub(super) type Answered<S, B> =
    Result<Response<CachedBody<<S as HttpService<B>>::Content>>, <S as HttpService<B>>::Fault>;

/// Answers a GET, a HEAD or a QUERY.
pub(super) async fn answer<S: HttpService<B>, B: UpstreamBody>(visit: Visit<S, B>) -> Answered<S, B> {
    Arc::new(visit).answer().await.map_err(|unanswered| unanswered.error)
}

/// A service that any task can call, for requests with bodies of `B`.
pub(crate) trait HttpService<B>: Clone + Send + 'static {
    type Content: UpstreamBody;
    type Fault: Send + 'static;

    /// Waits until the service is ready, and calls it.
    fn send(
        self,
        request: Request<RequestBody<B>>,
    ) -> impl Future<Output = Result<Response<Self::Content>, Self::Fault>> + Send;
}

impl<S, B, R> HttpService<B> for S
where
    S: Service<Request<RequestBody<B>>, Response = Response<R>, Error: Send, Future: Send> + Clone + Send + 'static,
    S::Error: 'static,
    B: Send + 'static,
    R: UpstreamBody,
{
    type Content = R;
    type Fault = S::Error;

    async fn send(mut self, request: Request<RequestBody<B>>) -> Result<Response<R>, S::Error> {
        poll_fn(|context| self.poll_ready(context)).await?;
        self.call(request).await
    }
}

/// The inner service, for one request.
pub(crate) struct Inner<S, B> {
    /// Services needn't be `Sync`. The lock is held only to clone the service.
    service: Mutex<S>,
    pub(super) settings: Arc<Settings>,
    /// The absolute target of the request. None: the request doesn't name its host.
    pub(super) target: Option<Uri>,
    /// A tag that the response carries, whatever tags it names itself.
    pub(super) tag: Option<String>,
    body: PhantomData<fn() -> B>,
}

impl<S: HttpService<B>, B: UpstreamBody> Inner<S, B> {
    pub(super) fn new(service: S, settings: Arc<Settings>, target: Option<Uri>, tag: Option<String>) -> Self {
        Self { service: Mutex::new(service), settings, target, tag, body: PhantomData }
    }

    /// Sends a request to the service.
    pub(super) async fn send(&self, request: Request<RequestBody<B>>) -> Result<Response<S::Content>, S::Fault> {
        let service = self.service.lock().unwrap_or_else(PoisonError::into_inner).clone();
        service.send(request).await
    }
}

impl<S: HttpService<B>, B: UpstreamBody> Upstream for Inner<S, B> {
    type Body = S::Content;
    type Error = S::Fault;

    async fn ask(&self, question: Question<'_>) -> Result<Response<S::Content>, S::Fault> {
        let mut parts = question.client.clone();
        (parts.method, parts.headers) = (question.method, question.fields);
        let body = question.content.cloned().map_or_else(RequestBody::empty, RequestBody::whole);
        self.send(Request::from_parts(parts, body)).await
    }

    fn failure(&self, _: &S::Fault) -> Failure {
        Failure { detail: "stale-if-error", ..Failure::unreachable() }
    }

    fn failure_ttl(&self, _: &Failure) -> Option<Duration> {
        self.settings.failure_ttl
    }

    fn rules<'a>(
        &'a self,
        settings: &'a CacheSettings,
        status: StatusCode,
        fields: &mut HeaderMap,
        extensions: &mut Extensions,
    ) -> Rules<'a> {
        let tags = match &self.target {
            Some(target) => tags::of_response(&self.settings, target, self.tag.as_deref(), fields, extensions),
            None => self.tag.clone().into_iter().collect(),
        };
        let is_failure = status.is_server_error() || matches!(status, StatusCode::NOT_FOUND | StatusCode::GONE);
        let policy = match self.settings.failure_ttl.filter(|_| is_failure) {
            Some(ttl) => Cow::Owned(Policy { status_ttl: Some(ttl), ..settings.policy.clone() }),
            None => Cow::Borrowed(&settings.policy),
        };
        Rules { policy, is_refused: false, is_opaque: false, codings: Codings::ALL, tags, carried: None }
    }
}
