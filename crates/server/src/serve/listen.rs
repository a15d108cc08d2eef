//! Sockets and connections: accepting them, and ending them in order.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::service::Service;
use crate::Error;

/// How long a client may take to send a request's head; it also ends idle connections.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// How long running requests may go on after the first signal to stop.
const GRACE: Duration = Duration::from_secs(10);
/// How long to leave the system alone after it could not give a connection, for want of descriptors usually.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

pub(crate) async fn bind(address: SocketAddr) -> Result<TcpListener, Error> {
    TcpListener::bind(address).await.map_err(|source| Error::Listen { address, source })
}

/// SIGINT and SIGTERM, which both ask for an orderly end.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// Serves until a signal; then lets running requests end, until [`GRACE`] is over or a second signal comes.
pub(crate) async fn run(listener: TcpListener, service: Arc<Service>, mut stop: Signals) {
    let connections = GracefulShutdown::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.next() => break,
        };
        match accepted {
            Ok((stream, _)) => {
                tokio::spawn(connection(stream, Arc::clone(&service), &connections));
            }
            Err(error) => {
                tracing::warn!(%error, "could not accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    tokio::select! {
        () = connections.shutdown() => {}
        () = tokio::time::sleep(GRACE) => tracing::warn!("requests still running were cut off"),
        () = stop.next() => {}
    }
}

fn connection(
    stream: TcpStream,
    service: Arc<Service>,
    connections: &GracefulShutdown,
) -> impl Future<Output = ()> + use<> {
    // Only a delay is lost without it.
    let _ = stream.set_nodelay(true);
    let answer = service_fn(move |request| {
        let service = Arc::clone(&service);
        async move { Ok::<_, Infallible>(service.answer(request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .serve_connection(TokioIo::new(stream), answer);
    let watched = connections.watch(connection);
    async move {
        if let Err(error) = watched.await {
            tracing::debug!(%error, "a connection ended early");
        }
    }
}
