//! The addresses that the server listens at, and the sockets of each worker.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU64, Ordering};

use socket2::{Domain, Protocol, Socket, Type};

use crate::Error;

/// How many connections may wait to be accepted, at each socket.
const BACKLOG: i32 = 4096;

/// The addresses of a configuration, bound for all workers, in its order.
#[derive(Default)]
pub(crate) struct Sockets {
    pub(super) all: Vec<Bound>,
}

/// An address with its sockets.
pub(super) struct Bound {
    /// Workers know it by this number.
    pub(super) number: u64,
    /// The address of the configuration.
    asked: SocketAddr,
    /// The same with the real port.
    pub(super) address: SocketAddr,
    /// One for each worker, which has a duplicate of it.
    sockets: Vec<TcpListener>,
}

impl Sockets {
    /// Binds each address once for each of `workers`. Port 0 takes a free port.
    ///
    /// # Errors
    /// [`Error::Listen`], if an address is not available, for instance because another program listens there.
    pub(crate) fn bind(addresses: &[SocketAddr], workers: usize) -> Result<Self, Error> {
        let bound = addresses.iter().map(|address| Bound::new(*address, workers)).collect::<Result<_, _>>()?;
        Ok(Self { all: bound })
    }

    /// With the real ports.
    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        self.all.iter().map(|bound| bound.address).collect()
    }
}

impl Bound {
    /// # Errors
    /// [`Error::Listen`].
    pub(super) fn new(asked: SocketAddr, workers: usize) -> Result<Self, Error> {
        Self::bind(asked, workers).map_err(|source| Error::Listen { address: asked, source })
    }

    fn bind(asked: SocketAddr, workers: usize) -> io::Result<Self> {
        static LAST: AtomicU64 = AtomicU64::new(0);
        // `SO_REUSEPORT` would also let another server of the same user share the port, and get half of the connections.
        listen_at(asked, |_| Ok(()))?;
        let (mut address, mut sockets) = (asked, Vec::new());
        for _ in 0..workers {
            let listener: TcpListener = listen_at(address, |socket| socket.set_reuse_port(true))?.into();
            address = listener.local_addr()?;
            sockets.push(listener);
        }
        Ok(Self { number: LAST.fetch_add(1, Ordering::Relaxed), asked, address, sockets })
    }

    /// Whether it is bound for this address of a configuration.
    pub(super) fn is_for(&self, asked: SocketAddr) -> bool {
        self.asked == asked
    }

    /// A duplicate of a worker's socket.
    ///
    /// # Errors
    /// [`Error::Listen`], if there is no descriptor for it.
    pub(super) fn of_worker(&self, worker: usize) -> Result<(u64, TcpListener), Error> {
        let duplicate =
            self.sockets.get(worker).map_or_else(|| Err(io::ErrorKind::NotFound.into()), TcpListener::try_clone);
        duplicate
            .map(|listener| (self.number, listener))
            .map_err(|source| Error::Listen { address: self.address, source })
    }
}

/// Listens at this address only: `[::]` takes IPv6 alone, so that `0.0.0.0` can be given beside it.
fn listen_at(address: SocketAddr, set_up: impl FnOnce(&Socket) -> io::Result<()>) -> io::Result<Socket> {
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
