//! The addresses and Unix sockets that the server listens at, and the sockets of each worker.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use socket2::Socket;
use toml::Spanned;

use super::activation::Activated;
use super::listener::{BACKLOG, ListenSocket, listen_at};
use crate::config::listen::{ListenAddress, SocketMode};
use crate::config::settings;
use crate::serve::error::Error;
use crate::serve::unix_socket::{self, SocketFile};
use crate::serve::upgrade::InheritedSocket;

/// An address to listen on.
pub(crate) struct ListenPlace {
    pub(crate) address: ListenAddress,
    /// Whether each connection begins with a PROXY header.
    pub(crate) has_proxy_header: bool,
}

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
    asked: ListenAddress,
    /// The same with the real port.
    address: ListenAddress,
    /// Each worker has duplicates of its ones. If there are fewer sockets than workers, some share one.
    sockets: Vec<Socket>,
    has_proxy_header: bool,
    /// The file of a Unix socket that a server has made. The last owner removes it.
    file: Option<Arc<SocketFile>>,
}

/// How addresses are bound.
#[derive(Clone, Copy)]
pub(crate) struct Binding {
    pub(crate) workers: usize,
    /// Whether other servers may have the same address.
    pub(crate) is_shared: bool,
    /// The permissions of Unix sockets.
    pub(crate) mode: SocketMode,
}

/// A socket, for a process that takes over.
pub(crate) struct OpenSocket<'a> {
    /// The address of the configuration.
    pub(crate) asked: &'a ListenAddress,
    /// With the real port.
    pub(crate) address: &'a ListenAddress,
    /// Whether a server has made its file.
    pub(crate) has_file: bool,
    pub(crate) socket: &'a Socket,
}

impl ListenPlace {
    /// The addresses of a configuration.
    pub(crate) fn all(server: &settings::Server) -> Vec<Self> {
        let has_header = |address| server.proxy_protocol.iter().any(|other| other.get_ref() == address);
        let addresses = server.listen.iter().map(Spanned::get_ref);
        addresses.map(|address| Self { address: address.clone(), has_proxy_header: has_header(address) }).collect()
    }
}

impl Binding {
    pub(crate) fn of(server: &settings::Server, workers: usize) -> Self {
        Self { workers, is_shared: server.reuse_port, mode: server.socket_mode }
    }
}

impl Sockets {
    /// Binds each address once for each worker, unless its sockets are `inherited`, or `activated` by the service manager: those are
    /// taken. Port 0 takes a free port.
    ///
    /// # Errors
    /// [`Error::Listen`], if an address is not available, for instance because another program listens there.
    pub(crate) fn bind(
        places: &[ListenPlace],
        binding: Binding,
        inherited: &mut Vec<InheritedSocket>,
        activated: &mut Activated,
    ) -> Result<Self, Error> {
        let mut sockets = Self::default();
        for place in places {
            // The sockets of one address; port 0 may have several addresses.
            let asked = &place.address;
            let first = inherited.iter().find(|socket| *asked == socket.asked || *asked == socket.address);
            let bound = match first.map(|socket| (socket.address.clone(), socket.has_file)) {
                Some((address, has_file)) => {
                    let taken = inherited.extract_if(.., |socket| socket.address == address);
                    let taken = taken.map(|socket| socket.socket).collect();
                    Bound::with(place, address, taken, binding).and_then(|bound| bound.own_file(has_file))
                }
                None => match activated.take(asked) {
                    passed if passed.is_empty() => Bound::bind(place, binding),
                    passed => Bound::with(place, asked.clone(), passed, binding),
                },
            };
            sockets.all.push(bound.map_err(|source| Error::Listen { address: asked.clone(), source })?);
        }
        Ok(sockets)
    }

    /// Those of the network, with the real ports.
    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        let tcp = |bound: &Bound| match &bound.address {
            ListenAddress::Tcp(address) => Some(*address),
            ListenAddress::Unix(_) => None,
        };
        self.all.iter().filter_map(tcp).collect()
    }

    /// The paths of Unix sockets.
    pub(crate) fn unix_sockets(&self) -> Vec<PathBuf> {
        let unix = |bound: &Bound| match &bound.address {
            ListenAddress::Unix(path) => Some(path.clone()),
            ListenAddress::Tcp(_) => None,
        };
        self.all.iter().filter_map(unix).collect()
    }
}

impl Bound {
    /// # Errors
    /// [`Error::Listen`].
    pub(super) fn new(place: &ListenPlace, binding: Binding) -> Result<Self, Error> {
        Self::bind(place, binding).map_err(|source| Error::Listen { address: place.address.clone(), source })
    }

    fn bind(place: &ListenPlace, binding: Binding) -> io::Result<Self> {
        match &place.address {
            ListenAddress::Tcp(address) => {
                if !binding.is_shared {
                    // `SO_REUSEPORT` alone would let another server of the same user share the port, and get half of the connections.
                    listen_at(*address, |_| Ok(()))?;
                }
                Self::with(place, place.address.clone(), Vec::new(), binding)
            }
            ListenAddress::Unix(path) => {
                let (socket, file) = unix_socket::listen(path, binding.mode.0, BACKLOG)?;
                let bound = Self::with(place, place.address.clone(), vec![socket], binding)?;
                Ok(Self { file: Some(Arc::new(file)), ..bound })
            }
        }
    }

    /// Binds as many sockets of the network as the workers lack, if several may have the address.
    fn with(place: &ListenPlace, address: ListenAddress, sockets: Vec<Socket>, binding: Binding) -> io::Result<Self> {
        let (asked, has_proxy_header) = (place.address.clone(), place.has_proxy_header);
        let mut bound = Self { number: next_number(), asked, address, sockets, has_proxy_header, file: None };
        while let ListenAddress::Tcp(address) = bound.address
            && bound.sockets.len() < binding.workers
            && bound.sockets.iter().all(|socket| socket.reuse_port().unwrap_or(false))
        {
            let socket = listen_at(address, |socket| socket.set_reuse_port(true))?;
            bound.address = socket.local_addr()?.as_socket().unwrap_or(address).into();
            bound.sockets.push(socket);
        }
        Ok(bound)
    }

    /// Takes over the file of a socket from the process before.
    fn own_file(self, has_file: bool) -> io::Result<Self> {
        let file = match &self.address {
            ListenAddress::Unix(path) if has_file => Some(Arc::new(SocketFile::inherited(path)?)),
            _ => None,
        };
        Ok(Self { file, ..self })
    }

    /// The same sockets, where connections begin with a PROXY header or don't.
    ///
    /// # Errors
    /// [`Error::Listen`], if there is no descriptor for one.
    pub(super) fn with_proxy_header(&self, has_proxy_header: bool) -> Result<Self, Error> {
        let sockets = self.sockets.iter().map(Socket::try_clone).collect::<io::Result<_>>();
        Ok(Self {
            number: next_number(),
            asked: self.asked.clone(),
            address: self.address.clone(),
            sockets: sockets.map_err(|source| self.failed(source))?,
            has_proxy_header,
            file: self.file.clone(),
        })
    }

    pub(super) fn has_proxy_header(&self) -> bool {
        self.has_proxy_header
    }

    /// Whether it is bound for this address of a configuration.
    pub(super) fn is_for(&self, asked: &ListenAddress) -> bool {
        self.asked == *asked || self.address == *asked
    }

    /// Duplicates of the sockets of a worker.
    ///
    /// # Errors
    /// [`Error::Listen`], if there is no descriptor for one.
    pub(super) fn of_worker(&self, worker: usize, workers: usize) -> Result<Vec<(u64, ListenSocket)>, Error> {
        let count = self.sockets.len();
        let own = (0..count.max(workers)).skip(worker).step_by(workers.max(1));
        let duplicate = |socket: &Socket| {
            let listen_socket = ListenSocket { socket: socket.try_clone()?, has_proxy_header: self.has_proxy_header };
            Ok((self.number, listen_socket))
        };
        let duplicates: io::Result<_> = own.map(|number| duplicate(&self.sockets[number % count.max(1)])).collect();
        duplicates.map_err(|source| self.failed(source))
    }

    /// Calls a function for each socket.
    pub(super) fn each_socket(&self, call: &mut impl FnMut(OpenSocket<'_>) -> io::Result<()>) -> io::Result<()> {
        let (asked, address, has_file) = (&self.asked, &self.address, self.file.is_some());
        self.sockets.iter().try_for_each(|socket| call(OpenSocket { asked, address, has_file, socket }))
    }

    /// Notes whether another process has the socket.
    pub(super) fn hand_over_file(&self, is_handed_over: bool) {
        if let Some(file) = &self.file {
            file.is_handed_over().store(is_handed_over, Ordering::Relaxed);
        }
    }

    fn failed(&self, source: io::Error) -> Error {
        Error::Listen { address: self.address.clone(), source }
    }
}

fn next_number() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed)
}
