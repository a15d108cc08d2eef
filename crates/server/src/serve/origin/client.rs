//! One worker's connections to one origin: pools for HTTP/1.1 without and with content of requests, and one for HTTP/2.

use http::header::UPGRADE;
use http::{HeaderName, Request, Response};
use hyper_util::client::legacy::Client as HyperPool;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use super::connector::Connector;
use super::error::Failure;
use super::http1::{self, POOL_IDLE_MAX};
use super::http2::{Pool, Sent};
use super::origins::{HEAD_BYTES_MAX, POOL_IDLE};
use super::request::RequestBody;
use super::response_body::ResponseBody;
use super::site::OriginSite;
use crate::config::origin::Http2;
use crate::serve::interim;

/// The connections to one origin.
pub(super) struct Client {
    http1: http1::Pool,
    /// For requests with content over HTTP/1.1, other methods than GET, and upgrades.
    hyper: HyperPool<Connector, RequestBody>,
    /// None if the origin gets HTTP/1.1 only.
    http2: Option<Pool>,
}

impl Client {
    /// Opens no connection yet.
    pub(super) fn new(origin: usize, site: &OriginSite) -> Self {
        let (settings, url, counters) = (&site.settings, &site.settings.urls[origin], &site.counters[origin]);
        let (name, timeout) = (settings.server_name.as_ref(), settings.timeouts.connect);
        let connector = Connector::new(url, &site.tls, name, settings.http2, timeout, counters);
        let has_http2 = match settings.http2 {
            Http2::Always => true,
            Http2::Auto => url.is_secure(),
            Http2::Never => false,
        };
        let http2 = has_http2.then(|| Pool::new(connector.clone()));
        let http1 = http1::Pool::new(connector.clone());
        let hyper = HyperPool::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(POOL_IDLE)
            .pool_max_idle_per_host(POOL_IDLE_MAX)
            .http1_max_buf_size(HEAD_BYTES_MAX)
            // A request that was never written, because its connection turned out closed, goes to another connection.
            .retry_canceled_requests(true)
            .build(connector);
        Self { http1, hyper, http2 }
    }

    /// Sends a request, and returns the head of its response. A request for another protocol goes by HTTP/1.1 always. Interim responses
    /// go to the client of this task without the `stripped` fields.
    pub(super) async fn send(
        &self,
        mut request: Request<RequestBody>,
        stripped: Vec<HeaderName>,
    ) -> Result<Response<ResponseBody>, Failure> {
        let is_upgrade = request.headers().contains_key(UPGRADE);
        if let Some(pool) = self.http2.as_ref().filter(|_| !is_upgrade) {
            match pool.send(request).await? {
                Sent::Answered(response) => return Ok(response),
                Sent::Http1(unsent) => request = *unsent,
            }
        }
        if http1::takes(&request) && !is_upgrade {
            return self.http1.send(&request, &stripped).await;
        }
        interim::listen(&mut request, stripped);
        let answer = self.hyper.request(request).await;
        answer.map(|response| response.map(ResponseBody::from)).map_err(|error| Failure::of(&error, error.is_connect()))
    }
}
