//! Bodies from the origin on their way to a client, and into the volume.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::sync::mpsc::{Sender, UnboundedSender};

use super::body::{Body, Part, pump};
use super::flight::Ticket;
use super::head::{Head, Kind};
use super::policy::Freshness;
use super::store::Store;

/// A response that is collected while it goes to the client who asked for it first.
///
/// It is received as fast as the origin sends it: a slow client would hold up all who wait for the entry. What it
/// receives is bounded by the largest entry, so that no more than that waits for the client in memory. If the client
/// goes away, the fill goes on.
pub(crate) struct Fill {
    pub(crate) store: Arc<Store>,
    pub(crate) key: Vec<u8>,
    /// Where to say that the response varies, if it does.
    pub(crate) signpost_key: Option<Vec<u8>>,
    pub(crate) head: Head,
    pub(crate) freshness: Freshness,
    pub(crate) received: Instant,
    /// Held until the entry can be found.
    pub(crate) ticket: Option<Ticket>,
}

/// The origin's body, piece by piece.
struct Pieces {
    incoming: Incoming,
    /// The longest wait for a piece.
    timeout: Duration,
}

impl Pieces {
    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        loop {
            match tokio::time::timeout(self.timeout, self.incoming.frame()).await {
                Err(_) => return Some(Err(io::ErrorKind::TimedOut.into())),
                Ok(None) => return None,
                Ok(Some(Err(error))) => return Some(Err(io::Error::other(error))),
                // Trailers are dropped.
                Ok(Some(Ok(frame))) => {
                    if let Ok(bytes) = frame.into_data() {
                        return Some(Ok(bytes));
                    }
                }
            }
        }
    }
}

/// Passes a body on without storing it, as fast as the client takes it.
pub(crate) fn relay(incoming: Incoming, timeout: Duration) -> Body {
    let (sender, body) = Body::pumped();
    tokio::spawn(pass_on(Pieces { incoming, timeout }, sender));
    body
}

async fn pass_on(mut pieces: Pieces, sender: Sender<Part>) {
    loop {
        let part = match pieces.next().await {
            Some(Ok(bytes)) => Part::Piece(bytes),
            Some(Err(error)) => Part::Failed(error),
            None => Part::End,
        };
        let is_last = !matches!(part, Part::Piece(_));
        // A client that is gone needs no more.
        if sender.send(part).await.is_err() || is_last {
            return;
        }
    }
}

impl Fill {
    /// Starts to collect, and gives the body for the client.
    pub(crate) fn start(self, incoming: Incoming, timeout: Duration) -> Body {
        let (sender, body) = Body::filling();
        tokio::spawn(self.run(Pieces { incoming, timeout }, sender));
        body
    }

    async fn run(self, mut pieces: Pieces, client: UnboundedSender<Part>) {
        let bytes_max = self.store.entry_bytes_max();
        let mut value = Vec::new();
        // The client may be gone at any time, which is no concern of the fill: its sends may fail.
        loop {
            match pieces.next().await {
                Some(Ok(bytes)) if (value.len() + bytes.len()) as u64 > bytes_max => {
                    drop(self);
                    let (sender, rest) = pump();
                    let _ = client.send(Part::Rest(rest));
                    let _ = sender.send(Part::Piece(bytes)).await;
                    return pass_on(pieces, sender).await;
                }
                Some(Ok(bytes)) => {
                    value.extend_from_slice(&bytes);
                    let _ = client.send(Part::Piece(bytes));
                }
                Some(Err(error)) => {
                    let _ = client.send(Part::Failed(error));
                    return;
                }
                None => break,
            }
        }
        // A panic in there was told already by its thread.
        let _ = tokio::task::spawn_blocking(move || self.keep(&value)).await;
        let _ = client.send(Part::End);
    }

    fn keep(mut self, value: &[u8]) {
        let age = self.freshness.age + self.received.elapsed();
        let Some(ttl) = self.freshness.lifetime.checked_sub(age).filter(|ttl| !ttl.is_zero()) else { return };
        self.head.age_seconds = u32::try_from(age.as_secs()).unwrap_or(u32::MAX);
        self.store.keep(&self.key, &self.head, value, Some(ttl));
        if let Some(key) = &self.signpost_key {
            let signpost = Head { kind: Kind::Signpost, fields: http::HeaderMap::new(), ..self.head.clone() };
            self.store.keep(key, &signpost, b"", Some(ttl));
        }
        drop(self.ticket.take());
    }
}
