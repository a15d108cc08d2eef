//! The stream of a connection to an origin, or to another node of a fleet.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper_util::client::legacy::connect::{Connected, Connection};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::client::TlsStream;

use crate::serve::metrics::OpenConnection;

/// Bytes to and from an origin.
pub(crate) struct Stream {
    kind: Kind,
    /// Counts it while it is open.
    _open: Option<OpenConnection>,
}

enum Kind {
    Tcp(TcpStream),
    Unix(UnixStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Stream {
    pub(super) fn tcp(stream: TcpStream) -> Self {
        Self { kind: Kind::Tcp(stream), _open: None }
    }

    pub(super) fn unix(stream: UnixStream) -> Self {
        Self { kind: Kind::Unix(stream), _open: None }
    }

    pub(super) fn tls(stream: TlsStream<TcpStream>) -> Self {
        Self { kind: Kind::Tls(Box::new(stream)), _open: None }
    }

    /// The same, counted.
    pub(super) fn counted(self, open: OpenConnection) -> Self {
        Self { _open: Some(open), ..self }
    }

    /// Whether the other side has chosen this protocol by ALPN. Without TLS, it is expected to speak any.
    pub(super) fn speaks(&self, protocol: &[u8]) -> bool {
        match &self.kind {
            Kind::Tls(stream) => stream.get_ref().1.alpn_protocol() == Some(protocol),
            Kind::Tcp(_) | Kind::Unix(_) => true,
        }
    }
}

/// Calls a method of the stream inside.
macro_rules! inner {
    ($stream:expr, $method:ident($($argument:expr),*)) => {
        match &mut $stream.kind {
            Kind::Tcp(stream) => Pin::new(stream).$method($($argument),*),
            Kind::Unix(stream) => Pin::new(stream).$method($($argument),*),
            Kind::Tls(stream) => Pin::new(stream).$method($($argument),*),
        }
    };
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        inner!(self.get_mut(), poll_read(context, bytes))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        inner!(self.get_mut(), poll_write(context, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        inner!(self.get_mut(), poll_write_vectored(context, pieces))
    }

    fn is_write_vectored(&self) -> bool {
        match &self.kind {
            Kind::Tcp(stream) => stream.is_write_vectored(),
            Kind::Unix(stream) => stream.is_write_vectored(),
            Kind::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        inner!(self.get_mut(), poll_flush(context))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        inner!(self.get_mut(), poll_shutdown(context))
    }
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}
