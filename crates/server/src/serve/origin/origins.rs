//! The origins of a site, as one worker uses them.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::header::{TRAILER, TRANSFER_ENCODING};
use http::{HeaderName, HeaderValue, Method, Request, Response};
use http_body::Body as _;

use super::client::Client;
use super::error::{Failure, ProxyError};
use super::forwarded;
use super::framing::contradiction;
use super::request::{OriginRequest, RequestBody};
use super::response_body::ResponseBody;
use super::site::{OriginSite, Timeouts};
use crate::serve::admission::{Full, OriginQueue};
use crate::serve::log;
use crate::serve::spans::OriginSpan;

/// Shorter than the five seconds after which many servers close an idle connection, so few requests meet a connection that is
/// just being closed.
pub(super) const POOL_IDLE: Duration = Duration::from_secs(4);
/// The most bytes of a response's head (hyper itself limits the fields to a hundred), and of a piece of a body.
pub(super) const HEAD_BYTES_MAX: usize = 64 << 10;
/// How often a request goes to an origin or a connection again, because the last one said that it had not processed it.
const REFUSALS_MAX: u32 = 5;

/// The origins of a site, with the pools of connections of one worker: its runtime drives them.
pub(crate) struct Origins {
    site: Arc<OriginSite>,
    /// One for each address of the site.
    clients: Vec<Client>,
}

/// A request in the form for one origin.
pub(super) struct Outgoing {
    request: Request<RequestBody>,
    /// The fields to drop from interim responses.
    stripped: Vec<HeaderName>,
    /// If its client's request is recorded.
    span: Option<OriginSpan>,
}

impl Origins {
    /// Opens no connection yet.
    pub(crate) fn new(site: Arc<OriginSite>) -> Self {
        let clients = (0..site.settings.urls.len()).map(|origin| Client::new(origin, &site)).collect();
        Self { site, clients }
    }

    pub(crate) fn site(&self) -> &Arc<OriginSite> {
        &self.site
    }

    /// The timeouts. The caller enforces the one for the next piece of a body.
    pub(crate) fn timeouts(&self) -> Timeouts {
        self.site.settings.timeouts
    }

    /// Sends a request to one of the origins. If it gets no response, it retries with another origin or connection, if that is
    /// safe. Interim responses (1xx) of the origin go to the client ([`interim`](crate::serve::interim)).
    ///
    /// A request that was never written, because its connection turned out closed, goes to another connection, whatever its
    /// method; and so does one with the whole body in memory that the origin has not processed, as HTTP/2 can say. Apart from that,
    /// only idempotent requests with the whole body in memory are retried, within the timeout for a response's head.
    ///
    /// If the site limits the requests to its origins, this one waits for its turn first.
    pub(crate) async fn send(&self, origin_request: OriginRequest<'_>) -> Result<Response<ResponseBody>, ProxyError> {
        let place = match &self.site.queue {
            Some(queue) => Some(queue.enter().await.map_err(|Full| busy(queue))?),
            None => None,
        };
        let response = self.send_at_once(origin_request).await?;
        Ok(response.map(|body| body.with_place(place)))
    }

    /// The same without waiting.
    async fn send_at_once(&self, origin_request: OriginRequest<'_>) -> Result<Response<ResponseBody>, ProxyError> {
        let started = Instant::now();
        let mut again = origin_request.again();
        let mut retries = if origin_request.method.is_idempotent() { self.site.settings.retries } else { 0 };
        let mut refusals = REFUSALS_MAX;
        let mut origin_request = origin_request;
        let mut origin = self.choose(None);
        loop {
            let left = self.timeouts().head.saturating_sub(started.elapsed());
            let failure = match self.ask(origin, origin_request, left).await {
                Ok(response) => return self.note(origin, Ok(response)),
                Err(failure) => failure,
            };
            let is_refused = failure.is_unprocessed && refusals > 0;
            let is_over = !is_refused && (retries == 0 || !failure.is_retryable);
            let next = again.take().filter(|_| !is_over && started.elapsed() < self.timeouts().head);
            let reason = if is_refused && next.is_some() {
                // Such an origin is well: it closes a connection, or has many requests.
                refusals -= 1;
                tracing::debug!(reason = failure.reason, "the origin did not process a request; it is repeated");
                None
            } else {
                retries = retries.saturating_sub(1);
                self.note::<Response<ResponseBody>>(origin, Err(failure)).err()
            };
            let Some(next) = next else { return Err(reason.unwrap_or(ProxyError::Broken)) };
            origin = self.choose(Some(origin));
            if !is_refused {
                self.site.counters[origin].load().repeated();
            }
            again = next.again();
            origin_request = next;
        }
    }

    pub(super) fn choose(&self, but: Option<usize>) -> usize {
        self.site.health.choose(Instant::now(), but)
    }

    async fn ask(
        &self,
        origin: usize,
        origin_request: OriginRequest<'_>,
        time: Duration,
    ) -> Result<Response<ResponseBody>, Failure> {
        let request = self.request(origin, origin_request)?;
        let asked = Instant::now();
        let answer = self.attempt(origin, request, time).await.and_then(sound);
        self.count(origin, asked, answer)
    }

    /// Counts a request for a client, and the bytes of its response.
    pub(super) fn count(
        &self,
        origin: usize,
        asked: Instant,
        answer: Result<Response<ResponseBody>, Failure>,
    ) -> Result<Response<ResponseBody>, Failure> {
        let counters = self.site.counters[origin].load_full();
        match &answer {
            Ok(response) => counters.answered(response.status(), asked.elapsed()),
            // It closes a connection, or has many requests, which is no error.
            Err(failure) if failure.is_unprocessed => {}
            Err(failure) => counters.failed(&failure.error),
        }
        answer.map(|response| response.map(|body| body.counted_by(counters)))
    }

    /// The request in the form for this origin.
    pub(super) fn request(&self, origin: usize, origin_request: OriginRequest<'_>) -> Result<Outgoing, Failure> {
        let settings = &self.site.settings;
        let url = &settings.urls[origin];
        let OriginRequest { method, target, mut fields, body, client_info, stripped } = origin_request;
        let target =
            url.target(target).ok_or_else(|| Failure::new(ProxyError::Outside, "the path is outside the site"))?;
        forwarded::write(&mut fields, client_info);
        let ids = client_info.and_then(|client_info| client_info.ids.as_ref());
        let span = ids.and_then(|ids| ids.begin_request((&method, url, &target), &mut fields));
        settings.host.write(&mut fields, client_info, url.host());
        if let Some(trailer) = body.trailer() {
            fields.insert(TRAILER, trailer.clone());
        }
        // By default, hyper sends no content of unknown length with these methods.
        if matches!(method, Method::GET | Method::HEAD) && !body.is_end_stream() && body.size_hint().exact().is_none() {
            fields.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
        }
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = target;
        *request.headers_mut() = fields;
        Ok(Outgoing { request, stripped, span })
    }

    /// One request and the head of its response. Each piece of the request's body restarts the timeout. The time counts as the
    /// origin's.
    pub(super) async fn attempt(
        &self,
        origin: usize,
        Outgoing { request, stripped, mut span }: Outgoing,
        time: Duration,
    ) -> Result<Response<ResponseBody>, Failure> {
        let answer = log::counted(self.response(origin, request, stripped, time)).await;
        match (&answer, &mut span) {
            (Ok(response), Some(span)) => span.answered(response.status(), response.version()),
            (Err(failure), Some(span)) => span.failed(failure.error.detail()),
            (_, None) => {}
        }
        answer.map(|response| response.map(|body| body.with_span(span)))
    }

    async fn response(
        &self,
        origin: usize,
        request: Request<RequestBody>,
        stripped: Vec<HeaderName>,
        time: Duration,
    ) -> Result<Response<ResponseBody>, Failure> {
        let progress = request.body().progress();
        let mut response = pin!(self.clients[origin].send(request, stripped));
        loop {
            let steps = progress.steps();
            match tokio::time::timeout(time, &mut response).await {
                Ok(answer) => return answer.map_err(|failure| failure.or(progress.refusal())),
                Err(_) if progress.steps() != steps => {}
                Err(_) if progress.waits_for_client() => {
                    return Err(Failure::new(ProxyError::ClientLate(time), "the client stopped sending"));
                }
                Err(_) => {
                    return Err(Failure::new(
                        ProxyError::Late(self.timeouts().head),
                        "timeout while waiting for the response",
                    ));
                }
            }
        }
    }

    /// Notes the health of the origin, and logs changes.
    pub(super) fn note<T>(&self, origin: usize, answer: Result<T, Failure>) -> Result<T, ProxyError> {
        let (health, url) = (&self.site.health, &self.site.settings.urls[origin]);
        let failure = match answer {
            Ok(value) => {
                if health.succeeded(origin) {
                    tracing::warn!(origin = %url, "the origin answers again");
                }
                return Ok(value);
            }
            Err(failure) => failure,
        };
        let Failure { error, reason, .. } = failure;
        if error.is_of_origin() && health.failed(origin, Instant::now()) {
            tracing::warn!(origin = %url, reason, "the origin fails (logged once, until it answers again)");
        } else {
            tracing::debug!(origin = %url, reason, "a request to the origin failed");
        }
        Err(error)
    }
}

/// The wait for the queue has been in vain.
fn busy(queue: &OriginQueue) -> ProxyError {
    ProxyError::Busy(queue.retry_after().as_secs().max(1))
}

/// Refuses a response with an ambiguous head.
pub(super) fn sound(response: Response<ResponseBody>) -> Result<Response<ResponseBody>, Failure> {
    match contradiction(response.status(), response.headers()) {
        Some(why) => Err(Failure::new(ProxyError::Broken, why)),
        None => Ok(response),
    }
}

impl fmt::Display for Origins {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, url) in self.site.settings.urls.iter().enumerate() {
            let comma = if place == 0 { "" } else { ", " };
            write!(formatter, "{comma}{url}")?;
        }
        Ok(())
    }
}
