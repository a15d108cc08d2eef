//! The write timeout of a connection: it ends when the client takes no byte for a minute.
//!
//! A slow client is fine: each successful write restarts the timeout. Under TLS, this is below the encryption, which keeps bytes back
//! while the socket is full.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use eyewall_files::FilePiece;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

use super::connection_state::ConnectionState;
use super::file_queue::SendFile;

/// The longest time without a successful write.
const WRITE_TIMEOUT: Duration = Duration::from_mins(1);

/// A stream whose writes fail with [`io::ErrorKind::TimedOut`] after [`WRITE_TIMEOUT`] without a successful write.
pub(super) struct WriteTimeout<S> {
    stream: S,
    /// Learns whether the socket takes bytes.
    state: Arc<ConnectionState>,
    /// Created by the first write that has to wait.
    alarm: Option<Pin<Box<Sleep>>>,
    is_waiting: bool,
}

impl<S> WriteTimeout<S> {
    pub(super) fn new(stream: S, state: Arc<ConnectionState>) -> Self {
        Self { stream, state, alarm: None, is_waiting: false }
    }

    /// Starts, stops or checks the timeout after a write.
    fn check_timeout<T>(&mut self, written: Poll<io::Result<T>>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.is_waiting = false;
            return written;
        }
        if self.state.is_over() {
            return written;
        }
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(sleep(WRITE_TIMEOUT)));
        if !self.is_waiting {
            self.is_waiting = true;
            alarm.as_mut().reset(Instant::now() + WRITE_TIMEOUT);
        }
        match alarm.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client reads nothing"))),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeout<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, bytes)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.state.blocked(written.is_pending());
        self.check_timeout(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.state.blocked(written.is_pending());
        self.check_timeout(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.check_timeout(flushed, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl<S: SendFile + Unpin> SendFile for WriteTimeout<S> {
    fn sends_files(&self) -> bool {
        self.stream.sends_files()
    }

    fn poll_send_file(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: (&[u8], usize),
        piece: &FilePiece,
    ) -> Poll<io::Result<usize>> {
        let sent = Pin::new(&mut self.stream).poll_send_file(context, bytes, piece);
        self.state.blocked(sent.is_pending());
        self.check_timeout(sent, context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_nothing_is_disconnected_and_a_slow_one_is_not() {
        let (near, mut far) = tokio::io::duplex(4);
        let mut near = WriteTimeout::new(near, Arc::new(ConnectionState::new()));
        near.write_all(b"full").await.unwrap();
        let taken = tokio::spawn(async move {
            let mut byte = [0; 1];
            for _ in 0..3 {
                sleep(WRITE_TIMEOUT * 9 / 10).await;
                tokio::io::AsyncReadExt::read_exact(&mut far, &mut byte).await.unwrap();
            }
            far
        });
        near.write_all(b"abc").await.unwrap();
        let _far = taken.await.unwrap();
        let error = near.write_all(b"d").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
