//! The TLS handshake of a connection, before its requests.
//!
//! It runs in the connection's own task. `head_timeout` bounds it, and the connection is registered as any other: it makes room when
//! descriptors run out, and it ends when the server stops.

use std::future::poll_fn;
use std::io;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;

use arc_swap::ArcSwap;
use eyewall_tls::ACME_TLS;
use rustls::server::Acceptor;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_rustls::server::TlsStream;
use tokio_rustls::{LazyConfigAcceptor, StartHandshake};

use super::common::Common;
use super::connection::{self, Connected};
use super::connection_state::FIRST_REQUEST;
use super::farewell::Farewell;
use super::held::Place;
use super::write_timeout::WriteTimeout;
use crate::key::Scheme;
use crate::serve::arrival::Arrival;
use crate::serve::stop::Stop;
use crate::serve::tls::Tls;

/// A fatal alert, `unrecognized_name` (RFC 6066, section 3; RFC 8446, section 6.2), in a record of its own. rustls would send
/// `access_denied`, of which browsers say nothing useful.
const UNRECOGNIZED_NAME: [u8; 7] = [21, 3, 3, 0, 2, 2, 112];

/// Shakes hands by the certificates of `begun`, and answers the requests of the connection.
pub(super) async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    client: IpAddr,
    (place, begun): (Place, Arc<Common>),
    common: Arc<ArcSwap<Common>>,
    mut stopping: watch::Receiver<Stop>,
) {
    let Some(tls) = begun.service.tls() else { return };
    let connected = Connected::register(&begun, place).await;
    let stream = WriteTimeout::new(stream, Arc::clone(&connected.state));
    // The write timeout is below TLS, where each byte that the client takes counts.
    let shaken = {
        let shaking = async { shake(greeting(stream, &mut stopping).await?, tls).await };
        let mut shaking = pin!(timeout(begun.limits.head_timeout.0, shaking));
        tokio::select! {
            biased;
            shaken = shaking.as_mut() => shaken,
            _ = poll_fn(|_| connected.state.poll_order()) => return,
        }
    };
    let stream = match shaken {
        Ok(Ok(Some(stream))) => stream,
        Ok(Ok(None)) => return,
        Ok(Err(error)) => return tracing::debug!(%client, %error, "a TLS handshake failed"),
        Err(_) => return tracing::debug!(%client, "a TLS handshake took too long"),
    };
    connected.state.begin();
    let server_name = stream.get_ref().1.server_name().map(|name| Arc::from(name.to_ascii_lowercase()));
    let arrival = Arrival { scheme: Scheme::Https, server_name, ..Arrival::clear(client) };
    let stream = Farewell::new(stream, Arc::clone(&connected.state));
    drop(begun);
    connection::converse(stream, arrival, connected, common, stopping).await;
}

/// Reads the client's first message. A server that stops waits for it as long as for a first
/// request; after a handover, as long as for a head.
async fn greeting<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    stopping: &mut watch::Receiver<Stop>,
) -> io::Result<StartHandshake<S>> {
    let stopped = async {
        // An error means that all senders are gone.
        let _ = stopping.wait_for(|stop| *stop > Stop::HandedOver).await;
        sleep(FIRST_REQUEST).await;
    };
    tokio::select! {
        biased;
        start = LazyConfigAcceptor::new(Acceptor::default(), stream) => start,
        () = stopped => Err(io::Error::new(io::ErrorKind::ConnectionAborted, "the server stops")),
    }
}

/// The rest of the handshake. `None`: the connection was an authority's, which wanted the handshake alone (RFC 8737, section 3).
async fn shake<S: AsyncRead + AsyncWrite + Unpin>(
    mut start: StartHandshake<S>,
    tls: &Tls,
) -> io::Result<Option<TlsStream<S>>> {
    let hello = start.client_hello();
    let is_challenge = hello.alpn().is_some_and(|mut offered| offered.any(|name| name == ACME_TLS));
    let unknown = hello.server_name().filter(|name| !is_challenge && !tls.knows(name));
    if let Some(name) = unknown {
        let error = io::Error::new(io::ErrorKind::NotFound, format!("there is no certificate for {name}"));
        start.io.write_all(&UNRECOGNIZED_NAME).await?;
        start.io.shutdown().await?;
        return Err(error);
    }
    let mut stream = start.into_stream(Arc::clone(&tls.config)).await?;
    if stream.get_ref().1.alpn_protocol() == Some(ACME_TLS) {
        stream.shutdown().await?;
        return Ok(None);
    }
    Ok(Some(stream))
}
