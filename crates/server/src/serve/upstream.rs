//! The origin: its address, a pool of connections to it, and what can go wrong.

use std::error::Error as _;
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};

/// Shorter than the five seconds after which many servers close an idle connection, so that few requests meet one that
/// is just being closed.
const POOL_IDLE: Duration = Duration::from_secs(4);

/// The address of an origin: `http://` and a host, with a port if it isn't 80.
#[derive(Debug, Clone)]
pub struct OriginUrl {
    authority: Authority,
}

impl FromStr for OriginUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.parse::<Uri>().map_err(|error| error.to_string())?.into_parts();
        match parts.scheme {
            Some(scheme) if scheme == Scheme::HTTP => {}
            Some(scheme) if scheme == Scheme::HTTPS => {
                return Err("https:// origins can't be used yet; give an http:// address of the same server".to_owned());
            }
            _ => return Err("an origin is an address such as http://127.0.0.1:3000".to_owned()),
        }
        if parts.path_and_query.is_some_and(|path| path != "/") {
            return Err("an origin has no path; give the host and the port only".to_owned());
        }
        let authority = parts.authority.filter(|authority| !authority.as_str().contains('@'));
        let authority = authority.ok_or("an origin is a host and a port, without a user name")?;
        Ok(Self { authority })
    }
}

impl fmt::Display for OriginUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "http://{}", self.authority)
    }
}

/// Why the origin gave no response. The words are for its clients, and name no address.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    #[error("the origin can't be reached")]
    Unreachable,
    #[error("the origin broke off or did not speak HTTP")]
    Broken,
    #[error("the origin did not answer within {}", crate::units::duration(*.0))]
    Late(Duration),
}

impl Fault {
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::Unreachable | Self::Broken => StatusCode::BAD_GATEWAY,
            Self::Late(_) => StatusCode::GATEWAY_TIMEOUT,
        }
    }

    /// A token for `Cache-Status`.
    pub(crate) fn detail(&self) -> &'static str {
        match self {
            Self::Unreachable => "origin-unreachable",
            Self::Broken => "origin-broken",
            Self::Late(_) => "origin-late",
        }
    }
}

/// A client of the origin, with a pool of connections.
pub(crate) struct Upstream {
    origin: OriginUrl,
    client: Client<HttpConnector, Empty<Bytes>>,
    timeout: Duration,
    /// Whether the last fetch failed. Its changes are told, since an outage is one piece of news, however many ask
    /// meanwhile. A race tells one of them twice.
    is_failing: AtomicBool,
}

impl Upstream {
    pub(crate) fn new(origin: OriginUrl, timeout: Duration) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(POOL_IDLE)
            .build(connector);
        Self { origin, client, timeout, is_failing: AtomicBool::new(false) }
    }

    pub(crate) fn origin(&self) -> &OriginUrl {
        &self.origin
    }

    /// The longest wait for a response to begin, or for its next piece.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Asks the origin; `Host` is the origin's own.
    pub(crate) async fn fetch(
        &self,
        method: Method,
        target: &Uri,
        fields: HeaderMap,
    ) -> Result<Response<Incoming>, Fault> {
        let target = target.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
        let uri = Uri::builder()
            .scheme(Scheme::HTTP)
            .authority(self.origin.authority.clone())
            .path_and_query(target)
            .build()
            .map_err(|_| Fault::Broken)?;
        let mut request = Request::new(Empty::new());
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        *request.headers_mut() = fields;
        match tokio::time::timeout(self.timeout, self.client.request(request)).await {
            Ok(Ok(response)) => {
                if self.is_failing.load(Ordering::Relaxed) && self.is_failing.swap(false, Ordering::Relaxed) {
                    tracing::warn!(origin = %self.origin, "the origin answers again");
                }
                Ok(response)
            }
            Ok(Err(error)) => Err(self.fault(&error)),
            Err(_) => {
                self.tell("no answer in time");
                Err(Fault::Late(self.timeout))
            }
        }
    }

    fn fault(&self, error: &hyper_util::client::legacy::Error) -> Fault {
        let mut reason = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            reason = format!("{reason}: {cause}");
            source = cause.source();
        }
        self.tell(&reason);
        if error.is_connect() { Fault::Unreachable } else { Fault::Broken }
    }

    fn tell(&self, reason: &str) {
        if self.is_failing.swap(true, Ordering::Relaxed) {
            tracing::debug!(origin = %self.origin, reason, "the origin fails");
        } else {
            tracing::warn!(origin = %self.origin, reason, "the origin fails (told once, until it answers again)");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_plain_http_and_a_host() {
        assert_eq!("http://127.0.0.1:3000/".parse::<OriginUrl>().unwrap().to_string(), "http://127.0.0.1:3000");
        assert_eq!("http://[::1]:80".parse::<OriginUrl>().unwrap().to_string(), "http://[::1]:80");
        for wrong in ["", "example.org", "https://a", "http://a/b", "http://a/?q", "http://u:p@a", "ftp://a", "http://"]
        {
            assert!(wrong.parse::<OriginUrl>().is_err(), "{wrong}");
        }
        assert!("https://a".parse::<OriginUrl>().unwrap_err().contains("http:// address"));
    }
}
