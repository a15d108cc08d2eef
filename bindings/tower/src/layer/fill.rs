//! Bodies of the inner service on their way to clients, and into the volume.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Poll, ready};

use bytes::Bytes;
use eyewall_page_cache::head::{Head, Kind};
use eyewall_page_cache::recent_purges::Mark;
use http::HeaderMap;
use http_body::{Body, Frame};

use super::answer::Answer;
use super::answer::Leader;
use super::answer::Pages;
use super::body::{BoxError, RequestBody};
use super::settings::Settings;
use eyewall_page_cache::body::{BodyStream, CutOff, End};

/// A body up to here is stored by the thread that got its last byte, where the volume takes it without waiting.
const SHORT_BYTES_MAX: usize = 64 << 10;

/// A body of the inner service that the layer can read on any task.
pub(crate) trait Content: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static {}

impl<B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static> Content for B {}

/// A response that is collected while it goes to those who asked for it.
///
/// It is read as fast as the inner service makes it: a slow client would hold up all who wait for the entry. If the clients go
/// away, one whose length is known is collected to its end; one of unknown length, which may have none, is given up.
pub(super) struct Fill {
    pub(super) pages: Arc<Pages>,
    pub(super) settings: Arc<Settings>,
    pub(super) key: Vec<u8>,
    pub(super) answer: Arc<Answer>,
    /// How long the body will be, if that is known.
    pub(super) length: Option<u64>,
    /// How long it may be to be stored.
    pub(super) bytes_max: u64,
    /// It is collected to its end whoever reads it.
    pub(super) is_patient: bool,
    /// Whether it is to be stored, by the trailers at its end.
    pub(super) takes: fn(&HeaderMap) -> bool,
    /// What was purged when the inner service was asked.
    pub(super) mark: Mark,
    /// Held until the entry can be found.
    pub(super) leader: Option<Leader>,
}

impl Fill {
    /// Collects what is there at once, and leaves the rest to a task. What a handler has made whole is stored when this returns.
    pub(super) async fn start<B: Content>(self, body: B) {
        let mut running = Box::pin(self.run(body));
        let is_done = poll_fn(|context| Poll::Ready(running.as_mut().poll(context).is_ready())).await;
        if !is_done {
            tokio::spawn(running);
        }
    }

    async fn run<B: Content>(mut self, body: B) {
        let stream = Arc::clone(&self.answer.content);
        let ending = Ending(Arc::clone(&stream));
        let mut body = Box::pin(body);
        let (mut bytes, mut is_too_long) = (0, false);
        loop {
            match self.next(&mut body, &stream).await {
                Next::Frame(frame) => bytes += push(&stream, frame, self.length, bytes),
                Next::Failed(error) => return stream.finish(End::Broken(CutOff::new(io::ErrorKind::Other, error))),
                Next::Deserted => return,
                Next::End if self.length.is_some_and(|length| length != bytes) => {
                    return stream.finish(End::Broken(CutOff::new(
                        io::ErrorKind::UnexpectedEof,
                        "it is not as long as it says",
                    )));
                }
                Next::End => break,
            }
            if bytes > self.bytes_max && !is_too_long {
                is_too_long = true;
                self.give_up();
            }
        }
        let trailers = stream.trailers();
        if let Some(pieces) = stream.pieces().filter(|_| (self.takes)(&trailers)) {
            self.keep(pieces, trailers).await;
        }
        stream.finish(End::Whole);
        drop(ending);
    }

    /// It is too long to be stored: nobody can join any more, and it goes on as fast as its slowest reader takes it.
    fn give_up(&mut self) {
        self.pages.unstorable.insert(&self.key);
        (self.leader, self.is_patient) = (None, false);
        self.answer.content.flow();
    }

    async fn next<B: Content>(&self, body: &mut Pin<Box<B>>, stream: &BodyStream) -> Next {
        poll_fn(|context| {
            if !self.is_patient && !ready!(stream.poll_room(context)) {
                return Poll::Ready(Next::Deserted);
            }
            body.as_mut().poll_frame(context).map(|frame| match frame {
                Some(Ok(frame)) => Next::Frame(frame),
                Some(Err(error)) => Next::Failed(error.into()),
                None => Next::End,
            })
        })
        .await
    }

    async fn keep(self, pieces: Vec<Bytes>, trailers: HeaderMap) {
        let bytes: usize = pieces.iter().map(Bytes::len).sum();
        let shared = Arc::clone(&self.pages);
        let is_quick = bytes <= SHORT_BYTES_MAX && self.answer.variant.is_none() && shared.store.allows_inline_writes();
        let keep = move || {
            let answer = &self.answer;
            let head = Head::new(Kind::Response(answer.terms), answer.status, answer.fields.clone());
            let head = Head { trailers: (!trailers.is_empty()).then(|| Box::new(trailers)), ..head };
            let kept = self.pages.keep(&self.key, answer, &head, &pieces, self.mark, self.settings.lasting());
            if kept.is_none() {
                // For its size, say. Whoever comes asks for himself, and doesn't wait in vain.
                self.pages.unstorable.insert(&self.key);
            }
        };
        if is_quick {
            shared.store.write_inline(keep);
        } else {
            // Its thread has logged a panic already.
            let _ = tokio::task::spawn_blocking(keep).await;
        }
    }
}

/// What a body gives.
enum Next {
    Frame(Frame<Bytes>),
    Failed(BoxError),
    /// Nothing: nobody reads it any more.
    Deserted,
    End,
}

/// Sees to it that nobody waits for the rest of a body when its fill is no more, for a panic or the end of the runtime.
struct Ending(Arc<BodyStream>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.finish(End::Broken(CutOff::new(io::ErrorKind::Interrupted, "its fill was given up")));
    }
}

/// Returns how many bytes of content there were. Whoever has the last byte finds the body stored.
fn push(stream: &BodyStream, frame: Frame<Bytes>, length: Option<u64>, before: u64) -> u64 {
    match frame.into_data() {
        Ok(piece) => {
            let bytes = piece.len() as u64;
            stream.push(piece, length == Some(before + bytes));
            bytes
        }
        Err(frame) => {
            if let Ok(trailers) = frame.into_trailers() {
                stream.push_trailers(trailers);
            }
            0
        }
    }
}

/// What there is of a body, up to where it has more than `bytes_max` bytes.
///
/// # Errors
/// It failed: then what came of it, and the error.
pub(super) async fn collected<B: Content>(body: B, bytes_max: usize) -> Result<Collected<B>, RequestBody<B>> {
    let mut body = Box::pin(body);
    let (mut read, mut bytes, mut trailers) = (VecDeque::new(), 0, HeaderMap::new());
    while let Some(frame) = poll_fn(|context| body.as_mut().poll_frame(context)).await {
        match frame.map(Frame::into_data) {
            Ok(Ok(piece)) => {
                bytes += piece.len();
                read.push_back(piece);
            }
            Ok(Err(frame)) => trailers.extend(frame.into_trailers().unwrap_or_default()),
            Err(error) => return Err(RequestBody::failed(read, error.into())),
        }
        if bytes > bytes_max {
            return Ok(Collected { read, trailers, rest: Some(body) });
        }
    }
    Ok(Collected { read, trailers, rest: None })
}

/// What there is of a body.
pub(super) struct Collected<B> {
    pub(super) read: VecDeque<Bytes>,
    pub(super) trailers: HeaderMap,
    /// What is to come, if it is not all.
    pub(super) rest: Option<Pin<Box<B>>>,
}

impl<B> Collected<B> {
    /// Its content in one piece, if that is all there is.
    pub(super) fn whole(&self) -> Option<Bytes> {
        match (&self.rest, self.trailers.is_empty()) {
            (None, true) if self.read.len() == 1 => self.read.front().cloned(),
            (None, true) => Some(Bytes::from(self.read.iter().flatten().copied().collect::<Vec<u8>>())),
            _ => None,
        }
    }

    /// As it came.
    pub(super) fn rejoined(self) -> RequestBody<B> {
        RequestBody::rejoined(self.read, self.trailers, self.rest)
    }
}
