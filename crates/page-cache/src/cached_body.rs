//! The bodies of responses to clients.

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError, Weak};
use std::task::{Context, Poll, ready};
use std::{io, time::Duration};

use bytes::{Buf as _, Bytes};
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};

use crate::body::{BodyReader, BodyStream};
use crate::upstream::{BoxError, Timed};

/// The body of a response from the cache. It is one of these: pinned bytes of the volume, the upstream's own body of type `B`, or
/// the upstream's body while it arrives and is stored.
///
/// Bytes of the volume stay in place until the last `Bytes` of the body is dropped. A slow client keeps them from eviction for that
/// long.
#[derive(Debug)]
pub struct CachedBody<B>(State<B>);

#[derive(Debug)]
enum State<B> {
    Ended,
    /// All that is left of the body.
    Pieces(VecDeque<Bytes>, Option<Box<HeaderMap>>),
    /// A body that the upstream sends to this client alone.
    Passed(Box<Passed<B>>),
    /// A body that the upstream sends to all requests that wait for it.
    Shared(BodyReader),
    /// Fragments. Each is looked up when the client has taken the one before.
    Drawn(Drawn),
}

/// A body that is made while the client takes it.
pub(crate) trait Draw: Send {
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>>;
}

/// The lock only makes the body `Sync`.
struct Drawn(Mutex<Box<dyn Draw>>);

impl fmt::Debug for Drawn {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Drawn").finish_non_exhaustive()
    }
}

/// A body of the upstream, or a part of one.
#[derive(Debug)]
struct Passed<B> {
    incoming: Timed<B>,
    cut: Option<Cut>,
}

/// The bytes of a body that the client wants.
#[derive(Debug)]
struct Cut {
    /// The number of bytes before them.
    before: u64,
    /// The number of them that are left.
    left: u64,
}

impl<B> CachedBody<B> {
    /// A body without bytes.
    pub fn empty() -> Self {
        Self(State::Ended)
    }

    /// A body whose bytes are all available.
    pub fn whole(bytes: impl Into<Bytes>) -> Self {
        Self::pieces(VecDeque::from([bytes.into()]), HeaderMap::new())
    }

    /// A body whose bytes are all available, followed by these trailer fields.
    pub fn pieces(pieces: VecDeque<Bytes>, trailers: HeaderMap) -> Self {
        Self(State::Pieces(pieces, (!trailers.is_empty()).then(|| Box::new(trailers))))
    }

    /// A body that another request has asked for.
    pub fn shared(reader: BodyReader) -> Self {
        Self(State::Shared(reader))
    }

    pub(crate) fn drawn(body: impl Draw + 'static) -> Self {
        Self(State::Drawn(Drawn(Mutex::new(Box::new(body)))))
    }

    /// The body that it shares with other requests.
    pub fn stream(&self) -> Option<Weak<BodyStream>> {
        match &self.0 {
            State::Shared(reader) => Some(reader.stream()),
            _ => None,
        }
    }
}

impl<B: Body<Data = Bytes, Error: Into<BoxError>>> CachedBody<B> {
    /// The upstream's own body, if it is passed on.
    pub fn upstream_body(&self) -> Option<&B> {
        match &self.0 {
            State::Passed(passed) => Some(passed.incoming.body()),
            _ => None,
        }
    }

    /// The upstream's own body, with its trailers. It fails if a piece takes longer than `timeout`.
    pub fn passed(body: B, timeout: Option<Duration>) -> Self {
        Self(State::Passed(Box::new(Passed { incoming: Timed::new(body, timeout), cut: None })))
    }

    /// The bytes `wanted` of the upstream's body. It fails if a piece takes longer than `timeout`, or if the body ends before they
    /// do.
    pub fn cut(body: B, timeout: Option<Duration>, wanted: &Range<u64>) -> Self {
        let cut = Cut { before: wanted.start, left: wanted.end - wanted.start };
        Self(State::Passed(Box::new(Passed { incoming: Timed::new(body, timeout), cut: Some(cut) })))
    }
}

impl<B: Body<Data = Bytes, Error: Into<BoxError>>> Passed<B> {
    fn poll_frame(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.cut.is_none() {
            return self.incoming.poll_frame(context);
        }
        loop {
            let Some(cut) = self.cut.as_mut().filter(|cut| cut.left > 0) else { return Poll::Ready(None) };
            let (before, left) = (cut.before, cut.left);
            let frame = match ready!(self.incoming.poll_frame(context)) {
                Some(Ok(frame)) => frame,
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(Some(Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()))),
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
}

impl<B: Body<Data = Bytes, Error: Into<BoxError>>> Body for CachedBody<B> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let state = &mut self.get_mut().0;
        let next = match state {
            State::Ended => None,
            State::Pieces(pieces, trailers) => match pieces.pop_front() {
                Some(piece) => Some(Ok(Frame::data(piece))),
                None => trailers.take().map(|trailers| Ok(Frame::trailers(*trailers))),
            },
            State::Passed(passed) => ready!(passed.poll_frame(context)),
            State::Shared(reader) => ready!(reader.poll_frame(context)).map(|frame| frame.map_err(Into::into)),
            State::Drawn(drawn) => {
                let drawn = drawn.0.get_mut().unwrap_or_else(PoisonError::into_inner);
                ready!(drawn.poll_next(context)).map(|piece| Ok(Frame::data(piece?)))
            }
        };
        if !matches!(next, Some(Ok(_))) {
            *state = State::Ended;
        }
        Poll::Ready(next)
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            State::Ended => true,
            State::Pieces(pieces, trailers) => pieces.iter().all(Bytes::is_empty) && trailers.is_none(),
            State::Passed(passed) => match &passed.cut {
                Some(cut) => cut.left == 0,
                None => passed.incoming.body().is_end_stream(),
            },
            State::Shared(_) | State::Drawn(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            State::Ended => SizeHint::with_exact(0),
            State::Pieces(pieces, _) => SizeHint::with_exact(pieces.iter().map(|piece| piece.len() as u64).sum()),
            State::Passed(passed) => match &passed.cut {
                Some(cut) => SizeHint::with_exact(cut.left),
                None => passed.incoming.body().size_hint(),
            },
            State::Shared(reader) => reader.left().map_or_else(SizeHint::default, SizeHint::with_exact),
            State::Drawn(_) => SizeHint::default(),
        }
    }
}
