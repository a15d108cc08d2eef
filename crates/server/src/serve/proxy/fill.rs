//! Bodies from the origin on their way to clients, and into the volume.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use eyewall::Purge;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;

use super::answer::Answer;
use super::flight::Ticket;
use super::intake::End;
use super::pages::Pages;
use super::purged::Mark;

/// A response that is collected while it goes to those who asked for it.
///
/// It is received as fast as the origin sends it: a slow client would hold up all who wait for the entry. If the clients go
/// away, the fill goes on.
pub(super) struct Fill {
    pub(super) pages: Arc<Pages>,
    pub(super) key: Vec<u8>,
    pub(super) answer: Arc<Answer>,
    /// How long the body will be, if that is known.
    pub(super) length: Option<u64>,
    /// How long it may be to be stored.
    pub(super) bytes_max: u64,
    /// What was purged when the origin was asked.
    pub(super) mark: Mark,
    /// Held until the entry can be found.
    pub(super) _ticket: Option<Ticket>,
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
                // Trailers aren't stored (RFC 9111, section 3.1), and so not passed on, either.
                Ok(Some(Ok(frame))) => {
                    if let Ok(bytes) = frame.into_data() {
                        return Some(Ok(bytes));
                    }
                }
            }
        }
    }
}

impl Fill {
    /// Starts to collect.
    pub(super) fn start(self, incoming: Incoming, timeout: Duration) {
        tokio::spawn(self.run(Pieces { incoming, timeout }));
    }

    async fn run(self, mut pieces: Pieces) {
        let answer = Arc::clone(&self.answer);
        let mut bytes = 0;
        loop {
            match pieces.next().await {
                Some(Ok(piece)) => {
                    bytes += piece.len() as u64;
                    if self.length == Some(bytes) {
                        answer.intake.push_last(piece);
                    } else {
                        answer.intake.push(piece);
                    }
                    if bytes > self.bytes_max {
                        self.pages.passes.insert(&self.key);
                        drop(self);
                        answer.intake.flow();
                        return answer.intake.finish(flow(&answer, pieces).await);
                    }
                }
                Some(Err(error)) => return answer.intake.finish(End::Broken(error.kind(), error.to_string())),
                None => break,
            }
        }
        // A panic in there was told already by its thread.
        let _ = tokio::task::spawn_blocking(move || self.keep()).await;
        answer.intake.finish(End::Whole);
    }

    fn keep(&self) {
        let Self { pages, key, answer, mark, .. } = self;
        // What was made stale since is kept for its validator.
        if pages.purged.since(*mark) != Some(Purge::Hard) {
            pages.keep(key, answer, generation);
        }
        if let Some(kind) = pages.purged.since(*mark) {
            pages.catch_up(key, kind);
        }
    }
}

/// Passes the rest of a body on that is too large to be an entry, as fast as its slowest reader takes it.
async fn flow(answer: &Answer, mut pieces: Pieces) -> End {
    while answer.intake.room().await {
        match pieces.next().await {
            Some(Ok(piece)) => answer.intake.push(piece),
            Some(Err(error)) => return End::Broken(error.kind(), error.to_string()),
            None => return End::Whole,
        }
    }
    End::Broken(io::ErrorKind::BrokenPipe, "all readers are gone".to_owned())
}

/// Any number that no other signpost had.
fn generation() -> u64 {
    let mut bits = [0; 8];
    if getrandom::fill(&mut bits).is_err() {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        bits = (now.unwrap_or_default().as_nanos() as u64).to_ne_bytes();
    }
    u64::from_ne_bytes(bits)
}
