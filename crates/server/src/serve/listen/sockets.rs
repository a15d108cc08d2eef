//! The addresses and Unix sockets that the server listens at, and the sockets of each worker.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::io::Errno;
use socket2::Socket;
use toml::Spanned;

use super::activation::Activated;
use super::listener::{BACKLOG, Layers, ListenSocket, listen_at};
use crate::config::listen::{ListenAddress, SocketMode};
use crate::config::settings;
use crate::serve::error::Error;
use crate::serve::unix_socket::{self, SocketFile};
use crate::serve::upgrade::InheritedSocket;

/// An address to listen on.
pub(crate) struct ListenPlace {
    pub(crate) address: ListenAddress,
    pub(crate) layers: Layers,
}

/// The addresses of a configuration, bound for all workers, in its order.
#[derive(Default)]
pub(crate) struct Sockets {
    pub(super) all: Vec<Bound>,
    /// The server ends, or another process has them: nothing is bound any more.
    pub(super) are_final: bool,
}

/// An address with its sockets.
pub(super) struct Bound {
    /// Workers know it by this number, which it keeps.
    pub(super) number: u64,
    /// The address of the configuration.
    asked: ListenAddress,
    /// The same with the real port.
    address: ListenAddress,
    /// Each worker has duplicates of its ones. If there are fewer sockets than workers, some share one.
    sockets: Vec<Socket>,
    /// What connections have that workers accept from now on.
    pub(super) layers: Layers,
    /// The file of a Unix socket that a server has made.
    file: Option<SocketFile>,
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
    pub(crate) is_tls: bool,
    pub(crate) socket: &'a Socket,
}

impl ListenPlace {
    /// The addresses of a configuration.
    pub(crate) fn all(server: &settings::Server) -> Vec<Self> {
        let has_header = |address: &ListenAddress| server.proxy_protocol.iter().any(|other| other.get_ref() == address);
        let place = |address: &Spanned<ListenAddress>, is_tls| {
            let address = address.get_ref();
            Self { address: address.clone(), layers: Layers { has_proxy_header: has_header(address), is_tls } }
        };
        let http = server.http_addresses().iter().map(|address| place(address, false));
        http.chain(server.https_addresses().iter().map(|address| place(address, true))).collect()
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
            let known = inherited.iter().filter(|socket| *asked == socket.asked || *asked == socket.address);
            let first = known.min_by_key(|socket| socket.is_tls != place.layers.is_tls);
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
            match bound {
                Err(error) if is_spare(place, places, &error) => {
                    tracing::debug!(address = %asked, "this system has no IPv6");
                }
                bound => {
                    sockets.all.push(bound.map_err(|source| Error::Listen { address: asked.clone(), source })?);
                }
            }
        }
        Ok(sockets)
    }

    /// Those of the network for HTTP, with the real ports.
    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        self.all.iter().filter(|bound| !bound.layers.is_tls).filter_map(Bound::tcp).collect()
    }

    /// The same for HTTPS.
    pub(crate) fn tls_addresses(&self) -> Vec<SocketAddr> {
        self.all.iter().filter_map(Bound::tls).collect()
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
    /// `None`: the system has no IPv6, and this is one of its addresses that another one of `all` stands in for.
    ///
    /// # Errors
    /// [`Error::Listen`].
    pub(super) fn new(place: &ListenPlace, all: &[ListenPlace], binding: Binding) -> Result<Option<Self>, Error> {
        match Self::bind(place, binding) {
            Ok(bound) => Ok(Some(bound)),
            Err(error) if is_spare(place, all, &error) => Ok(None),
            Err(source) => Err(Error::Listen { address: place.address.clone(), source }),
        }
    }

    pub(super) fn tcp(&self) -> Option<SocketAddr> {
        match &self.address {
            ListenAddress::Tcp(address) => Some(*address),
            ListenAddress::Unix(_) => None,
        }
    }

    /// Its address of the network, if it is for HTTPS.
    pub(super) fn tls(&self) -> Option<SocketAddr> {
        self.tcp().filter(|_| self.layers.is_tls)
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
                Ok(Self { file: Some(file), ..bound })
            }
        }
    }

    /// Binds as many sockets of the network as the workers lack, if several may have the address.
    fn with(place: &ListenPlace, address: ListenAddress, sockets: Vec<Socket>, binding: Binding) -> io::Result<Self> {
        let (asked, layers) = (place.address.clone(), place.layers);
        let mut bound = Self { number: next_number(), asked, address, sockets, layers, file: None };
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
            ListenAddress::Unix(path) if has_file => Some(SocketFile::inherited(path)?),
            _ => None,
        };
        Ok(Self { file, ..self })
    }

    /// Whether it is bound for this address of a configuration.
    pub(super) fn is_for(&self, asked: &ListenAddress) -> bool {
        self.asked == *asked || self.address == *asked
    }

    /// Duplicates of the sockets of a worker, always in the same order, for connections with these layers.
    ///
    /// # Errors
    /// [`Error::Listen`], if there is no descriptor for one.
    pub(super) fn of_worker(
        &self,
        (worker, workers): (usize, usize),
        layers: Layers,
    ) -> Result<Vec<ListenSocket>, Error> {
        let count = self.sockets.len();
        let own = (0..count.max(workers)).skip(worker).step_by(workers.max(1));
        let duplicate =
            |socket: &Socket| Ok(ListenSocket { socket: socket.try_clone()?, address: self.number, layers });
        let duplicates: io::Result<_> = own.map(|number| duplicate(&self.sockets[number % count.max(1)])).collect();
        duplicates.map_err(|source| self.failed(source))
    }

    /// Closes the sockets here, and returns the address with the real port.
    pub(super) fn into_address(self) -> ListenAddress {
        self.address
    }

    /// Calls a function for each socket.
    pub(super) fn each_socket(&self, call: &mut impl FnMut(OpenSocket<'_>) -> io::Result<()>) -> io::Result<()> {
        let (asked, address, has_file, is_tls) = (&self.asked, &self.address, self.file.is_some(), self.layers.is_tls);
        self.sockets.iter().try_for_each(|socket| call(OpenSocket { asked, address, has_file, is_tls, socket }))
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

/// The port for redirects to HTTPS: the default port if it is one of them.
pub(crate) fn https_port(addresses: &[SocketAddr]) -> Option<u16> {
    let mut ports = addresses.iter().map(SocketAddr::port);
    ports.clone().find(|port| *port == 443).or_else(|| ports.next())
}

/// Whether an address is that of all networks of IPv6, beside that of IPv4, on a system without IPv6.
fn is_spare(place: &ListenPlace, all: &[ListenPlace], error: &io::Error) -> bool {
    let is_unknown =
        matches!(error.raw_os_error().map(Errno::from_raw_os_error), Some(Errno::AFNOSUPPORT | Errno::ADDRNOTAVAIL));
    let ListenAddress::Tcp(address) = place.address else { return false };
    let beside = SocketAddr::from((Ipv4Addr::UNSPECIFIED, address.port()));
    let has_other = || all.iter().any(|other| other.layers == place.layers && other.address == beside.into());
    is_unknown && address.is_ipv6() && address.ip().is_unspecified() && has_other()
}

fn next_number() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_second_of_two_addresses_of_all_networks_can_be_spared() {
        let place = |address: &str| ListenPlace { address: address.parse().unwrap(), layers: Layers::default() };
        let all = ["0.0.0.0:80", "[::]:80", "[::]:81", "[::1]:80"].map(place);
        let spared = |errno: Errno| -> Vec<bool> {
            let error = io::Error::from_raw_os_error(errno.raw_os_error());
            all.iter().map(|place| is_spare(place, &all, &error)).collect()
        };
        assert_eq!(spared(Errno::AFNOSUPPORT), [false, true, false, false]);
        assert_eq!(spared(Errno::ADDRINUSE), [false; 4]);
    }

    #[test]
    fn redirects_lead_to_the_default_port_if_it_is_bound() {
        let port = |all: &[&str]| https_port(&all.iter().map(|address| address.parse().unwrap()).collect::<Vec<_>>());
        assert_eq!(port(&["0.0.0.0:8443", "0.0.0.0:443"]), Some(443));
        assert_eq!(port(&["0.0.0.0:8443", "0.0.0.0:9443"]), Some(8443));
        assert_eq!(port(&[]), None);
    }
}
