//! TLS between nodes: the certificate of this node, and the connections to others.
//!
//! The certificate proves which node answers, for the host of its address, and encrypts what both say. The fleet's key proves who asks
//! (`sign`), so nodes need no certificates as clients.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use eyewall_page_cache::upstream::BoxError;
use eyewall_tls::clock::Clock;
use eyewall_tls::{Certificates, HostFiles, MinimumVersion, Tickets, Watched};
use http::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};
use tower_service::Service;

use crate::config::fleet::{Fleet as Table, PeerList, PeerUrl};
use crate::serve::error::Error;
use crate::serve::origin::{Stream, TlsError, client_config, open};
use crate::serve::tls::{self, Upkeep};

/// The timeout of a connection's beginning: name, TCP and TLS together.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// The same at the node that is asked, for TLS.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// What nodes speak over TLS (RFC 7301).
const ALPN: &[u8] = b"http/1.1";

/// Shakes hands with nodes that ask.
#[derive(Clone)]
pub(super) struct Acceptor(TlsAcceptor);

impl Acceptor {
    /// Reads the certificate of this node. `None`: it has none, and answers in clear text. Dropping the second part ends the care for
    /// the certificate's files.
    ///
    /// # Errors
    /// The files hold no certificate with its key, or the system gives no thread.
    pub(super) fn start(table: &Table, clock: &Arc<dyn Clock>) -> Result<Option<(Self, Upkeep)>, Error> {
        let Some(files) = table.peer_identity() else { return Ok(None) };
        let own = vec![files.clone()];
        let watched = Watched::open(vec![HostFiles { hosts: Vec::new(), files: vec![files], may_be_missing: false }])?;
        let certificates = Arc::new(Certificates::new(None));
        let tickets = Arc::new(Tickets::in_memory(Arc::clone(clock))?);
        let (config, upkeep) = tls::begin(watched, own, &certificates, tickets, MinimumVersion::Tls13, clock)?;
        let mut config = ServerConfig::clone(&config);
        config.alpn_protocols = vec![ALPN.to_vec()];
        Ok(Some((Self(Arc::new(config).into()), upkeep)))
    }

    /// `None`: the other side gave up, doesn't trust this node, or isn't one.
    pub(super) async fn accept(&self, stream: TcpStream) -> Option<TlsStream<TcpStream>> {
        let shaken = tokio::time::timeout(HANDSHAKE_TIMEOUT, self.0.accept(stream)).await;
        let shaken = shaken.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        shaken.inspect_err(|error| tracing::debug!(%error, "a TLS handshake with a peer failed")).ok()
    }
}

/// Opens connections to other nodes, with TLS to those that have `https://`.
#[derive(Clone)]
pub(super) struct Connector {
    tcp: HttpConnector,
    tls: TlsConnector,
}

impl Connector {
    /// Reads the trusted certificates.
    ///
    /// # Errors
    /// There are none, and this node may need some.
    pub(super) fn new(table: &Table) -> Result<Self, TlsError> {
        let ca_file = table.peer_ca_file.as_ref().map(|path| path.get_ref().as_path());
        let (is_sure, is_possible) = match table.peers.as_ref().map(toml::Spanned::get_ref) {
            Some(PeerList::Known(urls)) => (urls.iter().any(PeerUrl::is_secure), false),
            Some(PeerList::Found) => (table.peer_cert_file.is_some(), true),
            None => (false, false),
        };
        let tls = match client_config(is_sure || is_possible, ca_file) {
            // A fleet in clear text needs none.
            Err(TlsError::NoSystemRoots) if !is_sure => client_config(false, None)?,
            found => found?,
        };
        let mut tcp = HttpConnector::new();
        tcp.set_nodelay(true);
        tcp.enforce_http(false);
        Ok(Self { tcp, tls: tls.into() })
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Stream>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<TokioIo<Stream>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, address: Uri) -> Self::Future {
        let Self { tcp, tls } = self.clone();
        Box::pin(async move {
            let opening = tokio::time::timeout(CONNECT_TIMEOUT, open(tcp, address, &tls, None));
            opening.await.unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut).into())).map(TokioIo::new)
        })
    }
}
