//! A body that arrives, and its readers.
//!
//! ```text
//!            keeps all                               keeps what a reader lacks
//! source ──> [piece][piece][piece] ──too large──>    [piece][piece] <── the source waits while this is much
//!             ^ a new reader begins here              ^ the slowest reader; no new readers
//! ```
//! All of the body is kept as long as it may become an entry. A request that joins meanwhile begins at the start, and no slow
//! reader holds up the others. The size of the largest entry bounds what is kept.

use std::collections::VecDeque;
use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker, ready};
use std::{fmt, io};

use bytes::Bytes;
use http::HeaderMap;
use http_body::Frame;

/// How much is kept for the slowest reader of a body that won't become an entry.
const WINDOW_BYTES: usize = 512 << 10;

/// A body that arrives.
#[derive(Debug)]
pub struct BodyStream {
    length: Option<u64>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    pieces: VecDeque<Bytes>,
    /// The number of the first piece that is kept; earlier ones are gone.
    first: u64,
    bytes: usize,
    trailers: HeaderMap,
    is_flowing: bool,
    /// No reader gets the last piece yet.
    is_held: bool,
    end: Option<End>,
    readers: Vec<Option<Place>>,
    /// The task that pushes, while it waits for the readers.
    pusher: Option<Waker>,
}

/// How a body ended.
#[derive(Debug, Clone)]
pub enum End {
    /// The body is complete.
    Whole,
    /// The body was cut off.
    Broken(CutOff),
}

/// Why a body ended before its end.
#[derive(Debug, Clone)]
pub struct CutOff {
    kind: io::ErrorKind,
    words: Arc<str>,
}

impl CutOff {
    /// A body that was cut off for this reason.
    pub fn new(kind: io::ErrorKind, words: impl fmt::Display) -> Self {
        Self { kind, words: words.to_string().into() }
    }
}

impl fmt::Display for CutOff {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "the response was cut off: {}", self.words)
    }
}

impl Error for CutOff {}

impl From<CutOff> for io::Error {
    fn from(CutOff { kind, words }: CutOff) -> Self {
        Self::new(kind, &*words)
    }
}

/// The position of a reader.
#[derive(Debug, Default)]
struct Place {
    next: u64,
    waker: Option<Waker>,
}

/// A reader that gets the body from its start.
#[derive(Debug)]
pub struct BodyReader {
    stream: Arc<BodyStream>,
    number: usize,
    taken: u64,
    has_trailers: bool,
}

impl BodyStream {
    /// A body of this length, if it is known.
    pub fn new(length: Option<u64>) -> Self {
        Self { length, state: Mutex::default() }
    }

    /// The length of the body, if it is known.
    pub fn length(&self) -> Option<u64> {
        self.length
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A reader from the start. `None` if the start is gone, or if the body was cut off: a new request asks the upstream itself.
    pub fn reader(self: &Arc<Self>) -> Option<BodyReader> {
        let mut state = self.state();
        if state.is_flowing || matches!(state.end, Some(End::Broken(_))) {
            return None;
        }
        let number = state.readers.iter().position(Option::is_none).unwrap_or(state.readers.len());
        if number == state.readers.len() {
            state.readers.push(None);
        }
        state.readers[number] = Some(Place::default());
        Some(BodyReader { stream: Arc::clone(self), number, taken: 0, has_trailers: false })
    }

    /// Adds the next piece. Readers get a piece that is known to be the last one only from [`finish`](Self::finish), so that a
    /// client which has it finds the body stored.
    pub fn push(&self, piece: Bytes, is_last: bool) {
        let mut state = self.state();
        state.is_held = is_last;
        state.bytes += piece.len();
        state.pieces.push_back(piece);
        state.let_go();
        state.wake_readers();
    }

    /// Adds the trailer fields.
    pub fn push_trailers(&self, trailers: HeaderMap) {
        self.state().trailers.extend(trailers);
    }

    /// From now on, keeps only the pieces that a reader lacks.
    pub fn flow(&self) {
        let mut state = self.state();
        state.is_flowing = true;
        state.is_held = false;
        state.let_go();
    }

    /// Ready when the readers have taken enough for the next piece; at once if all pieces are kept. False if no reader is left. The
    /// last reader wakes the caller when it goes, even after this was ready.
    pub fn poll_room(&self, context: &mut Context<'_>) -> Poll<bool> {
        let mut state = self.state();
        let room = state.room();
        if room != Poll::Ready(false) {
            state.pusher = Some(context.waker().clone());
        }
        room
    }

    /// Waits until the readers have taken enough for the next piece. False if no reader is left.
    pub async fn room(&self) -> bool {
        std::future::poll_fn(|context| {
            let mut state = self.state();
            let room = state.room();
            if room.is_pending() {
                state.pusher = Some(context.waker().clone());
            }
            room
        })
        .await
    }

    /// The pieces of the body so far, if all were kept.
    pub fn pieces(&self) -> Option<Vec<Bytes>> {
        let state = self.state();
        (!state.is_flowing).then(|| state.pieces.iter().cloned().collect())
    }

    /// The trailer fields so far.
    pub fn trailers(&self) -> HeaderMap {
        self.state().trailers.clone()
    }

    /// Each reader's share of the kept bytes and, while more arrive, of `read_ahead`, the buffer of the connection.
    pub fn bytes_per_reader(&self, read_ahead: u64) -> u64 {
        let state = self.state();
        let ahead = if state.end.is_none() { read_ahead } else { 0 };
        (state.bytes as u64 + ahead) / state.readers.iter().flatten().count().max(1) as u64
    }

    /// Whether the body has been cut off.
    pub fn is_broken(&self) -> bool {
        matches!(self.state().end, Some(End::Broken(_)))
    }

    /// Ends the body. A second call has no effect.
    pub fn finish(&self, end: End) {
        let mut state = self.state();
        state.end.get_or_insert(end);
        state.is_held = false;
        state.wake_readers();
    }
}

impl State {
    fn wake_readers(&mut self) {
        self.readers.iter_mut().flatten().filter_map(|place| place.waker.take()).for_each(Waker::wake);
    }

    /// Whether there is room for the next piece. False if no reader is left.
    fn room(&self) -> Poll<bool> {
        match self.readers.iter().all(Option::is_none) {
            true => Poll::Ready(false),
            false if self.is_flowing && self.bytes >= WINDOW_BYTES => Poll::Pending,
            false => Poll::Ready(true),
        }
    }

    /// Drops the pieces that every reader has, and wakes the task that pushes.
    fn let_go(&mut self) {
        let slowest = self.readers.iter().flatten().map(|place| place.next).min();
        if self.is_flowing {
            let end = self.first + self.pieces.len() as u64;
            while self.first < slowest.unwrap_or(end) {
                let Some(piece) = self.pieces.pop_front() else { break };
                self.first += 1;
                self.bytes -= piece.len();
            }
        }
        if let Some(pusher) = self.pusher.take_if(|_| slowest.is_none() || self.is_flowing && self.bytes < WINDOW_BYTES)
        {
            pusher.wake();
        }
    }
}

impl BodyReader {
    /// The body that it reads.
    pub fn stream(&self) -> Weak<BodyStream> {
        Arc::downgrade(&self.stream)
    }

    /// The next piece; `None` at the end of the content.
    pub fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, CutOff>>> {
        let mut state = self.stream.state();
        let State { pieces, first, end, readers, is_held, .. } = &mut *state;
        let there = pieces.len() - usize::from(*is_held);
        // The place exists as long as the reader does.
        let Some(Some(place)) = readers.get_mut(self.number) else { return Poll::Ready(None) };
        if let Some(piece) = pieces.range(..there).nth((place.next - *first) as usize) {
            let piece = piece.clone();
            place.next += 1;
            self.taken += piece.len() as u64;
            state.let_go();
            return Poll::Ready(Some(Ok(piece)));
        }
        match end {
            Some(End::Whole) => Poll::Ready(None),
            Some(End::Broken(cut_off)) => Poll::Ready(Some(Err(cut_off.clone()))),
            None => {
                place.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }

    /// The next piece, or the trailer fields; `None` at the end of the body.
    pub fn poll_frame(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, CutOff>>> {
        match ready!(self.poll_piece(context)) {
            Some(piece) => Poll::Ready(Some(piece.map(Frame::data))),
            None if self.has_trailers => Poll::Ready(None),
            None => {
                self.has_trailers = true;
                let trailers = self.stream.trailers();
                Poll::Ready((!trailers.is_empty()).then(|| Ok(Frame::trailers(trailers))))
            }
        }
    }

    /// How many bytes are left, if that is known.
    pub fn left(&self) -> Option<u64> {
        self.stream.length.map(|length| length.saturating_sub(self.taken))
    }
}

impl Drop for BodyReader {
    fn drop(&mut self) {
        let mut state = self.stream.state();
        state.readers[self.number] = None;
        state.let_go();
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    async fn rest(reader: &mut BodyReader) -> Vec<u8> {
        let mut bytes = Vec::new();
        while let Some(piece) = poll_fn(|context| reader.poll_piece(context)).await {
            bytes.extend_from_slice(&piece.unwrap());
        }
        bytes
    }

    #[tokio::test]
    async fn a_late_reader_gets_the_whole_body() {
        let stream = Arc::new(BodyStream::new(None));
        let mut first = stream.reader().unwrap();
        stream.push(Bytes::from_static(b"one "), false);
        let mut late = stream.reader().unwrap();
        stream.push(Bytes::from_static(b"two"), false);
        stream.finish(End::Whole);
        assert_eq!(rest(&mut first).await, b"one two");
        assert_eq!(rest(&mut late).await, b"one two");
        assert_eq!(stream.pieces().unwrap().concat(), b"one two");
    }

    #[tokio::test]
    async fn a_flowing_body_waits_for_its_slowest_reader_and_takes_no_new_ones() {
        let stream = Arc::new(BodyStream::new(None));
        let (mut quick, mut slow) = (stream.reader().unwrap(), stream.reader().unwrap());
        stream.push(Bytes::from_static(b"start "), false);
        stream.flow();
        assert!(stream.reader().is_none());
        assert!(stream.pieces().is_none());
        stream.push(Bytes::from(vec![7; WINDOW_BYTES]), false);
        for _ in 0..2 {
            poll_fn(|context| quick.poll_piece(context)).await.unwrap().unwrap();
        }
        let mut room = Box::pin(stream.room());
        let is_pending = poll_fn(|context| Poll::Ready(room.as_mut().poll(context).is_pending())).await;
        assert!(is_pending, "the slow one has read nothing yet");
        for _ in 0..2 {
            poll_fn(|context| slow.poll_piece(context)).await.unwrap().unwrap();
        }
        assert!(room.await);
        assert_eq!(stream.state().bytes, 0);
        drop((quick, slow));
        assert!(!stream.room().await, "nobody reads any more");
    }

    #[tokio::test]
    async fn readers_get_the_last_piece_at_the_end() {
        let stream = Arc::new(BodyStream::new(Some(3)));
        let mut reader = stream.reader().unwrap();
        stream.push(Bytes::from_static(b"all"), true);
        let is_pending = poll_fn(|context| Poll::Ready(reader.poll_piece(context).is_pending())).await;
        assert!(is_pending, "it isn't stored yet");
        assert_eq!(stream.pieces().unwrap().concat(), b"all");
        assert_eq!(reader.left(), Some(3));
        stream.finish(End::Whole);
        assert_eq!((rest(&mut reader).await, reader.left()), (b"all".to_vec(), Some(0)));
    }

    #[tokio::test]
    async fn every_reader_of_a_body_that_was_cut_off_gets_the_error() {
        let stream = Arc::new(BodyStream::new(None));
        let mut reader = stream.reader().unwrap();
        stream.push(Bytes::from_static(b"half"), false);
        stream.finish(End::Broken(CutOff::new(io::ErrorKind::TimedOut, "late")));
        poll_fn(|context| reader.poll_piece(context)).await.unwrap().unwrap();
        let error = poll_fn(|context| reader.poll_piece(context)).await.unwrap().unwrap_err();
        assert!(error.to_string().ends_with("late"), "{error}");
        assert_eq!(io::Error::from(error).kind(), io::ErrorKind::TimedOut);
        assert!(stream.reader().is_none(), "who comes now can ask for himself");
    }
}
