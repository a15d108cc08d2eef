//! The origins of a site, as one worker uses them.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::header::{TRAILER, TRANSFER_ENCODING};
use http::{HeaderValue, Method, Request, Response};
use http_body::Body as _;
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use super::connector::Connector;
use super::error::{Failure, ProxyError};
use super::forwarded;
use super::framing::contradiction;
use super::request::{OriginRequest, RequestBody};
use super::response_body::ResponseBody;
use super::site::{OriginSite, Timeouts};
use crate::serve::admission::{Full, OriginQueue};
use crate::serve::{interim, log};

/// Shorter than the five seconds after which many servers close an idle connection, so few requests meet a connection that is
/// just being closed.
const POOL_IDLE: Duration = Duration::from_secs(4);
/// The most idle connections of a worker to one origin.
const POOL_IDLE_MAX: usize = 64;
/// The most bytes of a response's head (hyper itself limits the fields to a hundred), and of a piece of a body.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// The origins of a site, with the pools of connections of one worker: its runtime drives them.
pub(crate) struct Origins {
    site: Arc<OriginSite>,
    /// Creates a pool for each address of the site.
    clients: Vec<Client<Connector, RequestBody>>,
}

impl Origins {
    /// Opens no connection yet.
    pub(crate) fn new(site: Arc<OriginSite>) -> Self {
        let client = || {
            let settings = &site.settings;
            let name = settings.server_name.as_ref();
            Client::builder(TokioExecutor::new())
                .pool_timer(TokioTimer::new())
                .pool_idle_timeout(POOL_IDLE)
                .pool_max_idle_per_host(POOL_IDLE_MAX)
                .http1_max_buf_size(HEAD_BYTES_MAX)
                // A request that was never written, because its connection turned out closed, goes to another connection.
                .retry_canceled_requests(true)
                .build(Connector::new(&site.tls, name, settings.timeouts.connect))
        };
        let clients = site.settings.urls.iter().map(|_| client()).collect();
        Self { site, clients }
    }

    pub(super) fn site(&self) -> &OriginSite {
        &self.site
    }

    /// The timeouts. The caller enforces the one for the next piece of a body.
    pub(crate) fn timeouts(&self) -> Timeouts {
        self.site.settings.timeouts
    }

    /// Sends a request to one of the origins. If it gets no response, it retries with another origin or connection, if that is
    /// safe. Interim responses (1xx) of the origin go to the client ([`interim`]).
    ///
    /// A request that was never written, because its connection turned out closed, goes to another connection, whatever its
    /// method. Apart from that, only idempotent requests with the whole body in memory are retried, within the timeout for a
    /// response's head.
    ///
    /// If the site limits the requests to its origins, this one waits for its turn first.
    pub(crate) async fn send(&self, origin_request: OriginRequest<'_>) -> Result<Response<ResponseBody>, ProxyError> {
        let place = match &self.site.queue {
            Some(queue) => Some(queue.enter().await.map_err(|Full| busy(queue))?),
            None => None,
        };
        let response = self.send_at_once(origin_request).await?;
        Ok(response.map(|incoming| ResponseBody::new(incoming, place)))
    }

    /// The same without waiting.
    async fn send_at_once(&self, origin_request: OriginRequest<'_>) -> Result<Response<Incoming>, ProxyError> {
        let started = Instant::now();
        let mut again = origin_request.again();
        let mut retries = if again.is_some() { self.site.settings.retries } else { 0 };
        let mut origin_request = origin_request;
        let mut origin = self.choose(None);
        loop {
            let left = self.timeouts().head.saturating_sub(started.elapsed());
            let failure = match self.ask(origin, origin_request, left).await {
                Ok(response) => return self.note(origin, Ok(response)),
                Err(failure) => failure,
            };
            let is_over = retries == 0 || !failure.is_retryable || started.elapsed() >= self.timeouts().head;
            let error = self.note(origin, Err(failure));
            let Some(next) = again.take().filter(|_| !is_over) else { return error };
            retries -= 1;
            origin = self.choose(Some(origin));
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
    ) -> Result<Response<Incoming>, Failure> {
        let request = self.request(origin, origin_request)?;
        self.attempt(origin, request, time).await.and_then(sound)
    }

    /// The request in the form for this origin.
    pub(super) fn request(
        &self,
        origin: usize,
        origin_request: OriginRequest<'_>,
    ) -> Result<Request<RequestBody>, Failure> {
        let settings = &self.site.settings;
        let url = &settings.urls[origin];
        let OriginRequest { method, target, mut fields, body, client_info, stripped } = origin_request;
        let target =
            url.target(target).ok_or_else(|| Failure::new(ProxyError::Outside, "the path is outside the site"))?;
        forwarded::write(&mut fields, client_info);
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
        interim::listen(&mut request, stripped);
        Ok(request)
    }

    /// One request and the head of its response. Each piece of the request's body restarts the timeout. The time counts as the
    /// origin's.
    pub(super) async fn attempt(
        &self,
        origin: usize,
        request: Request<RequestBody>,
        time: Duration,
    ) -> Result<Response<Incoming>, Failure> {
        log::counted(async {
            let progress = request.body().progress();
            let mut response = pin!(self.clients[origin].request(request));
            loop {
                let steps = progress.steps();
                match tokio::time::timeout(time, &mut response).await {
                    Ok(answer) => return answer.map_err(|error| Failure::of(&error)),
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
        })
        .await
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
pub(super) fn sound(response: Response<Incoming>) -> Result<Response<Incoming>, Failure> {
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
