//! Bodies on their way to clients, and into the volume.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::HeaderMap;
use http_body::Frame;

use crate::answer::{Answer, Leader};
use crate::body::{BodyStream, CutOff, End};
use crate::fragments::Keeping;
use crate::generation::version;
use crate::head::{Compressible, Head, Kind};
use crate::pages::Pages;
use crate::recent_purges::Mark;
use crate::settings::{Place, Settings};
use crate::upstream::{BoxError, Timed, UpstreamBody};

/// The thread that gets the last byte stores a body of up to this length itself, if the volume takes it without waiting.
const SHORT_BYTES_MAX: u64 = 64 << 10;

/// Collects a response while clients read it.
///
/// It receives the body as fast as the upstream sends it, because a slow client would hold up every request that waits for the
/// entry. A patient fill goes on after its clients have gone away.
pub(crate) struct Fill {
    /// The stored responses that this one joins.
    pub(crate) pages: Arc<Pages>,
    /// The settings of the front door.
    pub(crate) settings: Arc<Settings>,
    /// The key of the address.
    pub(crate) key: Vec<u8>,
    /// The answer that every waiting request gets.
    pub(crate) answer: Arc<Answer>,
    /// The body, for all its readers.
    pub(crate) stream: Arc<BodyStream>,
    /// The length of the body, if it is known.
    pub(crate) length: Option<u64>,
    /// The greatest length of the body as one entry.
    pub(crate) whole_bytes_max: u64,
    /// The greatest length of the body in fragments, if it is stored so.
    pub(crate) object_bytes_max: Option<u64>,
    /// Collects the body to its end even if no reader is left, as long as it may be stored. Not set for an answer that isn't kept.
    pub(crate) is_patient: bool,
    /// Decides by the trailers at the end whether the response is stored.
    pub(crate) takes: fn(&HeaderMap) -> bool,
    /// The upstream made it now: it doesn't come from another cache.
    pub(crate) is_new: bool,
    /// The mark of purges when the upstream was asked.
    pub(crate) mark: Mark,
    /// Held until requests can find the entry.
    pub(crate) leader: Option<Leader>,
}

impl Fill {
    /// Begins to collect. A short body, or one that has arrived, is stored when this returns, so that a client with the head finds
    /// the entry.
    pub(crate) async fn start<B: UpstreamBody>(self, body: B) {
        let is_short = self.length.is_some_and(|bytes| bytes <= SHORT_BYTES_MAX);
        let timed = Timed::new(body, self.settings.piece_timeout);
        let mut incoming = Coming { body: timed, bytes: 0, length: self.length, next: None };
        // Most short bodies come with their heads. They need no future on the heap.
        // Whatever happens, those who wait for the body learn of its end.
        let ending = Ending(Arc::clone(&self.stream));
        let may_be_here = is_short && self.is_patient && self.may_store_inline(self.length.unwrap_or(u64::MAX));
        if may_be_here && poll_fn(|context| Poll::Ready(self.take_arrived(&mut incoming, context))).await {
            let pages = Arc::clone(&self.pages);
            pages.store.write_inline(|| self.store_taken(incoming.bytes));
            return ending.0.finish(End::Whole);
        }
        let mut running = Running(Some(Box::pin(self.run(incoming, ending))));
        if !running.step().await && is_short {
            // Hyper reads a body only when it is polled. After one turn of the event loop, the bytes that have arrived are here.
            tokio::task::yield_now().await;
            running.step().await;
        }
    }

    /// Takes the pieces of a body that have arrived. True if that is all of it.
    fn take_arrived<B: UpstreamBody>(&self, incoming: &mut Coming<B>, context: &mut Context<'_>) -> bool {
        while !incoming.is_whole() {
            let Poll::Ready(polled) = incoming.body.poll_frame(context) else { return false };
            match incoming.found(polled) {
                Next::Piece(piece) if incoming.bytes <= self.whole_bytes_max => {
                    self.stream.push(piece, incoming.is_complete());
                }
                next => {
                    incoming.next = Some(next);
                    return false;
                }
            }
        }
        true
    }

    async fn run<B: UpstreamBody>(self, mut incoming: Coming<B>, ending: Ending) {
        let has_trailers = self.settings.place == Place::Origin;
        while !incoming.is_whole() {
            let pace = if self.is_patient { Pace::Own } else { Pace::WhileRead };
            match incoming.next(&self.stream, pace).await {
                Next::Piece(piece) => {
                    self.stream.push(piece, incoming.is_complete());
                    if incoming.bytes > self.whole_bytes_max {
                        return ending.0.finish(self.go_on(incoming).await);
                    }
                }
                // A gateway doesn't store trailers (RFC 9111, section 3.1), and so doesn't pass them on, either.
                Next::Trailers(trailers) if has_trailers => self.stream.push_trailers(trailers),
                Next::Trailers(_) => {}
                Next::End(End::Whole) => break,
                Next::End(end) => return ending.0.finish(end),
            }
        }
        if !self.answer.is_kept {
            return ending.0.finish(End::Whole);
        }
        let (bytes, pages) = (incoming.bytes, Arc::clone(&self.pages));
        if self.may_store_inline(bytes) {
            pages.store.write_inline(|| self.store_taken(bytes));
        } else {
            // The thread has already logged its panic.
            let _ = tokio::task::spawn_blocking(move || self.store_taken(bytes)).await;
        }
        ending.0.finish(End::Whole);
    }

    /// Whether the thread that gets the last of so many bytes may store the body itself.
    fn may_store_inline(&self, bytes: u64) -> bool {
        bytes <= SHORT_BYTES_MAX && self.answer.variant.is_none() && self.pages.store.allows_inline_writes()
    }

    /// Stores a body of so many bytes, all of which were taken.
    fn store_taken(self, bytes: u64) {
        let trailers = self.stream.trailers();
        let Some(pieces) = self.stream.pieces().filter(|_| (self.takes)(&trailers)) else { return };
        let answer = &self.answer;
        let head = Head::new(Kind::Response(answer.terms), answer.status, answer.fields.clone());
        let may_be_compressed = !answer.codings.is_empty()
            && trailers.is_empty()
            && self.settings.compression.as_ref().is_some_and(|compression| compression.takes_length(bytes));
        let compressible = may_be_compressed.then(|| Compressible { version: version(), codings: answer.codings });
        let trailers = (!trailers.is_empty()).then(|| Box::new(trailers));
        let head = Head { trailers, compressible, ..head };
        let kept = self.pages.keep(&self.key, answer, &head, &pieces, self.mark, self.settings.lasting());
        if let Some(kept_key) = kept.as_deref().filter(|_| self.is_new) {
            self.pages.tell(&self.key, kept_key, answer);
        }
        if kept.is_none() && !self.pages.may_be_purged_since(self.mark) {
            // The body was too large, for instance. Further requests ask for themselves, and don't wait in vain.
            self.pages.unstorable.insert(&self.key);
        }
    }

    /// Receives the rest of a body that is too large for one entry, as fast as its slowest reader takes it.
    async fn go_on<B: UpstreamBody>(self, mut incoming: Coming<B>) -> End {
        let Self { pages, settings, key, answer, stream, object_bytes_max, mark, leader, .. } = self;
        let (has_trailers, may_be_kept) = (settings.place == Place::Origin, answer.is_kept);
        let mut keeping =
            object_bytes_max.map(|most| Keeping::new((Arc::clone(&pages), settings), key.clone(), answer, mark, most));
        for piece in stream.pieces().unwrap_or_default() {
            keeping = kept(keeping, &piece).await;
        }
        // No request can join any more.
        drop(leader);
        stream.flow();
        loop {
            if may_be_kept && keeping.is_none() {
                pages.unstorable.insert(&key);
            }
            let pace = if keeping.is_some() { Pace::OfReaders } else { Pace::WhileRead };
            match incoming.next(&stream, pace).await {
                Next::Piece(piece) => {
                    let copy = piece.clone();
                    stream.push(piece, incoming.is_complete());
                    keeping = kept(keeping, &copy).await;
                }
                Next::Trailers(trailers) => {
                    if has_trailers {
                        stream.push_trailers(trailers);
                    }
                }
                Next::End(End::Whole) => break,
                Next::End(end) => return end,
            }
        }
        if let Some(keeping) = keeping {
            keeping.finish().await;
        }
        End::Whole
    }
}

/// A body that arrives.
struct Coming<B> {
    body: Timed<B>,
    /// The number of bytes that have arrived.
    bytes: u64,
    /// The number of bytes that will arrive, if that is known.
    length: Option<u64>,
    /// An item that came before it was wanted.
    next: Option<Next>,
}

/// How fast a body is received.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pace {
    /// As fast as it arrives, whether or not a client reads it.
    Own,
    /// As fast as its slowest reader takes it. Without a reader, as fast as it arrives.
    OfReaders,
    /// As fast as its slowest reader takes it, until the last reader ends.
    WhileRead,
}

/// The next item of a body.
enum Next {
    Piece(Bytes),
    Trailers(HeaderMap),
    End(End),
}

impl<B: UpstreamBody> Coming<B> {
    async fn next(&mut self, stream: &BodyStream, pace: Pace) -> Next {
        if let Some(next) = self.next.take() {
            return next;
        }
        let next = poll_fn(|context| {
            if pace != Pace::Own && !ready!(stream.poll_room(context)) && pace == Pace::WhileRead {
                return Poll::Ready(None);
            }
            self.body.poll_frame(context).map(Some)
        });
        match next.await {
            None => Next::End(End::Broken(CutOff::new(io::ErrorKind::BrokenPipe, "all readers are gone"))),
            Some(polled) => self.found(polled),
        }
    }

    fn found(&mut self, polled: Option<Result<Frame<Bytes>, BoxError>>) -> Next {
        match polled {
            None => Next::End(self.end()),
            Some(Ok(frame)) => self.frame(frame),
            Some(Err(error)) => Next::End(End::Broken(CutOff::new(kind(&error), error))),
        }
    }

    fn frame(&mut self, frame: Frame<Bytes>) -> Next {
        match frame.into_data() {
            Ok(piece) => {
                self.bytes += piece.len() as u64;
                Next::Piece(piece)
            }
            Err(frame) => Next::Trailers(frame.into_trailers().unwrap_or_default()),
        }
    }

    fn end(&self) -> End {
        match self.length {
            Some(length) if length != self.bytes => {
                End::Broken(CutOff::new(io::ErrorKind::UnexpectedEof, "it is not as long as it says"))
            }
            _ => End::Whole,
        }
    }

    /// Whether the whole body is known to have arrived. A client that has the last byte has to find the body stored.
    fn is_complete(&self) -> bool {
        self.length == Some(self.bytes)
    }

    /// Whether nothing comes any more: the body knows that it has ended, and no item waits.
    fn is_whole(&self) -> bool {
        self.next.is_none() && self.is_complete() && self.body.body().is_end_stream()
    }
}

/// The kind of input or output error that this error is.
pub(crate) fn kind(error: &BoxError) -> io::ErrorKind {
    error.downcast_ref::<io::Error>().map_or(io::ErrorKind::Other, io::Error::kind)
}

/// Ends the body for its readers when the fill ends early, by a panic or by the end of the runtime.
struct Ending(Arc<BodyStream>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.finish(End::Broken(CutOff::new(io::ErrorKind::Interrupted, "its fill was given up")));
    }
}

/// A fill that a request drives itself at first. Then it goes on as a task of its own, even if the request is given up.
struct Running<F: Future<Output = ()> + Send + 'static>(Option<Pin<Box<F>>>);

impl<F: Future<Output = ()> + Send> Running<F> {
    /// Goes on as far as it can without waiting. True if it has ended.
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
        // After a panic the fill can't go on. Without a runtime the program ends, and no client waits for the answer.
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
