//! Bodies: those that the layer answers with, and those that the inner service gets.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use eyewall_page_cache::body::BodyReader;

/// Any error of a body.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

pin_project! {
    /// The body of a response of a [`CacheService`](crate::CacheService): bytes of the volume, where they lie; or the inner service's
    /// own body of type `B`; or that, as it comes and is stored.
    ///
    /// Bytes of the volume are held in place until the last `Bytes` of the body is dropped: a slow client keeps them from being
    /// evicted for so long.
    #[derive(Debug)]
    pub struct CachedBody<B> {
        #[pin]
        state: State<B>,
    }
}

pin_project! {
    #[derive(Debug)]
    #[project = StateProjection]
    enum State<B> {
        Ended,
        /// All that is left.
        Pieces { pieces: VecDeque<Bytes>, trailers: HeaderMap },
        /// What the inner service sends to this client alone.
        Passed { #[pin] body: B },
        /// What it sends to all who asked for the same.
        Shared { reader: BodyReader },
    }
}

impl<B> CachedBody<B> {
    pub(crate) fn empty() -> Self {
        Self { state: State::Ended }
    }

    /// What is at hand, and followed by these trailer fields.
    pub(crate) fn pieces(pieces: VecDeque<Bytes>, trailers: HeaderMap) -> Self {
        Self { state: State::Pieces { pieces, trailers } }
    }

    pub(crate) fn passed(body: B) -> Self {
        Self { state: State::Passed { body } }
    }

    pub(crate) fn shared(reader: BodyReader) -> Self {
        Self { state: State::Shared { reader } }
    }

    /// Whether it is stored as it comes.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self.state, State::Shared { .. })
    }
}

impl<B> Body for CachedBody<B>
where
    B: Body<Data = Bytes, Error: Into<BoxError>>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let mut state = self.project().state;
        let next = match state.as_mut().project() {
            StateProjection::Ended => None,
            StateProjection::Pieces { pieces, trailers } => match pieces.pop_front() {
                Some(piece) => Some(Ok(Frame::data(piece))),
                None if trailers.is_empty() => None,
                None => Some(Ok(Frame::trailers(std::mem::take(trailers)))),
            },
            StateProjection::Passed { body } => ready!(body.poll_frame(context)).map(|frame| frame.map_err(Into::into)),
            StateProjection::Shared { reader } => {
                ready!(reader.poll_frame(context)).map(|frame| frame.map_err(Into::into))
            }
        };
        if !matches!(next, Some(Ok(_))) {
            state.set(State::Ended);
        }
        Poll::Ready(next)
    }

    fn is_end_stream(&self) -> bool {
        match &self.state {
            State::Ended => true,
            State::Pieces { pieces, trailers } => pieces.iter().all(Bytes::is_empty) && trailers.is_empty(),
            State::Passed { body } => body.is_end_stream(),
            State::Shared { .. } => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.state {
            State::Ended => SizeHint::with_exact(0),
            State::Pieces { pieces, .. } => SizeHint::with_exact(pieces.iter().map(|piece| piece.len() as u64).sum()),
            State::Passed { body } => body.size_hint(),
            State::Shared { reader } => reader.left().map_or_else(SizeHint::default, SizeHint::with_exact),
        }
    }
}

/// The body of a request as the inner service gets it: the client's own of type `B`, or content that the layer has looked at.
#[derive(Debug)]
pub struct RequestBody<B> {
    /// What has been read of it already.
    read: VecDeque<Bytes>,
    trailers: HeaderMap,
    rest: Rest<B>,
}

/// What follows what was read.
#[derive(Debug)]
enum Rest<B> {
    Nothing,
    Body(Pin<Box<B>>),
    Error(Option<BoxError>),
}

impl<B> RequestBody<B> {
    pub(crate) fn empty() -> Self {
        Self { read: VecDeque::new(), trailers: HeaderMap::new(), rest: Rest::Nothing }
    }

    pub(crate) fn passed(body: B) -> Self {
        Self { rest: Rest::Body(Box::pin(body)), ..Self::empty() }
    }

    pub(crate) fn whole(content: Bytes) -> Self {
        Self { read: VecDeque::from([content]), ..Self::empty() }
    }

    /// What was read, and what follows it.
    pub(crate) fn rejoined(read: VecDeque<Bytes>, trailers: HeaderMap, rest: Option<Pin<Box<B>>>) -> Self {
        Self { read, trailers, rest: rest.map_or(Rest::Nothing, Rest::Body) }
    }

    /// What was read before it failed.
    pub(crate) fn failed(read: VecDeque<Bytes>, error: BoxError) -> Self {
        Self { read, rest: Rest::Error(Some(error)), ..Self::empty() }
    }
}

impl<B> Body for RequestBody<B>
where
    B: Body<Data = Bytes, Error: Into<BoxError>>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some(piece) = self.read.pop_front() {
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        match &mut self.rest {
            Rest::Nothing => {}
            Rest::Error(error) => return Poll::Ready(error.take().map(Err)),
            Rest::Body(body) => match ready!(body.as_mut().poll_frame(context)) {
                Some(frame) => return Poll::Ready(Some(frame.map_err(Into::into))),
                None => self.rest = Rest::Nothing,
            },
        }
        let trailers = std::mem::take(&mut self.trailers);
        Poll::Ready(if trailers.is_empty() { None } else { Some(Ok(Frame::trailers(trailers))) })
    }

    fn is_end_stream(&self) -> bool {
        let is_over = match &self.rest {
            Rest::Nothing | Rest::Error(None) => true,
            Rest::Body(body) => body.is_end_stream(),
            Rest::Error(Some(_)) => false,
        };
        is_over && self.read.iter().all(Bytes::is_empty) && self.trailers.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        let read: u64 = self.read.iter().map(|piece| piece.len() as u64).sum();
        let rest = match &self.rest {
            Rest::Nothing => SizeHint::with_exact(0),
            Rest::Body(body) => body.size_hint(),
            Rest::Error(_) => SizeHint::default(),
        };
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower().saturating_add(read));
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper.saturating_add(read));
        }
        hint
    }
}
