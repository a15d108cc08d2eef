//! Response bodies.

use std::io;
use std::pin::Pin;
use std::sync::Weak;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use eyewall_page_cache::body::BodyStream;
use eyewall_page_cache::cached_body::CachedBody;
use eyewall_page_cache::upstream::BoxError;
use http_body::{Frame, SizeHint};
use tokio::sync::mpsc::Receiver;

use super::follow::Following;
use super::origin::ResponseBody;

/// How far hyper reads ahead on an HTTP/1.1 connection to an origin. 80 to 90 KiB were measured.
const READ_AHEAD: u64 = 88 << 10;

/// How much hyper takes of a body over HTTP/2: its limit, `SEND_BYTES_MAX` of a connection.
const COPIES: u64 = 32 << 10;

/// The body of a response.
pub(crate) struct Body(State);

enum State {
    /// A body of the page cache, or the text of an error.
    Cached(CachedBody<ResponseBody>),
    /// A file of a folder.
    File(eyewall_files::Body),
    /// Lines for a follower of the requests, at the administration.
    Following(Following),
    /// Pieces that come one by one, until their sender is gone.
    Pieces(Receiver<Bytes>),
}

/// The heap memory of a body that its client doesn't take.
pub(crate) enum Backlog {
    /// Almost none: the body is in the volume, or in a file.
    None,
    /// Copies of such a body, which are encrypted: as many as hyper takes of it.
    Copies,
    /// The bytes that the connection to the origin has read ahead.
    Origin(u64),
    /// These, and a share of the bytes for all readers.
    Stream(Weak<BodyStream>),
}

impl Body {
    pub(crate) fn empty() -> Self {
        CachedBody::empty().into()
    }

    pub(crate) fn whole(bytes: impl Into<Bytes>) -> Self {
        CachedBody::whole(bytes).into()
    }

    pub(crate) fn file(body: eyewall_files::Body) -> Self {
        Self(State::File(body))
    }

    /// A body whose pieces come one by one, until their sender is gone.
    pub(crate) fn pieces(pieces: Receiver<Bytes>) -> Self {
        Self(State::Pieces(pieces))
    }

    /// The file whose next bytes the kernel can send itself.
    pub(crate) fn file_to_send(&mut self) -> Option<&mut eyewall_files::Body> {
        match &mut self.0 {
            State::File(body) if body.is_from_file() => Some(body),
            State::File(_) | State::Cached(_) | State::Following(_) | State::Pieces(_) => None,
        }
    }

    /// Whether it may have bytes that are in the volume.
    pub(crate) fn may_be_pinned(&self) -> bool {
        match &self.0 {
            State::Cached(body) => body.upstream_body().is_none() && body.stream().is_none(),
            State::File(_) => true,
            State::Following(_) | State::Pieces(_) => false,
        }
    }

    pub(crate) fn backlog(&self) -> Backlog {
        match &self.0 {
            State::Cached(body) => match body.upstream_body() {
                Some(upstream) => Backlog::Origin(upstream.read_ahead_max().unwrap_or(READ_AHEAD)),
                None => body.stream().map_or(Backlog::None, Backlog::Stream),
            },
            State::File(_) | State::Following(_) | State::Pieces(_) => Backlog::None,
        }
    }
}

impl From<CachedBody<ResponseBody>> for Body {
    fn from(body: CachedBody<ResponseBody>) -> Self {
        Self(State::Cached(body))
    }
}

impl From<Following> for Body {
    fn from(following: Following) -> Self {
        Self(State::Following(following))
    }
}

impl Backlog {
    /// The number of bytes now; of a body for several clients, a share.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::None => 0,
            Self::Copies => COPIES,
            Self::Origin(bytes) => *bytes,
            Self::Stream(stream) => stream.upgrade().map_or(0, |stream| stream.bytes_per_reader(READ_AHEAD)),
        }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match &mut self.get_mut().0 {
            State::Cached(body) => Pin::new(body).poll_frame(context).map_err(of_io),
            State::File(body) => Poll::Ready(ready!(body.poll_piece(context)).map(|piece| piece.map(Frame::data))),
            State::Following(following) => Pin::new(following).poll_frame(context),
            State::Pieces(pieces) => pieces.poll_recv(context).map(|piece| piece.map(|piece| Ok(Frame::data(piece)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            State::Cached(body) => body.is_end_stream(),
            State::File(body) => body.bytes_left() == 0,
            State::Following(_) | State::Pieces(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            State::Cached(body) => body.size_hint(),
            State::File(body) => SizeHint::with_exact(body.bytes_left()),
            State::Following(_) | State::Pieces(_) => SizeHint::default(),
        }
    }
}

fn of_io(error: BoxError) -> io::Error {
    error.downcast::<io::Error>().map_or_else(io::Error::other, |error| *error)
}
