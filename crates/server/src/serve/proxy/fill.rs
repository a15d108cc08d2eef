//! Bodies from the origin on their way to clients, and into the volume.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use eyewall_page_cache::body::{BodyStream, CutOff, End};
use eyewall_page_cache::recent_purges::Mark;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;

use super::answer::Answer;
use super::answer::Leader;
use super::fragments::Keeping;
use super::pages::Pages;
use eyewall_page_cache::head::Kind;

/// A body up to here is stored by the thread that serves its clients, where the volume takes it without waiting.
const SHORT_BYTES_MAX: u64 = 64 << 10;

/// A response that is collected while it goes to those who asked for it.
///
/// It is received as fast as the origin sends it: a slow client would hold up all who wait for the entry. If the clients go
/// away, the fill goes on.
pub(super) struct Fill {
    pub(super) pages: Arc<Pages>,
    pub(super) key: Vec<u8>,
    pub(super) answer: Arc<Answer>,
    pub(super) stream: Arc<BodyStream>,
    /// How long the body will be, if that is known.
    pub(super) length: Option<u64>,
    /// How long it may be as one entry.
    pub(super) whole_bytes_max: u64,
    /// How long it may be in fragments, if it may be stored so.
    pub(super) object_bytes_max: Option<u64>,
    /// What was purged when the origin was asked.
    pub(super) mark: Mark,
    /// Held until the entry can be found.
    pub(super) _leader: Option<Leader>,
}

/// The origin's body, piece by piece.
pub(super) struct Pieces {
    incoming: Incoming,
    /// The longest wait for a piece.
    timeout: Duration,
}

impl Pieces {
    pub(super) fn new(incoming: Incoming, timeout: Duration) -> Self {
        Self { incoming, timeout }
    }

    pub(super) async fn next(&mut self) -> Option<io::Result<Bytes>> {
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
    /// Starts to collect. What is short, and came with its head, is stored when this returns, so that it leaves with its head.
    pub(super) async fn start(self, incoming: Incoming, timeout: Duration) {
        let is_short = self.length.is_some_and(|bytes| bytes <= SHORT_BYTES_MAX);
        let mut running = Running(Some(Box::pin(self.run(Pieces::new(incoming, timeout)))));
        if is_short && !running.step().await {
            // Hyper reads a body when it is asked for it: what has come is there after a turn of the loop.
            tokio::task::yield_now().await;
            running.step().await;
        }
    }

    async fn run(self, mut pieces: Pieces) {
        let ending = Ending(Arc::clone(&self.stream));
        let stream = &ending.0;
        let mut bytes = 0;
        loop {
            match pieces.next().await {
                Some(Ok(piece)) => {
                    bytes += piece.len() as u64;
                    stream.push(piece, self.length == Some(bytes));
                    if bytes > self.whole_bytes_max {
                        return stream.finish(self.go_on(pieces, bytes).await);
                    }
                }
                Some(Err(error)) => return stream.finish(End::Broken(CutOff::new(error.kind(), error))),
                None => break,
            }
        }
        let store = &self.pages.store;
        if bytes <= SHORT_BYTES_MAX && self.answer.variant.is_none() && store.allows_inline_writes() {
            store.write_inline(|| self.keep());
            drop(self);
        } else {
            // Its thread has logged a panic already.
            let _ = tokio::task::spawn_blocking(move || self.keep()).await;
        }
        stream.finish(End::Whole);
    }

    fn keep(&self) {
        if let Some(pieces) = self.stream.pieces() {
            self.pages.keep_as(&self.key, &self.answer, Kind::Response(self.answer.terms), &pieces, self.mark);
        }
    }

    /// The rest of a body that is too large to be one entry, as fast as its slowest reader takes it.
    async fn go_on(self, mut pieces: Pieces, mut bytes: u64) -> End {
        let Self { pages, key, answer, stream, length, object_bytes_max, mark, _leader: leader, .. } = self;
        let mut keeping =
            object_bytes_max.map(|most| Keeping::new(Arc::clone(&pages), key.clone(), answer, mark, most));
        for piece in stream.pieces().unwrap_or_default() {
            keeping = kept(keeping, &piece).await;
        }
        // Nobody can join any more.
        drop(leader);
        stream.flow();
        loop {
            let has_readers = stream.room().await;
            if keeping.is_none() {
                pages.unstorable.insert(&key);
                if !has_readers {
                    return End::Broken(CutOff::new(io::ErrorKind::BrokenPipe, "all readers are gone"));
                }
            }
            match pieces.next().await {
                Some(Ok(piece)) => {
                    bytes += piece.len() as u64;
                    let copy = piece.clone();
                    stream.push(piece, length == Some(bytes));
                    keeping = kept(keeping, &copy).await;
                }
                Some(Err(error)) => return End::Broken(CutOff::new(error.kind(), error)),
                None => break,
            }
        }
        if let Some(keeping) = keeping {
            keeping.finish().await;
        }
        End::Whole
    }
}

/// Sees to it that nobody waits for the rest of a body when its fill is no more, for a panic or the end of the server.
struct Ending(Arc<BodyStream>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.finish(End::Broken(CutOff::new(io::ErrorKind::Interrupted, "its fill was given up")));
    }
}

/// A fill that a request drives itself, for as long as it wants to: then it goes on as a task of its own, also where the request
/// is given up.
struct Running<F: Future<Output = ()> + Send + 'static>(Option<Pin<Box<F>>>);

impl<F: Future<Output = ()> + Send> Running<F> {
    /// Goes on as far as it can at once. True: it is done.
    async fn step(&mut self) -> bool {
        let is_done = poll_fn(|context| {
            let polled = self.0.as_mut().map(|running| running.as_mut().poll(context));
            Poll::Ready(polled.is_none_or(|polled| polled.is_ready()))
        });
        let is_done = is_done.await;
        if is_done {
            self.0 = None;
        }
        is_done
    }
}

impl<F: Future<Output = ()> + Send> Drop for Running<F> {
    fn drop(&mut self) {
        // After a panic there is nothing to go on with; without a runtime the server ends, and nobody waits for the answer.
        if std::thread::panicking() {
            return;
        }
        if let (Some(running), Ok(runtime)) = (self.0.take(), tokio::runtime::Handle::try_current()) {
            runtime.spawn(running);
        }
    }
}

async fn kept(keeping: Option<Keeping>, piece: &Bytes) -> Option<Keeping> {
    keeping?.take(piece.clone()).await.still_kept()
}
