//! Connections to an origin: TCP, and TLS over it, with a timeout.

use std::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tower_service::Service;

type BoxError = Box<dyn Error + Send + Sync>;
type Stream = MaybeHttpsStream<TokioIo<TcpStream>>;

/// Opens connections for the pool. A thread that may block resolves names.
#[derive(Clone)]
pub(super) struct Connector {
    inner: HttpsConnector<HttpConnector>,
    timeout: Duration,
}

/// The connection was not open in time: name, TCP and TLS together.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("timeout while connecting")]
pub(super) struct ConnectTimeout(pub(super) Duration);

impl Connector {
    /// `name` is the name for TLS and its certificate; by default, the host of the address.
    pub(super) fn new(tls: &ClientConfig, name: Option<&ServerName<'static>>, timeout: Duration) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.set_nodelay(true);
        // https also uses this for its TCP connections.
        tcp.enforce_http(false);
        // The builder takes an owned configuration; the clone shares the certificates.
        let builder = HttpsConnectorBuilder::new().with_tls_config(tls.clone()).https_or_http();
        let builder = match name {
            Some(name) => builder.with_server_name_resolver(FixedServerNameResolver::new(name.clone())),
            None => builder,
        };
        Self { inner: builder.enable_http1().wrap_connector(tcp), timeout }
    }
}

impl Service<Uri> for Connector {
    type Response = Stream;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Stream, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, origin: Uri) -> Self::Future {
        let (connecting, timeout) = (self.inner.call(origin), self.timeout);
        Box::pin(async move {
            tokio::time::timeout(timeout, connecting).await.unwrap_or_else(|_| Err(ConnectTimeout(timeout).into()))
        })
    }
}
