//! A connection to a collector, which takes one message after the other.

use std::error::Error;
use std::io;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST, RETRY_AFTER, USER_AGENT};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use tokio_rustls::TlsConnector;

use super::exporters::Destination;
use crate::serve::origin::{self, TlsError, client_config};

pub(super) type BoxError = Box<dyn Error + Send + Sync>;

/// The longest body of a response that is read.
const ANSWER_BYTES_MAX: usize = 64 << 10;
const AGENT: &str = concat!("eyewall/", env!("CARGO_PKG_VERSION"));

/// A collector, and the connection to it.
pub(super) struct Collector {
    url: Uri,
    fields: HeaderMap,
    tcp: HttpConnector,
    tls: TlsConnector,
    open: Option<SendRequest<Full<Bytes>>>,
}

/// The answer of a collector.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    /// How long to wait before the next message.
    pub(super) retry_after: Option<Duration>,
    pub(super) body: Bytes,
}

impl Collector {
    /// Opens no connection yet.
    ///
    /// # Errors
    /// The address has https, and there are no certificates of authorities.
    pub(super) fn new(destination: &Destination) -> Result<Self, TlsError> {
        let tls = client_config(destination.url.is_secure(), None)?;
        let mut tcp = HttpConnector::new();
        tcp.set_nodelay(true);
        tcp.enforce_http(false);
        let mut fields = destination.fields.clone();
        fields.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        fields.entry(USER_AGENT).or_insert(HeaderValue::from_static(AGENT));
        Ok(Self { url: destination.url.traces(), fields, tcp, tls: tls.into(), open: None })
    }

    /// Sends a message. The caller bounds the time.
    ///
    /// # Errors
    /// There is no connection, or it broke.
    pub(super) async fn post(&mut self, message: Bytes) -> Result<Answer, BoxError> {
        let open = match self.open.take() {
            Some(mut open) => open.ready().await.is_ok().then_some(open),
            None => None,
        };
        let mut connection = match open {
            Some(open) => open,
            None => self.connect().await?,
        };
        let mut request = Request::post(self.url.path()).body(Full::new(message))?;
        request.headers_mut().clone_from(&self.fields);
        let host = self.url.authority().map(Authority::as_str).unwrap_or_default();
        request.headers_mut().insert(HOST, HeaderValue::from_str(host)?);
        let (head, body) = connection.send_request(request).await?.into_parts();
        let retry_after = head.headers.get(RETRY_AFTER).and_then(wait_of);
        let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await?.to_bytes();
        self.open = Some(connection);
        Ok(Answer { status: head.status, retry_after, body })
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, BoxError> {
        let stream = origin::open(self.tcp.clone(), self.url.clone(), &self.tls, None).await?;
        let (mut connection, driver) = handshake(TokioIo::new(stream)).await?;
        // It ends with the connection, which this collector owns.
        tokio::spawn(driver);
        connection.ready().await.map_err(io::Error::other)?;
        Ok(connection)
    }
}

/// Seconds, or a time (RFC 9110, section 10.2.3).
fn wait_of(value: &HeaderValue) -> Option<Duration> {
    let text = value.to_str().ok()?.trim();
    match text.parse() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => httpdate::parse_http_date(text).ok()?.duration_since(SystemTime::now()).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collector_says_when_to_try_again() {
        let wait = |text| wait_of(&HeaderValue::from_static(text));
        assert_eq!(wait(" 7"), Some(Duration::from_secs(7)));
        assert!(wait("Fri, 01 Jan 2100 00:00:00 GMT").is_some_and(|wait| wait > Duration::from_hours(24)));
        assert_eq!((wait("Sat, 01 Jan 2000 00:00:00 GMT"), wait("soon")), (None, None));
    }
}
