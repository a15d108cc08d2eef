//! A worker: a thread with a runtime of its own, which serves the connections that it accepts.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::{Stop, connection};
use crate::serve::service::Service;

/// How long to leave the system alone after it could not give a connection, for want of descriptors usually.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Threads, at most, for what waits for storage.
const BLOCKING_THREADS_MAX: usize = 16;

/// Serves until it is told to stop.
///
/// # Errors
/// The system's, where the runtime can't be made.
pub(super) fn run(
    listeners: Vec<std::net::TcpListener>,
    service: impl Fn() -> Service,
    mut told: watch::Receiver<Stop>,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING_THREADS_MAX)
        .build()?;
    runtime.block_on(async {
        let service = Arc::new(service());
        let connections = Arc::new(GracefulShutdown::new());
        let mut accepting = JoinSet::new();
        for listener in listeners {
            let listener = TcpListener::from_std(listener)?;
            accepting.spawn(accept(listener, Arc::clone(&service), Arc::clone(&connections)));
        }
        // An error: there is nobody any more who could tell.
        let _ = told.wait_for(|stop| *stop != Stop::NotYet).await;
        accepting.shutdown().await;
        let Some(connections) = Arc::into_inner(connections) else { return Ok(()) };
        tokio::select! {
            () = connections.shutdown() => {}
            _ = told.wait_for(|stop| *stop == Stop::AtOnce) => {}
        }
        Ok(())
    })
}

async fn accept(listener: TcpListener, service: Arc<Service>, connections: Arc<GracefulShutdown>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(connection::serve(stream, Arc::clone(&service), connections.watcher()));
            }
            Err(error) => {
                tracing::warn!(%error, "could not accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}
