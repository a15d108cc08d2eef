//! The addresses that the server listens at, and the sockets of each worker.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU64, Ordering};

use socket2::{Domain, Protocol, Socket, Type};

use crate::serve::error::Error;
use crate::serve::upgrade::InheritedSocket;

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
    /// At least one for each worker, which has duplicates of its ones. An inherited address may have more.
    sockets: Vec<TcpListener>,
}

/// How addresses are bound.
#[derive(Clone, Copy)]
pub(crate) struct Binding {
    pub(crate) workers: usize,
    /// Whether other servers may have the same address.
    pub(crate) is_shared: bool,
}

impl Sockets {
    /// Binds each address once for each worker, unless its sockets are `inherited`: those are taken. Port 0 takes a free port.
    ///
    /// # Errors
    /// [`Error::Listen`], if an address is not available, for instance because another program listens there.
    pub(crate) fn bind(
        addresses: &[SocketAddr],
        binding: Binding,
        inherited: &mut Vec<InheritedSocket>,
    ) -> Result<Self, Error> {
        let mut sockets = Self::default();
        for asked in addresses {
            // The sockets of one address; port 0 may have several addresses.
            let first = inherited.iter().find(|socket| *asked == socket.asked || *asked == socket.address);
            let bound = match first.map(|socket| socket.address) {
                Some(address) => {
                    let taken = inherited.extract_if(.., |socket| socket.address == address);
                    let taken = taken.map(|socket| socket.listener).collect();
                    Bound::with(*asked, address, taken, binding)?
                }
                None => Bound::new(*asked, binding)?,
            };
            sockets.all.push(bound);
        }
        Ok(sockets)
    }

    /// With the real ports.
    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        self.all.iter().map(|bound| bound.address).collect()
    }
}

impl Bound {
    /// # Errors
    /// [`Error::Listen`].
    pub(super) fn new(asked: SocketAddr, binding: Binding) -> Result<Self, Error> {
        if !binding.is_shared {
            // `SO_REUSEPORT` alone would let another server of the same user share the port, and get half of the connections.
            listen_at(asked, |_| Ok(())).map_err(|source| Error::Listen { address: asked, source })?;
        }
        Self::with(asked, asked, Vec::new(), binding)
    }

    /// Binds as many sockets as the workers lack.
    fn with(
        asked: SocketAddr,
        address: SocketAddr,
        sockets: Vec<TcpListener>,
        binding: Binding,
    ) -> Result<Self, Error> {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let mut bound = Self { number: LAST.fetch_add(1, Ordering::Relaxed), asked, address, sockets };
        while bound.sockets.len() < binding.workers {
            bound.bind_one().map_err(|source| Error::Listen { address: asked, source })?;
        }
        Ok(bound)
    }

    fn bind_one(&mut self) -> io::Result<()> {
        let listener: TcpListener = listen_at(self.address, |socket| socket.set_reuse_port(true))?.into();
        self.address = listener.local_addr()?;
        self.sockets.push(listener);
        Ok(())
    }

    /// Whether it is bound for this address of a configuration.
    pub(super) fn is_for(&self, asked: SocketAddr) -> bool {
        self.asked == asked || self.address == asked
    }

    /// Duplicates of the sockets of a worker.
    ///
    /// # Errors
    /// [`Error::Listen`], if there is no descriptor for one.
    pub(super) fn of_worker(&self, worker: usize, workers: usize) -> Result<Vec<(u64, TcpListener)>, Error> {
        let own = self.sockets.iter().skip(worker).step_by(workers.max(1));
        let duplicates: io::Result<_> = own.map(|listener| Ok((self.number, listener.try_clone()?))).collect();
        duplicates.map_err(|source| Error::Listen { address: self.address, source })
    }

    /// Calls a function for each socket.
    pub(super) fn each_socket(
        &self,
        call: &mut impl FnMut(SocketAddr, SocketAddr, &TcpListener) -> io::Result<()>,
    ) -> io::Result<()> {
        self.sockets.iter().try_for_each(|socket| call(self.asked, self.address, socket))
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
