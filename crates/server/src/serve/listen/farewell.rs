//! The end of a TLS connection: the client learns by `close_notify` that nothing was cut off (RFC 8446, section 6.1).
//!
//! Hyper shuts a connection down after its last response. It drops one without a word if the fast path has answered all requests, and so
//! do timeouts. Then the farewell is sent while the stream is dropped, if the socket takes it at once.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::connection_state::ConnectionState;
use super::file_queue::SendFile;

/// A TLS stream that is shut down when it is dropped, if its connection has ended well.
pub(super) struct Farewell<S: AsyncWrite + Unpin> {
    stream: S,
    state: Arc<ConnectionState>,
}

impl<S: AsyncWrite + Unpin> Farewell<S> {
    pub(super) fn new(stream: S, state: Arc<ConnectionState>) -> Self {
        Self { stream, state }
    }
}

impl<S: AsyncWrite + Unpin> Drop for Farewell<S> {
    fn drop(&mut self) {
        if self.state.has_ended_well() {
            self.state.is_dropped();
            let _ = Pin::new(&mut self.stream).poll_shutdown(&mut Context::from_waker(Waker::noop()));
        }
    }
}

/// Bytes that are encrypted have to be read first.
impl<S: AsyncWrite + Unpin> SendFile for Farewell<S> {}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Farewell<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, bytes)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Farewell<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
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
