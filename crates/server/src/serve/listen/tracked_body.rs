//! The body of a response, which knows when its last byte has left.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http_body::{Frame, SizeHint};

use super::connection_state::BusyGuard;
use super::file_queue::FileQueue;
use super::loss_check::LossCheck;
use super::stream_budget::Stream;
use super::witness::Witness;
use crate::serve::body::Body;
use crate::serve::metrics::Sent;

/// The longest piece over HTTP/2 and over TLS: the largest frame, unless the client asks for more. Hyper takes whole pieces, however small the
/// client's window is.
const PIECE_BYTES_MAX: usize = 16 << 10;

/// A body. Until all of its bytes have left, its connection is busy, and nothing is told of it.
pub(super) struct TrackedBody {
    body: Body,
    open: BusyGuard,
    witness: Option<Arc<Witness>>,
    /// Counts its bytes.
    sent: Sent,
    /// Over HTTP/2.
    stream: Option<Arc<Stream>>,
    /// The rest of a piece of the body that hyper has not taken yet.
    rest: Bytes,
    /// Over TLS.
    loss: Option<LossCheck>,
    /// If the kernel can send files itself.
    files: Option<Arc<FileQueue>>,
}

/// Bytes of a body. They are dropped when the system has taken them, or when they are no longer wanted.
pub(super) struct TrackedBytes {
    bytes: Bytes,
    _open: BusyGuard,
    witness: Option<Arc<Witness>>,
    sent: Sent,
    stream: Option<Arc<Stream>>,
}

impl TrackedBody {
    /// `stream` is the stream of HTTP/2, `loss` the check of a body in the volume over TLS, and `files` the queue of a connection that can send files.
    pub(super) fn new(
        body: Body,
        open: BusyGuard,
        (witness, sent): (Option<Witness>, Sent),
        stream: Option<Arc<Stream>>,
        loss: Option<LossCheck>,
        files: Option<Arc<FileQueue>>,
    ) -> Self {
        Self { body, open, witness: witness.map(Arc::new), sent, stream, rest: Bytes::new(), loss, files }
    }

    fn piece(&mut self, mut bytes: Bytes) -> io::Result<TrackedBytes> {
        if (self.stream.is_some() || self.loss.is_some()) && bytes.len() > PIECE_BYTES_MAX {
            self.rest = bytes.split_off(PIECE_BYTES_MAX);
        }
        if let Some(loss) = &self.loss {
            bytes = loss.copy(&bytes)?;
        }
        let (open, witness, sent) = (self.open.clone(), self.witness.clone(), self.sent.clone());
        Ok(TrackedBytes { bytes, _open: open, witness, sent, stream: self.stream.clone() })
    }
}

impl http_body::Body for TrackedBody {
    type Data = TrackedBytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<TrackedBytes>>>> {
        let this = self.get_mut();
        if !this.rest.is_empty() {
            let rest = std::mem::take(&mut this.rest);
            return Poll::Ready(Some(this.piece(rest).map(Frame::data)));
        }
        if let Some(files) = &this.files
            && let Some(file) = this.body.file_to_send()
        {
            let stand_in = file.next_file_piece().map(|piece| files.push(piece));
            return Poll::Ready(stand_in.map(|stand_in| this.piece(stand_in?).map(Frame::data)));
        }
        let frame = ready!(Pin::new(&mut this.body).poll_frame(context));
        Poll::Ready(frame.map(|frame| match frame?.into_data() {
            Ok(bytes) => this.piece(bytes).map(Frame::data),
            Err(frame) => Ok(Frame::trailers(frame.into_trailers().unwrap_or_default())),
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (hint, rest) = (self.body.size_hint(), self.rest.len() as u64);
        let mut whole = SizeHint::new();
        whole.set_lower(hint.lower() + rest);
        if let Some(upper) = hint.upper() {
            whole.set_upper(upper + rest);
        }
        whole
    }
}

impl Drop for TrackedBody {
    fn drop(&mut self) {
        if let Some(stream) = &self.stream {
            stream.is_taken();
        }
    }
}

impl Buf for TrackedBytes {
    fn remaining(&self) -> usize {
        self.bytes.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.bytes.chunk()
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
        self.sent.sent(count);
        if let Some(witness) = &self.witness {
            witness.sent(count);
        }
        if let Some(stream) = &self.stream {
            stream.moved();
        }
    }
}
