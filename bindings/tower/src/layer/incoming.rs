//! An answer of the inner service as it comes, and all who read along.
//!
//! ```text
//!            keeps all                               keeps what a reader lacks
//! inner ───> [piece][piece][piece] ──too large──>    [piece][piece] <── the inner service waits while this is much
//!             ^ who joins begins here                 ^ the slowest reader; nobody joins any more
//! ```
//! As long as the body may become an entry, all of it is kept: whoever asks for the same meanwhile begins at its start, and no
//! slow reader holds up the others. That is bounded by the largest entry.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use eyewall_http::selecting;
use eyewall_http::signpost::Variant;
use eyewall_http::terms::Terms;
use eyewall_page_cache::collapsing;
use http::{HeaderMap, StatusCode};
use http_body::Frame;

use super::body::{BoxError, CutOff};

/// What is kept for the slowest reader of a body that won't be an entry.
const WINDOW_BYTES: usize = 512 << 10;

/// The requests to the inner service that are under way.
pub(crate) type Flights = collapsing::Flights<Answer>;
/// What a request is to do about a miss.
pub(crate) type Joined = collapsing::Joined<Answer>;
/// The right, and the duty, to ask for a key.
pub(crate) type Ticket = collapsing::Ticket<Answer>;

/// What all get who wait for an answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    /// As they are stored.
    pub(crate) fields: HeaderMap,
    pub(crate) terms: Terms,
    pub(crate) variant: Option<Variant>,
    /// By which it can be purged together with others.
    pub(crate) tags: Vec<String>,
    /// That of them which all responses of its address carry.
    pub(crate) address_tag: Option<String>,
    pub(crate) intake: Arc<Intake>,
}

impl Answer {
    /// Whether it answers this request, too.
    pub(crate) fn suits(&self, request: &HeaderMap) -> bool {
        self.variant
            .as_ref()
            .is_none_or(|variant| selecting::suits(&variant.names, &variant.selecting_key, &self.fields, request))
    }
}

/// A body that comes in.
#[derive(Debug)]
pub(crate) struct Intake {
    /// How long it will be, if that is known.
    length: Option<u64>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    pieces: VecDeque<Bytes>,
    /// The number of the first of them; those before are gone.
    first: u64,
    bytes: usize,
    trailers: HeaderMap,
    is_flowing: bool,
    /// The last piece is for nobody yet.
    is_held: bool,
    end: Option<End>,
    readers: Vec<Option<Place>>,
    /// Who pushes, and waits for the readers.
    pusher: Option<Waker>,
}

/// How a body ended.
#[derive(Debug, Clone)]
pub(crate) enum End {
    Whole,
    /// It was cut off, for this reason.
    Broken(CutOff),
}

/// Where a reader is.
#[derive(Debug, Default)]
struct Place {
    next: u64,
    has_trailers: bool,
    waker: Option<Waker>,
}

/// Somebody who gets the body from its start.
#[derive(Debug)]
pub(crate) struct Reader {
    intake: Arc<Intake>,
    number: usize,
    taken: u64,
}

impl Intake {
    pub(crate) fn new(length: Option<u64>) -> Self {
        Self { length, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One who reads along; `None` if the start is gone, or the body was cut off: who comes now can ask for himself.
    pub(crate) fn reader(self: &Arc<Self>) -> Option<Reader> {
        let mut state = self.state();
        if state.is_flowing || matches!(state.end, Some(End::Broken(_))) {
            return None;
        }
        let number = state.readers.iter().position(Option::is_none).unwrap_or(state.readers.len());
        if number == state.readers.len() {
            state.readers.push(None);
        }
        state.readers[number] = Some(Place::default());
        Some(Reader { intake: Arc::clone(self), number, taken: 0 })
    }

    /// The next piece. What is known to be the last one is given to readers by [`finish`](Self::finish) only: whoever has it finds
    /// the body stored.
    pub(crate) fn push(&self, piece: Bytes, is_last: bool) {
        let mut state = self.state();
        state.is_held = is_last;
        state.bytes += piece.len();
        state.pieces.push_back(piece);
        state.let_go();
        state.wake_readers();
    }

    /// What follows the last piece.
    pub(crate) fn push_trailers(&self, trailers: HeaderMap) {
        self.state().trailers.extend(trailers);
    }

    /// From now on only what readers lack is kept.
    pub(crate) fn flow(&self) {
        let mut state = self.state();
        state.is_flowing = true;
        state.is_held = false;
        state.let_go();
    }

    /// Ready when the readers have taken enough for the next piece; false if there are none left.
    pub(crate) fn poll_room(&self, context: &mut Context<'_>) -> Poll<bool> {
        let mut state = self.state();
        if state.readers.iter().all(Option::is_none) {
            return Poll::Ready(false);
        }
        state.pusher = Some(context.waker().clone());
        if state.is_flowing && state.bytes >= WINDOW_BYTES { Poll::Pending } else { Poll::Ready(true) }
    }

    /// All of the body so far, with the trailers, if all was kept.
    pub(crate) fn kept(&self) -> Option<(Vec<Bytes>, HeaderMap)> {
        let state = self.state();
        (!state.is_flowing).then(|| (state.pieces.iter().cloned().collect(), state.trailers.clone()))
    }

    /// How it ends; what is said later has no effect.
    pub(crate) fn finish(&self, end: End) {
        let mut state = self.state();
        state.end.get_or_insert(end);
        state.is_held = false;
        state.wake_readers();
    }
}

impl State {
    fn wake_readers(&mut self) {
        for place in self.readers.iter_mut().flatten() {
            if let Some(waker) = place.waker.take() {
                waker.wake();
            }
        }
    }

    /// Drops what all readers have, and lets the pusher go on.
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

impl Reader {
    /// The next piece, or the trailers; `None` at the body's end.
    pub(crate) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let mut state = self.intake.state();
        let State { pieces, first, trailers, end, readers, is_held, .. } = &mut *state;
        let there = pieces.len() - usize::from(*is_held);
        // It is there from the reader's making to its end.
        let Some(Some(place)) = readers.get_mut(self.number) else { return Poll::Ready(None) };
        if let Some(piece) = pieces.range(..there).nth((place.next - *first) as usize) {
            let piece = piece.clone();
            place.next += 1;
            self.taken += piece.len() as u64;
            state.let_go();
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        match end {
            Some(End::Whole) if !trailers.is_empty() && !place.has_trailers => {
                place.has_trailers = true;
                Poll::Ready(Some(Ok(Frame::trailers(trailers.clone()))))
            }
            Some(End::Whole) => Poll::Ready(None),
            Some(End::Broken(cut_off)) => Poll::Ready(Some(Err(Box::new(cut_off.clone())))),
            None => {
                place.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }

    /// How many bytes are to come, if that is known.
    pub(crate) fn left(&self) -> Option<u64> {
        self.intake.length.map(|length| length.saturating_sub(self.taken))
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut state = self.intake.state();
        state.readers[self.number] = None;
        state.let_go();
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    async fn rest(reader: &mut Reader) -> Vec<u8> {
        let mut bytes = Vec::new();
        while let Some(frame) = poll_fn(|context| reader.poll_next(context)).await {
            if let Ok(piece) = frame.unwrap().into_data() {
                bytes.extend_from_slice(&piece);
            }
        }
        bytes
    }

    #[tokio::test]
    async fn who_joins_late_gets_all_of_it() {
        let intake = Arc::new(Intake::new(None));
        let mut first = intake.reader().unwrap();
        intake.push(Bytes::from_static(b"one "), false);
        let mut late = intake.reader().unwrap();
        intake.push(Bytes::from_static(b"two"), false);
        intake.finish(End::Whole);
        assert_eq!(rest(&mut first).await, b"one two");
        assert_eq!(rest(&mut late).await, b"one two");
        assert_eq!(intake.kept().unwrap().0.concat(), b"one two");
    }

    #[tokio::test]
    async fn a_body_that_flows_waits_for_its_slowest_reader_and_lets_nobody_join() {
        let intake = Arc::new(Intake::new(None));
        let (mut quick, mut slow) = (intake.reader().unwrap(), intake.reader().unwrap());
        intake.push(Bytes::from_static(b"start "), false);
        intake.flow();
        assert!(intake.reader().is_none());
        assert!(intake.kept().is_none());
        intake.push(Bytes::from(vec![7; WINDOW_BYTES]), false);
        for _ in 0..2 {
            poll_fn(|context| quick.poll_next(context)).await.unwrap().unwrap();
        }
        let is_pending = poll_fn(|context| Poll::Ready(intake.poll_room(context).is_pending())).await;
        assert!(is_pending, "the slow one has read nothing yet");
        for _ in 0..2 {
            poll_fn(|context| slow.poll_next(context)).await.unwrap().unwrap();
        }
        assert!(poll_fn(|context| intake.poll_room(context)).await);
        assert_eq!(intake.state().bytes, 0);
        drop((quick, slow));
        assert!(!poll_fn(|context| intake.poll_room(context)).await, "nobody reads any more");
    }

    #[tokio::test]
    async fn the_last_piece_comes_with_the_end() {
        let intake = Arc::new(Intake::new(Some(3)));
        let mut reader = intake.reader().unwrap();
        intake.push(Bytes::from_static(b"all"), true);
        let is_pending = poll_fn(|context| Poll::Ready(reader.poll_next(context).is_pending())).await;
        assert!(is_pending, "it isn't stored yet");
        assert_eq!((intake.kept().unwrap().0.concat(), reader.left()), (b"all".to_vec(), Some(3)));
        intake.finish(End::Whole);
        assert_eq!((rest(&mut reader).await, reader.left()), (b"all".to_vec(), Some(0)));
    }

    #[tokio::test]
    async fn a_body_that_was_cut_off_says_so_to_all() {
        let intake = Arc::new(Intake::new(None));
        let mut reader = intake.reader().unwrap();
        intake.push(Bytes::from_static(b"half"), false);
        intake.finish(End::Broken(CutOff::new("late")));
        poll_fn(|context| reader.poll_next(context)).await.unwrap().unwrap();
        let error = poll_fn(|context| reader.poll_next(context)).await.unwrap().unwrap_err();
        assert!(error.to_string().ends_with("late"), "{error}");
        assert!(intake.reader().is_none(), "who comes now can ask for himself");
    }
}
