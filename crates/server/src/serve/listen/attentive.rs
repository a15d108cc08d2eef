//! A socket that takes note of what its peer says, and stops listening to one that has been given up.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::activity::Activity;
use super::patience::Patient;

/// What a client gets that doesn't come to the end of its head (RFC 9110, section 15.5.9).
const LATE: &[u8] = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

/// A stream whose reads are noted, and fail with [`io::ErrorKind::TimedOut`] once the activity was given up.
pub(super) struct Attentive<S> {
    stream: Patient<S>,
    activity: Arc<Activity>,
    has_told: bool,
}

impl<S> Attentive<S> {
    pub(super) fn new(stream: Patient<S>, activity: Arc<Activity>) -> Self {
        Self { stream, activity, has_told: false }
    }
}

impl<S> Attentive<S> {
    /// The last response of the connection is on its way: a client that goes on sending isn't told that it is late.
    pub(super) fn tell_nothing_late(&mut self) {
        self.has_told = true;
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Attentive<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.activity.has_given_up() {
            // Nothing of a response is on its way: the connection has no request. A peer that takes nothing isn't told.
            if !self.has_told && !self.stream.is_waiting() {
                self.has_told = true;
                let _ = Pin::new(&mut self.stream).poll_write(context, LATE);
            }
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the head of a request took too long")));
        }
        let before = bytes.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, bytes);
        self.activity.heard(&bytes.filled()[before..]);
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Attentive<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.activity.blocked(written.is_pending());
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.activity.blocked(written.is_pending());
        written
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
