//! A listening socket of a worker, of the network or of a Unix socket.

use std::io;
use std::net::{IpAddr, SocketAddr};

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use crate::serve::unix_client::UNIX_CLIENT;

/// How many connections may wait to be accepted, at each socket.
pub(super) const BACKLOG: i32 = 4096;

/// A listening socket, before its worker runs.
pub(super) struct ListenSocket {
    pub(super) socket: Socket,
    /// The number of its address.
    pub(super) address: u64,
    pub(super) layers: Layers,
}

/// What each connection has below HTTP.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Layers {
    /// It begins with a PROXY header.
    pub(crate) has_proxy_header: bool,
    /// TLS, after that header.
    pub(crate) is_tls: bool,
}

/// A socket that accepts connections.
pub(super) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// The same without a runtime. It doesn't block.
pub(super) enum IdleListener {
    Tcp(std::net::TcpListener),
    Unix(std::os::unix::net::UnixListener),
}

/// An accepted connection.
pub(super) enum Accepted {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Listener {
    /// # Errors
    /// The system's.
    ///
    /// # Panics
    /// Outside of a runtime.
    pub(super) fn new(socket: Socket) -> io::Result<Self> {
        if socket.local_addr()?.is_unix() {
            UnixListener::from_std(socket.into()).map(Self::Unix)
        } else {
            TcpListener::from_std(socket.into()).map(Self::Tcp)
        }
    }

    pub(super) async fn accept(&self) -> io::Result<Accepted> {
        match self {
            Self::Tcp(listener) => listener.accept().await.map(|(stream, _)| Accepted::Tcp(stream)),
            Self::Unix(listener) => listener.accept().await.map(|(stream, _)| Accepted::Unix(stream)),
        }
    }

    pub(super) fn into_idle(self) -> io::Result<IdleListener> {
        match self {
            Self::Tcp(listener) => listener.into_std().map(IdleListener::Tcp),
            Self::Unix(listener) => listener.into_std().map(IdleListener::Unix),
        }
    }
}

impl IdleListener {
    /// A connection that the kernel has accepted already.
    pub(super) fn accept(&self) -> io::Result<Accepted> {
        match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nonblocking(true)?;
                TcpStream::from_std(stream).map(Accepted::Tcp)
            }
            Self::Unix(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nonblocking(true)?;
                UnixStream::from_std(stream).map(Accepted::Unix)
            }
        }
    }
}

impl Accepted {
    /// The address of the client, or of the proxy before it.
    pub(super) fn peer(&self) -> io::Result<IpAddr> {
        match self {
            Self::Tcp(stream) => stream.peer_addr().map(|address| address.ip()),
            Self::Unix(_) => Ok(UNIX_CLIENT),
        }
    }
}

/// Listens at this address only: `[::]` takes IPv6 alone, so that `0.0.0.0` can be given beside it.
pub(crate) fn listen_at(address: SocketAddr, set_up: impl FnOnce(&Socket) -> io::Result<()>) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_reuse_address(true)?;
    set_up(&socket)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket)
}
