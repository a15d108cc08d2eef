//! Accepting connections: until the server stops, and then all that the kernel has for it already.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};

use super::Stop;
use super::connection::{self, Common};

/// How long to leave the system alone after it could not give a connection, usually for want of descriptors.
const PAUSE: Duration = Duration::from_millis(50);
/// How often that is told, at most.
const TOLD_EVERY: Duration = Duration::from_mins(1);

/// What a connection is served with, and what lives as long as it does.
#[derive(Clone)]
pub(super) struct Served {
    pub(super) common: Arc<Common>,
    pub(super) told: watch::Receiver<Stop>,
    /// The last of these that goes tells that all connections have ended.
    pub(super) alive: mpsc::Sender<()>,
}

impl Served {
    fn serve(&self, stream: TcpStream) {
        let Self { common, told, alive } = self.clone();
        tokio::spawn(async move {
            connection::serve(stream, common, told).await;
            drop(alive);
        });
    }
}

/// Accepts until the server is told to stop. Then the connections that clients have already are taken, too: their requests are
/// under way.
pub(super) async fn accept(listener: TcpListener, served: Served) {
    let mut told = served.told.clone();
    loop {
        let accepted = tokio::select! {
            biased;
            // An error: there is nobody any more who could tell.
            _ = told.wait_for(|stop| *stop != Stop::NotYet) => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => served.serve(stream),
            Err(error) => {
                if is_to_be_told() {
                    tracing::warn!(%error, "could not accept a connection; idle ones are closed to make room (told once a minute)");
                }
                served.common.shortage.send_modify(|times| *times += 1);
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
    let Ok(listener) = listener.into_std() else { return };
    // It doesn't block: the first error is that nobody waits any more.
    while let Ok((stream, _)) = listener.accept() {
        if stream.set_nonblocking(true).is_ok()
            && let Ok(stream) = TcpStream::from_std(stream)
        {
            served.serve(stream);
        }
    }
}

/// Whether the last time is long ago, for all workers together.
fn is_to_be_told() -> bool {
    static LAST_SECONDS: AtomicU64 = AtomicU64::new(0);
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    // Zero is never.
    let now = START.get_or_init(Instant::now).elapsed().as_secs() + 1;
    let last = LAST_SECONDS.load(Ordering::Relaxed);
    let is_due = last == 0 || now - last >= TOLD_EVERY.as_secs();
    is_due && LAST_SECONDS.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
}
