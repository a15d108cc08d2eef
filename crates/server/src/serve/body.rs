//! Response bodies.

use std::collections::VecDeque;
use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::{Sleep, sleep};

use super::proxy::fragments::Sequence;
use super::proxy::intake::Reader;

/// Pieces in flight to a client of [`Body::pumped`].
const PUMPED_PARTS_MAX: usize = 8;

/// What a sender puts into a body. Without `End` or `Failed` the body was cut off, and the client is told so.
pub(crate) enum Part {
    Piece(Bytes),
    End,
    Failed(io::Error),
}

/// The body of a response.
pub(crate) struct Body(State);

enum State {
    Ended,
    /// All that is left: of an error's text, or of a value that is pinned in the volume.
    Pieces(VecDeque<Bytes>),
    /// Pieces as fast as this client takes them.
    Pumped(Receiver<Part>),
    /// What the origin sends to this client alone.
    Passed(Box<Passed>),
    /// What the origin sends to all who asked for the same.
    Shared(Reader),
    /// Fragments, each looked up when the client has taken what was before it.
    Drawn(Sequence),
}

/// A body of the origin, with the longest wait for its next piece.
struct Passed {
    incoming: Incoming,
    timeout: Duration,
    /// Set when the wait began.
    alarm: Option<Pin<Box<Sleep>>>,
}

impl Body {
    pub(crate) fn empty() -> Self {
        Self(State::Ended)
    }

    pub(crate) fn whole(bytes: impl Into<Bytes>) -> Self {
        Self(State::Pieces(VecDeque::from([bytes.into()])))
    }

    pub(crate) fn pieces(pieces: VecDeque<Bytes>) -> Self {
        Self(State::Pieces(pieces))
    }

    /// A body whose sender is held back by the client.
    pub(crate) fn pumped() -> (Sender<Part>, Self) {
        let (sender, receiver) = channel(PUMPED_PARTS_MAX);
        (sender, Self(State::Pumped(receiver)))
    }

    /// The origin's own, trailers included. It fails where no piece comes in `timeout`.
    pub(crate) fn passed(incoming: Incoming, timeout: Duration) -> Self {
        Self(State::Passed(Box::new(Passed { incoming, timeout, alarm: None })))
    }

    pub(crate) fn shared(reader: Reader) -> Self {
        Self(State::Shared(reader))
    }

    pub(crate) fn drawn(sequence: Sequence) -> Self {
        Self(State::Drawn(sequence))
    }
}

impl Passed {
    fn poll_frame(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.incoming).poll_frame(context) {
            self.alarm = None;
            return Poll::Ready(frame.map(|frame| frame.map_err(io::Error::other)));
        }
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(sleep(self.timeout)));
        ready!(alarm.as_mut().poll(context));
        Poll::Ready(Some(Err(io::ErrorKind::TimedOut.into())))
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let state = &mut self.get_mut().0;
        let next = match state {
            State::Ended => None,
            State::Pieces(pieces) => pieces.pop_front().map(|piece| Ok(Frame::data(piece))),
            State::Pumped(receiver) => match ready!(receiver.poll_recv(context)) {
                Some(Part::Piece(piece)) => Some(Ok(Frame::data(piece))),
                Some(Part::End) => None,
                Some(Part::Failed(error)) => Some(Err(error)),
                None => Some(Err(io::ErrorKind::UnexpectedEof.into())),
            },
            State::Passed(passed) => ready!(passed.poll_frame(context)),
            State::Shared(reader) => ready!(reader.poll_next(context)).map(|piece| piece.map(Frame::data)),
            State::Drawn(sequence) => ready!(sequence.poll_next(context)).map(|piece| piece.map(Frame::data)),
        };
        if !matches!(next, Some(Ok(_))) {
            *state = State::Ended;
        }
        Poll::Ready(next)
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            State::Ended => true,
            State::Pieces(pieces) => pieces.iter().all(Bytes::is_empty),
            State::Passed(passed) => passed.incoming.is_end_stream(),
            State::Pumped(_) | State::Shared(_) | State::Drawn(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            State::Ended => SizeHint::with_exact(0),
            State::Pieces(pieces) => SizeHint::with_exact(pieces.iter().map(|piece| piece.len() as u64).sum()),
            State::Passed(passed) => passed.incoming.size_hint(),
            State::Pumped(_) | State::Shared(_) | State::Drawn(_) => SizeHint::default(),
        }
    }
}
