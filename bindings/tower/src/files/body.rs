//! The body of a response.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;

/// The body of a file's response. It carries the volume's own bytes, pinned until they are dropped; the text of
/// an error; or the body of a fallback's response.
///
/// It ends with an error if the file can't be read any more, or no longer matches the head. A server then closes
/// the connection, so that the client notices the missing bytes. A fallback's errors are in an [`io::Error`] of
/// the kind `Other`.
///
/// Each frame has a mebibyte at most. No frame is held in memory or pinned before it is polled for.
pub struct Body(State);

enum State {
    File(eyewall_files::Body),
    /// None: it was taken, or there was none.
    Text(Option<Bytes>),
    Other(UnsyncBoxBody<Bytes, io::Error>),
}

impl Body {
    pub(crate) fn empty() -> Self {
        Self(State::Text(None))
    }

    pub(crate) fn text(text: String) -> Self {
        Self(State::Text(Some(text.into()).filter(|text: &Bytes| !text.is_empty())))
    }

    pub(crate) fn file(body: eyewall_files::Body) -> Self {
        Self(State::File(body))
    }

    pub(crate) fn other(body: UnsyncBoxBody<Bytes, io::Error>) -> Self {
        Self(State::Other(body))
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match &mut self.get_mut().0 {
            State::File(body) => Pin::new(body).poll_frame(context),
            State::Text(text) => Poll::Ready(text.take().map(|text| Ok(Frame::data(text)))),
            State::Other(body) => Pin::new(body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            State::File(body) => body.is_end_stream(),
            State::Text(text) => text.is_none(),
            State::Other(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            State::File(body) => SizeHint::with_exact(body.bytes_left()),
            State::Text(text) => SizeHint::with_exact(text.as_ref().map_or(0, |text| text.len() as u64)),
            State::Other(body) => body.size_hint(),
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body").field("size_hint", &self.size_hint()).finish_non_exhaustive()
    }
}
