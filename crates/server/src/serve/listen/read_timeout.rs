//! The read timeouts of a connection: a head that takes too long (`head_timeout`) ends it with 408.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use eyewall_files::FilePiece;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::connection_state::ConnectionState;
use super::file_queue::SendFile;

/// The response to a head that doesn't end in time (RFC 9110, section 15.5.9).
const REQUEST_TIMEOUT: &[u8] = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

/// A stream that reports reads to the connection's state. Its reads fail with [`io::ErrorKind::TimedOut`] after a timeout.
pub(super) struct ReadTimeout<S> {
    stream: S,
    state: Arc<ConnectionState>,
    has_answered_408: bool,
}

impl<S> ReadTimeout<S> {
    pub(super) fn new(stream: S, state: Arc<ConnectionState>) -> Self {
        Self { stream, state, has_answered_408: false }
    }
}

impl<S> ReadTimeout<S> {
    /// The last response of the connection is being sent: a client that sends more gets no 408.
    pub(super) fn suppress_408(&mut self) {
        self.has_answered_408 = true;
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for ReadTimeout<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.state.has_timed_out() {
            // The connection has no request, so no response is being sent. A peer that reads nothing doesn't get the 408.
            if !self.has_answered_408 && !self.state.is_blocked() {
                self.has_answered_408 = true;
                let _ = Pin::new(&mut self.stream).poll_write(context, REQUEST_TIMEOUT);
            }
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the head of a request took too long")));
        }
        let before = bytes.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, bytes);
        self.state.received(&bytes.filled()[before..]);
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ReadTimeout<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl<S: SendFile + Unpin> SendFile for ReadTimeout<S> {
    fn sends_files(&self) -> bool {
        self.stream.sends_files()
    }

    fn poll_send_file(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: (&[u8], usize),
        piece: &FilePiece,
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_send_file(context, bytes, piece)
    }
}
