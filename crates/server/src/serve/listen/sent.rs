//! The body of a response on its way out: what knows when its last byte has left.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use http_body::{Frame, SizeHint};

use super::activity::Open;
use crate::serve::body::Body;
use crate::serve::log::Entry;

/// A body whose connection is busy, and whose line in the access log is not written, until all of its bytes have left.
pub(super) struct Sent {
    body: Body,
    open: Open,
    entry: Option<Arc<Entry>>,
}

/// Bytes of a body. They are dropped when the system has taken them, or when nobody wants them any more.
pub(super) struct Piece {
    bytes: Bytes,
    _open: Open,
    entry: Option<Arc<Entry>>,
}

impl Sent {
    pub(super) fn new(body: Body, open: Open, entry: Option<Entry>) -> Self {
        Self { body, open, entry: entry.map(Arc::new) }
    }
}

impl http_body::Body for Sent {
    type Data = Piece;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Piece>>>> {
        let Self { body, open, entry } = self.get_mut();
        let piece = |bytes| Piece { bytes, _open: open.clone(), entry: entry.clone() };
        Pin::new(body).poll_frame(context).map(|frame| frame.map(|frame| frame.map(|frame| frame.map_data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Buf for Piece {
    fn remaining(&self) -> usize {
        self.bytes.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.bytes.chunk()
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
        if let Some(entry) = &self.entry {
            entry.sent(count);
        }
    }
}
