//! Response bodies.

use std::collections::VecDeque;
use std::future::Future as _;
use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Weak;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf as _, Bytes};
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::{Sleep, sleep};

use super::proxy::fragments::Sequence;
use eyewall_page_cache::body::{BodyReader, BodyStream};

/// How far hyper reads ahead on a connection to an origin. 80 to 90 KiB were measured.
const READ_AHEAD: u64 = 88 << 10;

/// The body of a response.
pub(crate) struct Body(State);

enum State {
    Ended,
    /// The rest of an error's text, or of a value that is pinned in the volume.
    Pieces(VecDeque<Bytes>),
    /// The origin's body for this client alone.
    Passed(Box<Passed>),
    /// The origin's body for all requests for the same response.
    Shared(BodyReader),
    /// A file of a folder.
    File(eyewall_files::Body),
    /// Fragments, each looked up when the client has taken the one before it.
    Drawn(Sequence),
}

/// The heap memory of a body that its client doesn't take.
pub(crate) enum Backlog {
    /// Almost none: the body is in the volume, or in a file.
    None,
    /// The bytes that the connection to the origin has read ahead.
    Origin,
    /// These, and a share of the bytes for all readers.
    Stream(Weak<BodyStream>),
}

/// A body of the origin, or a part of it, with the longest wait for its next piece.
struct Passed {
    incoming: Incoming,
    timeout: Duration,
    /// Set when the wait begins.
    alarm: Option<Pin<Box<Sleep>>>,
    cut: Option<Cut>,
}

/// The wanted bytes of a body.
struct Cut {
    /// The number of bytes before them.
    before: u64,
    /// The number of wanted bytes that are left.
    left: u64,
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

    /// The origin's body, with its trailers. It fails if no piece comes within `timeout`.
    pub(crate) fn passed(incoming: Incoming, timeout: Duration) -> Self {
        Self(State::Passed(Box::new(Passed { incoming, timeout, alarm: None, cut: None })))
    }

    /// The `wanted` bytes of the origin's body. It fails if no piece comes within `timeout`, or if the body ends too early.
    pub(crate) fn cut(incoming: Incoming, timeout: Duration, wanted: &Range<u64>) -> Self {
        let cut = Cut { before: wanted.start, left: wanted.end - wanted.start };
        Self(State::Passed(Box::new(Passed { incoming, timeout, alarm: None, cut: Some(cut) })))
    }

    pub(crate) fn shared(reader: BodyReader) -> Self {
        Self(State::Shared(reader))
    }

    pub(crate) fn file(body: eyewall_files::Body) -> Self {
        Self(State::File(body))
    }

    pub(crate) fn backlog(&self) -> Backlog {
        match &self.0 {
            State::Passed(_) => Backlog::Origin,
            State::Shared(reader) => Backlog::Stream(reader.stream()),
            _ => Backlog::None,
        }
    }

    pub(crate) fn drawn(sequence: Sequence) -> Self {
        Self(State::Drawn(sequence))
    }
}

impl Backlog {
    /// The number of bytes now; of a body for several clients, a share.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::None => 0,
            Self::Origin => READ_AHEAD,
            Self::Stream(stream) => stream.upgrade().map_or(0, |stream| stream.bytes_per_reader(READ_AHEAD)),
        }
    }
}

impl Passed {
    fn poll_frame(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if self.cut.is_none() {
            return self.poll_incoming(context);
        }
        loop {
            let Some(cut) = self.cut.as_mut().filter(|cut| cut.left > 0) else { return Poll::Ready(None) };
            let (before, left) = (cut.before, cut.left);
            let frame = match ready!(self.poll_incoming(context)) {
                Some(Ok(frame)) => frame,
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(Some(Err(io::ErrorKind::UnexpectedEof.into()))),
            };
            let Ok(mut piece) = frame.into_data() else { continue };
            let skipped = before.min(piece.len() as u64);
            piece.advance(skipped as usize);
            piece.truncate(usize::try_from(left).unwrap_or(usize::MAX));
            self.cut = Some(Cut { before: before - skipped, left: left - piece.len() as u64 });
            if !piece.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(piece))));
            }
        }
    }

    fn poll_incoming(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
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
            State::Shared(reader) => ready!(reader.poll_piece(context)).map(|piece| Ok(Frame::data(piece?))),
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
            State::Passed(passed) => match &passed.cut {
                Some(cut) => cut.left == 0,
                None => passed.incoming.is_end_stream(),
            },
            State::File(body) => body.bytes_left() == 0,
            State::Shared(_) | State::Drawn(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            State::Ended => SizeHint::with_exact(0),
            State::Pieces(pieces) => SizeHint::with_exact(pieces.iter().map(|piece| piece.len() as u64).sum()),
            State::Passed(passed) => {
                passed.cut.as_ref().map_or_else(|| passed.incoming.size_hint(), |cut| SizeHint::with_exact(cut.left))
            }
            State::File(body) => SizeHint::with_exact(body.bytes_left()),
            State::Shared(_) | State::Drawn(_) => SizeHint::default(),
        }
    }
}
