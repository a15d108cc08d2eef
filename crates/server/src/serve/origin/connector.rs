//! Connections to an origin: TCP, TLS over it, or a Unix socket, with a timeout. For TLS, ALPN chooses the version of HTTP.

use std::error::Error;
use std::future::{Future, poll_fn};
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use http::Uri;
use http::uri::{Authority, Scheme};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::UnixStream;
use tokio::time::sleep;
use tokio_rustls::TlsConnector;
use tower_service::Service;

use super::origins::POOL_IDLE;
use super::stream::Stream;
use crate::config::origin::Http2;
use crate::config::origin_url::{OriginUrl, Place};
use crate::serve::metrics::OriginCounters;

pub(super) type BoxError = Box<dyn Error + Send + Sync>;

/// HTTP/2 over TLS (RFC 9113, section 3.2).
const ALPN_HTTP2: &[u8] = b"h2";
/// The first wait for a Unix socket whose queue is full. Each further wait is twice as long.
const QUEUE_WAIT_MIN: Duration = Duration::from_millis(1);
const QUEUE_WAIT_MAX: Duration = Duration::from_millis(50);

/// Opens connections to one origin. A thread that may block resolves names.
#[derive(Clone)]
pub(super) struct Connector {
    place: Place,
    tcp: HttpConnector,
    tls: TlsConnector,
    /// Offers HTTP/2 by ALPN.
    tls_http2: TlsConnector,
    use_http2: Http2,
    /// The name for TLS and its certificate; by default, the host of the address.
    name: Option<ServerName<'static>>,
    timeout: Duration,
    counters: Arc<ArcSwap<OriginCounters>>,
    /// A connection on which the origin has chosen HTTP/1.1, and when, for the next request by HTTP/1.1.
    kept: Arc<Mutex<Option<(Stream, Instant)>>>,
}

/// A connection, with the version of HTTP that the origin speaks on it.
pub(super) enum Dialed {
    Http1(Stream),
    Http2(Stream),
}

/// HTTP/2 was configured, and the origin has not chosen it.
#[derive(Debug, thiserror::Error)]
#[error("the origin doesn't speak HTTP/2 (`http2 = \"always\"`)")]
pub(super) struct NoHttp2;

/// The connection was not open in time: name, TCP and TLS together.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("timeout while connecting")]
pub(super) struct ConnectTimeout(pub(super) Duration);

impl Connector {
    pub(super) fn new(
        url: &OriginUrl,
        tls: &Arc<ClientConfig>,
        name: Option<&ServerName<'static>>,
        use_http2: Http2,
        timeout: Duration,
        counters: &Arc<ArcSwap<OriginCounters>>,
    ) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.set_nodelay(true);
        // https also uses this for its TCP connections.
        tcp.enforce_http(false);
        // The clone shares the certificates and the sessions.
        let mut tls_http2 = ClientConfig::clone(tls);
        tls_http2.alpn_protocols = match use_http2 {
            Http2::Always => vec![ALPN_HTTP2.to_vec()],
            Http2::Auto | Http2::Never => vec![ALPN_HTTP2.to_vec(), b"http/1.1".to_vec()],
        };
        Self {
            place: url.place().clone(),
            tcp,
            tls: Arc::clone(tls).into(),
            tls_http2: Arc::new(tls_http2).into(),
            use_http2,
            name: name.cloned(),
            timeout,
            counters: Arc::clone(counters),
            kept: Arc::default(),
        }
    }

    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    pub(super) fn use_http2(&self) -> Http2 {
        self.use_http2
    }

    /// Opens a connection for HTTP/2. Without TLS the origin is expected to speak it.
    pub(super) async fn dial(&self) -> Result<Dialed, BoxError> {
        let stream = self.connect(&self.tls_http2).await?;
        match self.use_http2 {
            _ if stream.speaks(ALPN_HTTP2) => Ok(Dialed::Http2(stream)),
            Http2::Always => Err(NoHttp2.into()),
            Http2::Auto | Http2::Never => Ok(Dialed::Http1(stream)),
        }
    }

    /// Keeps a connection for the next request by HTTP/1.1.
    pub(super) fn keep(&self, stream: Stream) {
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = Some((stream, Instant::now()));
    }

    /// A connection for HTTP/1.1.
    pub(super) async fn open_http1(&self) -> Result<Stream, BoxError> {
        match self.take_kept() {
            Some(stream) => Ok(stream),
            None => self.connect(&self.tls).await,
        }
    }

    fn take_kept(&self) -> Option<Stream> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).take();
        kept.filter(|(_, since)| since.elapsed() < POOL_IDLE).map(|(stream, _)| stream)
    }

    /// Opens a connection, within the timeout.
    async fn connect(&self, tls: &TlsConnector) -> Result<Stream, BoxError> {
        let opening = async {
            match &self.place {
                Place::Tcp(scheme, authority) => self.connect_by_tcp(scheme, authority, tls).await,
                Place::Unix(path) => Ok(Stream::unix(connect_to_socket(path).await?)),
            }
        };
        let opened = tokio::time::timeout(self.timeout, opening).await;
        let stream = opened.unwrap_or_else(|_| Err(ConnectTimeout(self.timeout).into()))?;
        Ok(stream.counted(self.counters.load().connected()))
    }

    async fn connect_by_tcp(
        &self,
        scheme: &Scheme,
        authority: &Authority,
        tls: &TlsConnector,
    ) -> Result<Stream, BoxError> {
        let address = Uri::builder().scheme(scheme.clone()).authority(authority.clone()).path_and_query("/").build()?;
        open(self.tcp.clone(), address, tls, self.name.clone()).await
    }
}

/// Opens a TCP connection to the host of an address, and for `https` TLS over it. Its certificate must be for `name`, or for the host
/// without one.
pub(crate) async fn open(
    mut tcp: HttpConnector,
    address: Uri,
    tls: &TlsConnector,
    name: Option<ServerName<'static>>,
) -> Result<Stream, BoxError> {
    let host = address.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    let is_secure = address.scheme() == Some(&Scheme::HTTPS);
    poll_fn(|context| tcp.poll_ready(context)).await?;
    let stream = tcp.call(address).await?.into_inner();
    if !is_secure {
        return Ok(Stream::tcp(stream));
    }
    let name = match name {
        Some(name) => name,
        None => ServerName::try_from(host)?,
    };
    Ok(Stream::tls(tls.connect(name, stream).await?))
}

/// A connection to a Unix socket fails at once if the socket's queue is full, so this repeats it.
async fn connect_to_socket(path: &Path) -> io::Result<UnixStream> {
    let mut wait = QUEUE_WAIT_MIN;
    loop {
        match UnixStream::connect(path).await {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            other => return other,
        }
        sleep(wait).await;
        wait = (wait * 2).min(QUEUE_WAIT_MAX);
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Stream>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<TokioIo<Stream>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    /// The address of the request doesn't matter: each origin has a pool of its own.
    fn call(&mut self, _: Uri) -> Self::Future {
        let connector = self.clone();
        Box::pin(async move { connector.open_http1().await.map(TokioIo::new) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_full_queue_of_a_unix_socket_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.sock");
        let socket = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None).unwrap();
        socket.bind(&socket2::SockAddr::unix(&path).unwrap()).unwrap();
        socket.listen(0).unwrap();
        let mut queue = Vec::new();
        while let Ok(stream) = UnixStream::connect(&path).await {
            queue.push(stream);
        }
        let accepting = tokio::task::spawn_blocking(move || {
            for _ in 0..=queue.len() {
                socket.accept().unwrap();
            }
        });
        assert!(connect_to_socket(&path).await.is_ok());
        accepting.await.unwrap();
    }
}
