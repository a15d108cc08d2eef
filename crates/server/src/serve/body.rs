//! Response bodies.
//!
//! ```text
//! Whole    one piece: an error's text, or a value pinned in the volume
//! Filling  pieces as a fill receives them; the fill never waits for this client, which could be slow ──┐
//! Pumped   pieces as fast as this client takes them                                                  <─┘ once the
//!                                                                          value turns out too large to be stored
//! ```

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::sync::mpsc::{Receiver, Sender, UnboundedReceiver, UnboundedSender, channel, unbounded_channel};

/// Pieces in flight to a client of [`Body::pumped`].
const PUMPED_PARTS_MAX: usize = 8;

/// What a sender puts into a body. Without `End` or `Failed` the body was cut off, and the client is told so.
pub(crate) enum Part {
    Piece(Bytes),
    /// The rest comes by another channel.
    Rest(Receiver<Part>),
    End,
    Failed(io::Error),
}

/// The body of a response.
pub(crate) struct Body(State);

enum State {
    Whole(Bytes),
    Filling(UnboundedReceiver<Part>),
    Pumped(Receiver<Part>),
    Ended,
}

impl Body {
    pub(crate) fn empty() -> Self {
        Self(State::Ended)
    }

    pub(crate) fn whole(bytes: impl Into<Bytes>) -> Self {
        Self(State::Whole(bytes.into()))
    }

    /// A body whose sender never waits.
    pub(crate) fn filling() -> (UnboundedSender<Part>, Self) {
        let (sender, receiver) = unbounded_channel();
        (sender, Self(State::Filling(receiver)))
    }

    /// A body whose sender is held back by the client.
    pub(crate) fn pumped() -> (Sender<Part>, Self) {
        let (sender, receiver) = pump();
        (sender, Self(State::Pumped(receiver)))
    }
}

pub(crate) fn pump() -> (Sender<Part>, Receiver<Part>) {
    channel(PUMPED_PARTS_MAX)
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let state = &mut self.get_mut().0;
        loop {
            let part = match state {
                State::Ended => return Poll::Ready(None),
                State::Whole(bytes) => {
                    let bytes = std::mem::take(bytes);
                    *state = State::Ended;
                    return Poll::Ready(Some(Ok(Frame::data(bytes))));
                }
                State::Filling(receiver) => ready!(receiver.poll_recv(context)),
                State::Pumped(receiver) => ready!(receiver.poll_recv(context)),
            };
            match part {
                Some(Part::Piece(bytes)) => return Poll::Ready(Some(Ok(Frame::data(bytes)))),
                Some(Part::Rest(receiver)) => *state = State::Pumped(receiver),
                Some(Part::End) => *state = State::Ended,
                Some(Part::Failed(error)) => {
                    *state = State::Ended;
                    return Poll::Ready(Some(Err(error)));
                }
                None => {
                    *state = State::Ended;
                    return Poll::Ready(Some(Err(io::ErrorKind::UnexpectedEof.into())));
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            State::Ended => true,
            State::Whole(bytes) => bytes.is_empty(),
            State::Filling(_) | State::Pumped(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            State::Ended => SizeHint::with_exact(0),
            State::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            State::Filling(_) | State::Pumped(_) => SizeHint::default(),
        }
    }
}
