//! A worker: a thread with a runtime of its own, which serves the connections that it accepts.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::Stop;
use super::connection::{self, Common};

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
    common: impl Fn() -> Common,
    mut told: watch::Receiver<Stop>,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING_THREADS_MAX)
        .build()?;
    runtime.block_on(async {
        let common = Arc::new(common());
        // Each connection has a sender: the last of them that goes leaves the receiver alone.
        let (alive, mut all_gone) = mpsc::channel::<()>(1);
        let mut accepting = JoinSet::new();
        for listener in listeners {
            let listener = TcpListener::from_std(listener)?;
            accepting.spawn(accept(listener, Arc::clone(&common), told.clone(), alive.clone()));
        }
        drop(alive);
        // An error: there is nobody any more who could tell.
        let _ = told.wait_for(|stop| *stop != Stop::NotYet).await;
        accepting.shutdown().await;
        tokio::select! {
            _ = all_gone.recv() => {}
            _ = told.wait_for(|stop| *stop == Stop::AtOnce) => {}
        }
        Ok(())
    })
}

async fn accept(listener: TcpListener, common: Arc<Common>, told: watch::Receiver<Stop>, alive: mpsc::Sender<()>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let (common, told, alive) = (Arc::clone(&common), told.clone(), alive.clone());
                tokio::spawn(async move {
                    connection::serve(stream, common, told).await;
                    drop(alive);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "could not accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}
