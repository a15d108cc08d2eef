//! A request to an origin.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::TRAILER;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;

use super::body_rate::{BodyRate, BodyRateTimer};
use super::error::{BodyError, ProxyError};
use super::forwarded::ClientInfo;

/// A request, without the origin and the host.
pub(crate) struct OriginRequest<'a> {
    pub(crate) method: Method,
    /// The client's target, of which path and query count.
    pub(crate) target: &'a Uri,
    /// End-to-end fields only, without `Host`, `Expect` and `Content-Length`.
    pub(crate) fields: HeaderMap,
    pub(crate) body: RequestBody,
    /// The client, if the origin should know it.
    pub(crate) client_info: Option<&'a ClientInfo>,
    /// Fields to drop from interim responses; the caller drops them from the final one.
    pub(crate) stripped: Vec<HeaderName>,
}

impl OriginRequest<'_> {
    /// A copy for a retry, if all of its body is in memory.
    pub(super) fn again(&self) -> Option<Self> {
        let body = self.body.again()?;
        let (method, fields, stripped) = (self.method.clone(), self.fields.clone(), self.stripped.clone());
        Some(Self { method, target: self.target, fields, body, client_info: self.client_info, stripped })
    }
}

/// The body of a request, streamed from its client: it reads a piece only when the origin has taken the last one.
#[derive(Default)]
pub(crate) struct RequestBody {
    /// The bytes that were read already.
    start: Bytes,
    /// The rest.
    incoming: Option<Incoming>,
    /// The client's field `Trailer`: other trailers are not passed on.
    trailer: Option<HeaderValue>,
    /// The number of bytes that may still come.
    bytes_left: u64,
    rate_timer: BodyRateTimer,
    progress: Arc<Progress>,
}

/// An extension of a request: the limits of its body.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BodyLimits {
    pub(crate) bytes_max: u64,
    pub(crate) body_rate: BodyRate,
}

impl Default for BodyLimits {
    /// No limits.
    fn default() -> Self {
        Self { bytes_max: u64::MAX, body_rate: BodyRate::default() }
    }
}

/// The progress of a body. The task that drives the connection writes it, and the task that waits for the response reads it.
/// The numbers alone matter, so they need no ordering.
#[derive(Default)]
pub(super) struct Progress {
    steps: AtomicU64,
    waits_for_client: AtomicBool,
    /// The error that ended it. HTTP/2 resets the stream then, and doesn't say why.
    refusal: OnceLock<ProxyError>,
}

impl Progress {
    /// Grows with each piece, and at the end.
    pub(super) fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    /// Whether the origin waits for bytes of the client.
    pub(super) fn waits_for_client(&self) -> bool {
        self.waits_for_client.load(Ordering::Relaxed)
    }

    /// The error that ended it, if one did.
    pub(super) fn refusal(&self) -> Option<ProxyError> {
        self.refusal.get().copied()
    }
}

impl RequestBody {
    pub(crate) fn empty() -> Self {
        Self::default()
    }

    /// `request` is the client's. A client that expects `100 Continue` gets it from hyper when the first piece is read, after the
    /// connection to the origin is open.
    pub(crate) fn streamed(incoming: Incoming, request: &Parts) -> Self {
        if incoming.is_end_stream() {
            return Self::empty();
        }
        let BodyLimits { bytes_max, body_rate } = request.extensions.get().copied().unwrap_or_default();
        let trailer = request.headers.get(TRAILER).cloned();
        Self {
            start: Bytes::new(),
            incoming: Some(incoming),
            trailer,
            bytes_left: bytes_max,
            rate_timer: BodyRateTimer::new(body_rate),
            progress: Arc::default(),
        }
    }

    /// All of a body.
    pub(crate) fn whole(bytes: Bytes) -> Self {
        Self { start: bytes, ..Self::default() }
    }

    /// All of it, if it has at most this many bytes and announces no trailers; else the body unchanged.
    ///
    /// # Errors
    /// The errors of the client: its body is incomplete, pauses for longer than `patience`, or exceeds the limits of size or rate.
    pub(crate) async fn collected(
        mut self,
        bytes_max: usize,
        patience: Duration,
    ) -> Result<Result<Bytes, Self>, ProxyError> {
        if self.trailer.is_some() || usize::try_from(self.size_hint().lower()).map_or(true, |least| least > bytes_max) {
            return Ok(Err(self));
        }
        let mut bytes = BytesMut::new();
        while bytes.len() <= bytes_max {
            let frame = match tokio::time::timeout(patience, self.frame()).await {
                Err(_) => return Err(ProxyError::ClientLate(patience)),
                Ok(None) => return Ok(Ok(bytes.freeze())),
                Ok(Some(Err(BodyError::Refused(error)))) => return Err(error),
                Ok(Some(Err(BodyError::Client(_)))) => return Err(ProxyError::ClientBroken),
                Ok(Some(Ok(frame))) => frame,
            };
            // Unannounced trailers are dropped.
            bytes.extend_from_slice(frame.data_ref().map_or(&[], |piece| piece));
        }
        self.start = bytes.freeze();
        Ok(Err(self))
    }

    fn again(&self) -> Option<Self> {
        self.incoming.is_none().then(|| Self::whole(self.start.clone()))
    }

    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if !self.start.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut self.start)))));
        }
        let Some(incoming) = &mut self.incoming else { return Poll::Ready(None) };
        let polled = Pin::new(incoming).poll_frame(context);
        self.progress.waits_for_client.store(polled.is_pending(), Ordering::Relaxed);
        let Poll::Ready(frame) = polled else {
            let error = ready!(self.rate_timer.poll_late(context));
            return Poll::Ready(Some(Err(BodyError::Refused(error))));
        };
        let frame = frame.transpose()?;
        self.progress.steps.fetch_add(1, Ordering::Relaxed);
        let bytes = frame.as_ref().and_then(Frame::data_ref).map_or(0, Bytes::len) as u64;
        self.rate_timer.took(bytes);
        let Some(bytes_left) = self.bytes_left.checked_sub(bytes) else {
            return Poll::Ready(Some(Err(BodyError::Refused(ProxyError::BodyTooLarge))));
        };
        self.bytes_left = bytes_left;
        // Over HTTP/1.1, hyper sends announced trailers only. HTTP/2 has no such rule.
        let announced = self.trailer.as_ref();
        Poll::Ready(frame.and_then(|frame| only_announced(frame, announced)).map(Ok))
    }

    pub(super) fn trailer(&self) -> Option<&HeaderValue> {
        self.trailer.as_ref()
    }

    pub(super) fn progress(&self) -> Arc<Progress> {
        Arc::clone(&self.progress)
    }
}

/// A frame without the trailers that `Trailer` doesn't name; nothing if none remains.
fn only_announced(frame: Frame<Bytes>, announced: Option<&HeaderValue>) -> Option<Frame<Bytes>> {
    let mut trailers = match frame.into_trailers() {
        Ok(trailers) => trailers,
        Err(data) => return Some(data),
    };
    let names = announced.and_then(|names| names.to_str().ok()).unwrap_or_default();
    let is_announced = |name: &HeaderName| names.split(',').any(|one| one.trim().eq_ignore_ascii_case(name.as_str()));
    let unannounced: Vec<HeaderName> = trailers.keys().filter(|name| !is_announced(name)).cloned().collect();
    for name in unannounced {
        trailers.remove(name);
    }
    (!trailers.is_empty()).then(|| Frame::trailers(trailers))
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let body = self.get_mut();
        let polled = body.poll_piece(context);
        if let Poll::Ready(Some(Err(error))) = &polled {
            let _ = body.progress.refusal.set(error.of_proxy());
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.start.is_empty() && self.incoming.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let start = self.start.len() as u64;
        let rest = self.incoming.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint);
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower().saturating_add(start));
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper.saturating_add(start));
        }
        hint
    }
}
