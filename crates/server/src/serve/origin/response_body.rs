//! The body of an origin's response, which keeps the place of its request among those of the site.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use crate::serve::admission::Place;

/// The body of an origin's response.
pub(crate) struct ResponseBody {
    incoming: Incoming,
    _place: Option<Place>,
}

impl ResponseBody {
    pub(super) fn new(incoming: Incoming, place: Option<Place>) -> Self {
        Self { incoming, _place: place }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        Pin::new(&mut self.incoming).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}
