//! The bodies of requests to an upstream.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};

use crate::upstream::{BoxError, UpstreamBody};

/// The body of a request to the upstream: the client's own of type `B`, or content that the cache has read.
#[derive(Debug)]
pub struct RequestBody<B> {
    /// The bytes that the cache has read already.
    read: VecDeque<Bytes>,
    trailers: HeaderMap,
    rest: Rest<B>,
}

/// The rest of the body.
#[derive(Debug)]
enum Rest<B> {
    Nothing,
    Body(Pin<Box<B>>),
    Error(Option<BoxError>),
}

impl<B> RequestBody<B> {
    /// A body without bytes.
    pub fn empty() -> Self {
        Self { read: VecDeque::new(), trailers: HeaderMap::new(), rest: Rest::Nothing }
    }

    /// The client's own body.
    pub fn passed(body: B) -> Self {
        Self { rest: Rest::Body(Box::pin(body)), ..Self::empty() }
    }

    /// A body whose content is all available.
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

/// Reads a body until it ends or has more than `bytes_max` bytes.
///
/// # Errors
/// The body failed: it holds the bytes so far, and the error.
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

/// The bytes read of a body, and the rest.
#[derive(Debug)]
pub struct Collected<B>(RequestBody<B>);

impl<B> Collected<B> {
    /// The content in one piece, if the body has ended.
    pub fn whole(&self) -> Option<Bytes> {
        match (&self.0.rest, self.0.trailers.is_empty()) {
            (Rest::Nothing, true) if self.0.read.len() == 1 => self.0.read.front().cloned(),
            (Rest::Nothing, true) => Some(Bytes::from(self.0.read.iter().flatten().copied().collect::<Vec<u8>>())),
            _ => None,
        }
    }

    /// The body as it arrived.
    pub fn rejoined(self) -> RequestBody<B> {
        self.0
    }
}
