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
use tokio::time::{Sleep, sleep};

use super::proxy::fragments::Sequence;
use super::proxy::intake::Reader;

/// The body of a response.
pub(crate) struct Body(State);

enum State {
    Ended,
    /// All that is left: of an error's text, or of a value that is pinned in the volume.
    Pieces(VecDeque<Bytes>),
    /// What the origin sends to this client alone.
    Passed(Box<Passed>),
    /// What the origin sends to all who asked for the same.
    Shared(Reader),
    /// A file of a folder.
    File(eyewall_files::Body),
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

    /// The origin's own, trailers included. It fails where no piece comes in `timeout`.
    pub(crate) fn passed(incoming: Incoming, timeout: Duration) -> Self {
        Self(State::Passed(Box::new(Passed { incoming, timeout, alarm: None })))
    }

    pub(crate) fn shared(reader: Reader) -> Self {
        Self(State::Shared(reader))
    }

    pub(crate) fn file(body: eyewall_files::Body) -> Self {
        Self(State::File(body))
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
            State::Passed(passed) => ready!(passed.poll_frame(context)),
            State::Shared(reader) => ready!(reader.poll_next(context)).map(|piece| piece.map(Frame::data)),
            State::File(body) => ready!(body.poll_piece(context)).map(|piece| piece.map(Frame::data)),
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
            State::File(body) => body.bytes_left() == 0,
            State::Shared(_) | State::Drawn(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            State::Ended => SizeHint::with_exact(0),
            State::Pieces(pieces) => SizeHint::with_exact(pieces.iter().map(|piece| piece.len() as u64).sum()),
            State::Passed(passed) => passed.incoming.size_hint(),
            State::File(body) => SizeHint::with_exact(body.bytes_left()),
            State::Shared(_) | State::Drawn(_) => SizeHint::default(),
        }
    }
}
