//! The body of a response, over any version of HTTP.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use eyewall_page_cache::upstream::BoxError;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use super::http1::Http1Body;
use super::http2::{STREAM_WINDOW, StreamGuard};
use crate::serve::admission::Place;
use crate::serve::metrics::OriginCounters;
use crate::serve::spans::OriginSpan;

/// Why a body is incomplete although its connection is sound.
const CUT_OFF: &str = "the origin reset the stream before the end of the body";

/// The body of a response.
pub(crate) struct ResponseBody {
    /// Bytes that were read already.
    start: Option<Box<Bytes>>,
    rest: Rest,
    /// Until its end.
    stream: Option<StreamGuard>,
    /// The place of its request among those of the site, until its end.
    place: Option<Place>,
    /// Counts its bytes, if it is of an origin.
    counters: Option<Arc<OriginCounters>>,
    /// Until its end.
    span: Option<OriginSpan>,
}

/// The rest of a body.
enum Rest {
    Nothing,
    /// hyper reads it.
    Incoming(Incoming),
    Http1(Http1Body),
}

impl ResponseBody {
    fn new(start: Bytes, rest: Rest) -> Self {
        let start = (!start.is_empty()).then(|| Box::new(start));
        Self { start, rest, stream: None, place: None, counters: None, span: None }
    }

    /// A body on a stream of HTTP/2.
    pub(super) fn of_stream(incoming: Incoming, stream: StreamGuard) -> Self {
        Self { stream: Some(stream), ..Self::from(incoming) }
    }

    /// The same with the place of its request.
    pub(super) fn with_place(self, place: Option<Place>) -> Self {
        Self { place, ..self }
    }

    /// The same, counted.
    pub(super) fn counted_by(self, counters: Arc<OriginCounters>) -> Self {
        Self { counters: Some(counters), ..self }
    }

    /// The same with the span of its request.
    pub(super) fn with_span(self, span: Option<OriginSpan>) -> Self {
        Self { span, ..self }
    }

    /// A body of which these bytes were read already.
    pub(crate) fn begun(start: Bytes, incoming: Incoming) -> Self {
        Self::new(start, Rest::Incoming(incoming))
    }

    /// How far the connection may read ahead, if it is one of HTTP/2.
    pub(crate) fn read_ahead_max(&self) -> Option<u64> {
        self.stream.as_ref().map(|_| STREAM_WINDOW.into())
    }
}

impl From<Incoming> for ResponseBody {
    fn from(incoming: Incoming) -> Self {
        Self::new(Bytes::new(), Rest::Incoming(incoming))
    }
}

impl From<Http1Body> for ResponseBody {
    fn from(body: Http1Body) -> Self {
        Self::new(Bytes::new(), Rest::Http1(body))
    }
}

impl From<Bytes> for ResponseBody {
    fn from(whole: Bytes) -> Self {
        Self::new(whole, Rest::Nothing)
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let body = self.get_mut();
        if let Some(start) = body.start.take() {
            return Poll::Ready(Some(Ok(Frame::data(*start))));
        }
        let polled = match &mut body.rest {
            Rest::Nothing => Poll::Ready(None),
            Rest::Http1(body) => Pin::new(body).poll_frame(context).map_err(BoxError::from),
            Rest::Incoming(incoming) => {
                let polled = Pin::new(&mut *incoming).poll_frame(context).map_err(BoxError::from);
                // hyper takes a stream that was reset without an error for the end of its body (RFC 9113, section 8.1).
                let is_cut_off =
                    body.stream.is_some() && matches!(polled, Poll::Ready(None)) && !incoming.is_end_stream();
                if is_cut_off { Poll::Ready(Some(Err(CUT_OFF.into()))) } else { polled }
            }
        };
        match (&polled, &body.counters) {
            (Poll::Ready(Some(Ok(frame))), Some(counters)) => counters.received(frame.data_ref().map_or(0, Bytes::len)),
            (Poll::Ready(Some(Err(_))), Some(counters)) => counters.cut_off(),
            _ => {}
        }
        if let (Poll::Ready(Some(Err(_))), Some(span)) = (&polled, &mut body.span) {
            span.failed("origin-cut-off");
        }
        let is_over = match &polled {
            Poll::Ready(Some(Ok(_))) => body.rest.is_end_stream(),
            Poll::Ready(None | Some(Err(_))) => true,
            Poll::Pending => false,
        };
        if is_over {
            (body.stream, body.place, body.span) = (None, None, None);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.start.is_none() && self.rest.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        match (&self.start, &self.rest) {
            (start, Rest::Nothing) => SizeHint::with_exact(start.as_ref().map_or(0, |start| start.len() as u64)),
            (None, Rest::Incoming(incoming)) => incoming.size_hint(),
            (None, Rest::Http1(body)) => body.size_hint(),
            (Some(_), Rest::Incoming(_) | Rest::Http1(_)) => SizeHint::default(),
        }
    }
}

impl Rest {
    fn is_end_stream(&self) -> bool {
        match self {
            Self::Nothing => true,
            Self::Incoming(incoming) => incoming.is_end_stream(),
            Self::Http1(body) => body.is_end_stream(),
        }
    }
}
