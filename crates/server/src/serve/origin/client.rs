//! One worker's connections to one origin: a pool for each version of HTTP.

use http::header::UPGRADE;
use http::{Request, Response};
use hyper_util::client::legacy::Client as Http1Pool;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use super::connector::Connector;
use super::error::Failure;
use super::http2::{Pool, ResponseBody, Sent};
use super::origins::{HEAD_BYTES_MAX, POOL_IDLE};
use super::request::RequestBody;
use super::site::OriginSite;
use crate::config::origin::Http2;
use crate::config::origin_url::OriginUrl;

/// The most idle connections of a worker to one origin.
const POOL_IDLE_MAX: usize = 64;

/// The connections to one origin.
pub(super) struct Client {
    http1: Http1Pool<Connector, RequestBody>,
    /// None if the origin gets HTTP/1.1 only.
    http2: Option<Pool>,
}

impl Client {
    /// Opens no connection yet.
    pub(super) fn new(url: &OriginUrl, site: &OriginSite) -> Self {
        let settings = &site.settings;
        let (name, timeout) = (settings.server_name.as_ref(), settings.timeouts.connect);
        let connector = Connector::new(url, &site.tls, name, settings.http2, timeout);
        let has_http2 = match settings.http2 {
            Http2::Always => true,
            Http2::Auto => url.is_secure(),
            Http2::Never => false,
        };
        let http2 = has_http2.then(|| Pool::new(connector.clone()));
        let http1 = Http1Pool::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(POOL_IDLE)
            .pool_max_idle_per_host(POOL_IDLE_MAX)
            .http1_max_buf_size(HEAD_BYTES_MAX)
            // A request that was never written, because its connection turned out closed, goes to another connection.
            .retry_canceled_requests(true)
            .build(connector);
        Self { http1, http2 }
    }

    /// Sends a request, and returns the head of its response. A request for another protocol goes by HTTP/1.1 always.
    pub(super) async fn send(&self, mut request: Request<RequestBody>) -> Result<Response<ResponseBody>, Failure> {
        if let Some(pool) = self.http2.as_ref().filter(|_| !request.headers().contains_key(UPGRADE)) {
            match pool.send(request).await? {
                Sent::Answered(response) => return Ok(response),
                Sent::Http1(unsent) => request = *unsent,
            }
        }
        let answer = self.http1.request(request).await;
        answer.map(|response| response.map(ResponseBody::from)).map_err(|error| Failure::of(&error, error.is_connect()))
    }
}
