//! HTTP/1.1 and HTTP/2 on one socket.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::Watcher;
use tokio::net::TcpStream;

use super::patience::Patient;
use crate::serve::service::Service;

/// How long a client may take to send a request's head; it also ends idle connections.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// The longest head of a request.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// The most fields of a request.
const FIELDS_MAX: usize = 100;
/// Requests of an HTTP/2 connection at once.
const STREAMS_MAX: u32 = 100;
/// How often a silent HTTP/2 client is asked whether it is there, and how long it has to say so.
const PING_EVERY: Duration = Duration::from_secs(30);

/// Answers the requests of a connection until it ends, or in order once the watched ones are told to.
pub(super) async fn serve(stream: TcpStream, service: Arc<Service>, watcher: Watcher) {
    // Only a delay is lost without it.
    let _ = stream.set_nodelay(true);
    let Ok(client) = stream.peer_addr() else { return };
    let answer = service_fn(move |request| {
        let service = Arc::clone(&service);
        async move { Ok::<_, Infallible>(service.answer(request, client.ip()).await) }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_headers(FIELDS_MAX)
        .max_buf_size(HEAD_BYTES_MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(HEAD_TIMEOUT)
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(HEAD_BYTES_MAX as u32);
    let connection = builder.serve_connection_with_upgrades(TokioIo::new(Patient::new(stream)), answer).into_owned();
    if let Err(error) = watcher.watch(connection).await {
        tracing::debug!(%error, "a connection ended early");
    }
}
