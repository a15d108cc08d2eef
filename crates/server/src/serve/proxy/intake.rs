//! A body as it comes in from the origin, and all who read along.
//!
//! ```text
//!            keeps all                               keeps what a reader lacks
//! origin ──> [piece][piece][piece] ──too large──>    [piece][piece] <── the origin waits while this is much
//!             ^ who joins begins here                 ^ the slowest reader; nobody joins any more
//! ```
//! As long as the body may become an entry, all of it is kept: whoever asks for the same meanwhile begins at its start, and no
//! slow reader holds up the others. That is bounded by the largest entry.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;

/// What is kept for the slowest reader of a body that won't be an entry.
const WINDOW_BYTES: usize = 512 << 10;

/// A body that comes in.
#[derive(Default)]
pub(crate) struct Intake {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    pieces: VecDeque<Bytes>,
    /// The number of the first of them; those before are gone.
    first: u64,
    bytes: usize,
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
    Broken(io::ErrorKind, String),
}

/// Where a reader is.
#[derive(Default)]
struct Place {
    next: u64,
    waker: Option<Waker>,
}

/// Somebody who gets the body from its start.
pub(crate) struct Reader {
    intake: Arc<Intake>,
    number: usize,
}

impl Intake {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One who reads along; `None` if the start is gone, or the body was cut off: who comes now can ask for himself.
    pub(crate) fn reader(self: &Arc<Self>) -> Option<Reader> {
        let mut state = self.state();
        if state.is_flowing || matches!(state.end, Some(End::Broken(..))) {
            return None;
        }
        let number = state.readers.iter().position(Option::is_none).unwrap_or(state.readers.len());
        if number == state.readers.len() {
            state.readers.push(None);
        }
        state.readers[number] = Some(Place::default());
        Some(Reader { intake: Arc::clone(self), number })
    }

    pub(crate) fn push(&self, piece: Bytes) {
        let mut state = self.state();
        state.bytes += piece.len();
        state.pieces.push_back(piece);
        state.let_go();
        state.wake_readers();
    }

    /// The last piece of a body, which readers get by [`finish`](Self::finish) only: whoever has it finds the body stored.
    pub(crate) fn push_last(&self, piece: Bytes) {
        self.state().is_held = true;
        self.push(piece);
    }

    /// From now on only what readers lack is kept.
    pub(crate) fn flow(&self) {
        let mut state = self.state();
        state.is_flowing = true;
        state.is_held = false;
        state.let_go();
    }

    /// Waits until the readers have taken enough for the next piece; false if there are none left.
    pub(crate) async fn room(&self) -> bool {
        std::future::poll_fn(|context| {
            let mut state = self.state();
            if state.readers.iter().all(Option::is_none) {
                return Poll::Ready(false);
            }
            if state.bytes < WINDOW_BYTES {
                return Poll::Ready(true);
            }
            state.pusher = Some(context.waker().clone());
            Poll::Pending
        })
        .await
    }

    /// All of the body so far, if all was kept.
    pub(crate) fn pieces(&self) -> Option<Vec<Bytes>> {
        let state = self.state();
        (!state.is_flowing).then(|| state.pieces.iter().cloned().collect())
    }

    /// What is kept and, as long as more comes, `read_ahead` of the connection that it comes by: the share of each reader.
    pub(crate) fn bytes_per_reader(&self, read_ahead: u64) -> u64 {
        let state = self.state();
        let ahead = if state.end.is_none() { read_ahead } else { 0 };
        (state.bytes as u64 + ahead) / state.readers.iter().flatten().count().max(1) as u64
    }

    /// Whether it was cut off by now.
    pub(crate) fn is_broken(&self) -> bool {
        matches!(self.state().end, Some(End::Broken(..)))
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
        self.readers.iter_mut().flatten().filter_map(|place| place.waker.take()).for_each(Waker::wake);
    }

    /// Drops what no reader lacks.
    fn let_go(&mut self) {
        if !self.is_flowing {
            return;
        }
        let slowest = self.readers.iter().flatten().map(|place| place.next).min();
        let end = self.first + self.pieces.len() as u64;
        while self.first < slowest.unwrap_or(end) {
            let Some(piece) = self.pieces.pop_front() else { break };
            self.first += 1;
            self.bytes -= piece.len();
        }
        if let Some(pusher) = self.pusher.take_if(|_| self.bytes < WINDOW_BYTES || slowest.is_none()) {
            pusher.wake();
        }
    }
}

impl Reader {
    pub(crate) fn intake(&self) -> Weak<Intake> {
        Arc::downgrade(&self.intake)
    }

    /// The next piece; `None` at the body's end.
    pub(crate) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        let mut state = self.intake.state();
        let State { pieces, first, end, readers, is_held, .. } = &mut *state;
        let there = pieces.len() - usize::from(*is_held);
        // It is there from the reader's making to its end.
        let Some(Some(place)) = readers.get_mut(self.number) else { return Poll::Ready(None) };
        if let Some(piece) = pieces.range(..there).nth((place.next - *first) as usize) {
            let piece = piece.clone();
            place.next += 1;
            state.let_go();
            return Poll::Ready(Some(Ok(piece)));
        }
        match end {
            Some(End::Whole) => Poll::Ready(None),
            Some(End::Broken(kind, words)) => Poll::Ready(Some(Err(io::Error::new(*kind, words.clone())))),
            None => {
                place.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
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
        while let Some(piece) = poll_fn(|context| reader.poll_next(context)).await {
            bytes.extend_from_slice(&piece.unwrap());
        }
        bytes
    }

    #[tokio::test]
    async fn who_joins_late_gets_all_of_it() {
        let intake = Arc::new(Intake::default());
        let mut first = intake.reader().unwrap();
        intake.push(Bytes::from_static(b"one "));
        let mut late = intake.reader().unwrap();
        intake.push(Bytes::from_static(b"two"));
        intake.finish(End::Whole);
        assert_eq!(rest(&mut first).await, b"one two");
        assert_eq!(rest(&mut late).await, b"one two");
        assert_eq!(intake.pieces().unwrap().concat(), b"one two");
    }

    #[tokio::test]
    async fn a_body_that_flows_waits_for_its_slowest_reader_and_lets_nobody_join() {
        let intake = Arc::new(Intake::default());
        let (mut quick, mut slow) = (intake.reader().unwrap(), intake.reader().unwrap());
        intake.push(Bytes::from_static(b"start "));
        intake.flow();
        assert!(intake.reader().is_none());
        assert!(intake.pieces().is_none());
        intake.push(Bytes::from(vec![7; WINDOW_BYTES]));
        for _ in 0..2 {
            poll_fn(|context| quick.poll_next(context)).await.unwrap().unwrap();
        }
        let mut room = Box::pin(intake.room());
        let is_pending = poll_fn(|context| Poll::Ready(room.as_mut().poll(context).is_pending())).await;
        assert!(is_pending, "the slow one has read nothing yet");
        for _ in 0..2 {
            poll_fn(|context| slow.poll_next(context)).await.unwrap().unwrap();
        }
        assert!(room.await);
        assert_eq!(intake.state().bytes, 0);
        drop((quick, slow));
        assert!(!intake.room().await, "nobody reads any more");
    }

    #[tokio::test]
    async fn the_last_piece_comes_with_the_end() {
        let intake = Arc::new(Intake::default());
        let mut reader = intake.reader().unwrap();
        intake.push_last(Bytes::from_static(b"all"));
        let is_pending = poll_fn(|context| Poll::Ready(reader.poll_next(context).is_pending())).await;
        assert!(is_pending, "it isn't stored yet");
        assert_eq!(intake.pieces().unwrap().concat(), b"all");
        intake.finish(End::Whole);
        assert_eq!(rest(&mut reader).await, b"all");
    }

    #[tokio::test]
    async fn a_body_that_was_cut_off_says_so_to_all() {
        let intake = Arc::new(Intake::default());
        let mut reader = intake.reader().unwrap();
        intake.push(Bytes::from_static(b"half"));
        intake.finish(End::Broken(io::ErrorKind::TimedOut, "late".to_owned()));
        poll_fn(|context| reader.poll_next(context)).await.unwrap().unwrap();
        let error = poll_fn(|context| reader.poll_next(context)).await.unwrap().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(intake.reader().is_none(), "who comes now can ask for himself");
    }
}
