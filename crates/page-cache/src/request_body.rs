//! Bodies of requests, as an upstream gets them.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};

use crate::upstream::{BoxError, UpstreamBody};

/// The body of a request as the upstream gets it: the client's own of type `B`, or content that the cache has looked at.
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
    /// One without bytes.
    pub fn empty() -> Self {
        Self { read: VecDeque::new(), trailers: HeaderMap::new(), rest: Rest::Nothing }
    }

    /// The client's own.
    pub fn passed(body: B) -> Self {
        Self { rest: Rest::Body(Box::pin(body)), ..Self::empty() }
    }

    /// Content that is at hand.
    pub fn whole(content: Bytes) -> Self {
        Self { read: VecDeque::from([content]), ..Self::empty() }
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

/// What there is of a body, up to where it has more than `bytes_max` bytes.
///
/// # Errors
/// It failed: then what came of it, and the error.
pub async fn collected<B: UpstreamBody>(body: B, bytes_max: usize) -> Result<Collected<B>, RequestBody<B>> {
    let mut body = Box::pin(body);
    let (mut read, mut bytes, mut trailers) = (VecDeque::new(), 0, HeaderMap::new());
    while let Some(frame) = poll_fn(|context| body.as_mut().poll_frame(context)).await {
        match frame.map(Frame::into_data) {
            Ok(Ok(piece)) => {
                bytes += piece.len();
                read.push_back(piece);
            }
            Ok(Err(frame)) => trailers.extend(frame.into_trailers().unwrap_or_default()),
            Err(error) => {
                return Err(RequestBody { read, trailers: HeaderMap::new(), rest: Rest::Error(Some(error.into())) });
            }
        }
        if bytes > bytes_max {
            return Ok(Collected(RequestBody { read, trailers, rest: Rest::Body(body) }));
        }
    }
    Ok(Collected(RequestBody { read, trailers, rest: Rest::Nothing }))
}

/// What there is of a body.
#[derive(Debug)]
pub struct Collected<B>(RequestBody<B>);

impl<B> Collected<B> {
    /// Its content in one piece, if that is all there is.
    pub fn whole(&self) -> Option<Bytes> {
        match (&self.0.rest, self.0.trailers.is_empty()) {
            (Rest::Nothing, true) if self.0.read.len() == 1 => self.0.read.front().cloned(),
            (Rest::Nothing, true) => Some(Bytes::from(self.0.read.iter().flatten().copied().collect::<Vec<u8>>())),
            _ => None,
        }
    }

    /// As it came.
    pub fn rejoined(self) -> RequestBody<B> {
        self.0
    }
}
