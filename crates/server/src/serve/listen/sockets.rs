//! The addresses that the server listens at, and the sockets of each worker.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::io::Errno;
use socket2::{Domain, Protocol, Socket, Type};
use toml::Spanned;

use crate::config::Server;
use crate::serve::error::Error;
use crate::serve::upgrade::InheritedSocket;

/// How many connections may wait to be accepted, at each socket.
const BACKLOG: i32 = 4096;

/// The addresses of a configuration, bound for all workers, in its order.
#[derive(Default)]
pub(crate) struct Sockets {
    pub(super) all: Vec<Bound>,
}

/// An address of a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) asked: SocketAddr,
    /// Whether its clients speak TLS.
    pub(crate) is_tls: bool,
}

/// The addresses, with the real port instead of port 0.
#[derive(Debug, Clone, Default)]
pub(crate) struct Addresses {
    pub(crate) http: Vec<SocketAddr>,
    pub(crate) https: Vec<SocketAddr>,
}

/// An address with its sockets.
pub(super) struct Bound {
    /// Workers know it by this number.
    pub(super) number: u64,
    /// The address of the configuration.
    pub(super) address: Address,
    /// The same with the real port.
    pub(super) real: SocketAddr,
    /// At least one for each worker, which has duplicates of its ones. An inherited address may have more.
    sockets: Vec<TcpListener>,
}

/// A socket of a worker.
pub(super) struct Listener {
    /// The number of its address.
    pub(super) number: u64,
    pub(super) socket: TcpListener,
    /// Whether its clients speak TLS.
    pub(super) is_tls: bool,
}

/// How addresses are bound.
#[derive(Clone, Copy)]
pub(crate) struct Binding {
    pub(crate) workers: usize,
    /// Whether other servers may have the same address.
    pub(crate) is_shared: bool,
}

impl Address {
    /// All addresses of a configuration.
    pub(crate) fn all_of(server: &Server) -> Vec<Self> {
        let of = |addresses: &[Spanned<SocketAddr>], is_tls| {
            addresses.iter().map(|address| Self { asked: *address.get_ref(), is_tls }).collect::<Vec<_>>()
        };
        [of(server.http_addresses(), false), of(server.https_addresses(), true)].concat()
    }
}

impl Addresses {
    /// The port for redirects to HTTPS: the default port if it is one of them.
    pub(crate) fn https_port(&self) -> Option<u16> {
        let mut ports = self.https.iter().map(SocketAddr::port);
        ports.clone().find(|port| *port == 443).or_else(|| ports.next())
    }

    pub(super) fn push(&mut self, is_tls: bool, address: SocketAddr) {
        let list = if is_tls { &mut self.https } else { &mut self.http };
        list.push(address);
    }
}

impl Sockets {
    /// Binds each address once for each worker, unless its sockets are `inherited`: those are taken. Port 0 takes a free port.
    ///
    /// # Errors
    /// [`Error::Listen`], if an address is not available, for instance because another program listens there.
    pub(crate) fn bind(
        addresses: &[Address],
        binding: Binding,
        inherited: &mut Vec<InheritedSocket>,
    ) -> Result<Self, Error> {
        let mut sockets = Self::default();
        for address in addresses {
            // The sockets of one address; port 0 may have several addresses.
            let is_same = |socket: &&InheritedSocket| {
                socket.is_tls == address.is_tls && (address.asked == socket.asked || address.asked == socket.address)
            };
            let bound = match inherited.iter().find(is_same).map(|socket| socket.address) {
                Some(real) => {
                    let taken = inherited.extract_if(.., |socket| socket.address == real);
                    let taken = taken.map(|socket| socket.listener).collect();
                    Some(Bound::with(*address, real, taken, binding)?)
                }
                None => Bound::new(*address, addresses, binding)?,
            };
            sockets.all.extend(bound);
        }
        Ok(sockets)
    }

    /// With the real ports.
    pub(crate) fn addresses(&self) -> Addresses {
        let mut addresses = Addresses::default();
        for bound in &self.all {
            addresses.push(bound.address.is_tls, bound.real);
        }
        addresses
    }
}

impl Bound {
    /// `None`: it is one of IPv6 that can be spared on a system without IPv6. `all` are the addresses of the configuration.
    ///
    /// # Errors
    /// [`Error::Listen`].
    pub(super) fn new(address: Address, all: &[Address], binding: Binding) -> Result<Option<Self>, Error> {
        if !binding.is_shared {
            // `SO_REUSEPORT` alone would let another server of the same user share the port, and get half of the connections.
            match listen_at(address.asked, |_| Ok(())) {
                Ok(_) => {}
                Err(error) if is_spare(address, all, &error) => {
                    tracing::debug!(address = %address.asked, "this system has no IPv6");
                    return Ok(None);
                }
                Err(source) => return Err(Error::Listen { address: address.asked, source }),
            }
        }
        Self::with(address, address.asked, Vec::new(), binding).map(Some)
    }

    /// Binds as many sockets as the workers lack.
    fn with(address: Address, real: SocketAddr, sockets: Vec<TcpListener>, binding: Binding) -> Result<Self, Error> {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let mut bound = Self { number: LAST.fetch_add(1, Ordering::Relaxed), address, real, sockets };
        while bound.sockets.len() < binding.workers {
            bound.bind_one().map_err(|source| Error::Listen { address: address.asked, source })?;
        }
        Ok(bound)
    }

    fn bind_one(&mut self) -> io::Result<()> {
        let listener: TcpListener = listen_at(self.real, |socket| socket.set_reuse_port(true))?.into();
        self.real = listener.local_addr()?;
        self.sockets.push(listener);
        Ok(())
    }

    /// Whether it is bound for this address of a configuration.
    pub(super) fn is_for(&self, address: Address) -> bool {
        self.address.is_tls == address.is_tls && (self.address.asked == address.asked || self.real == address.asked)
    }

    /// Duplicates of the sockets of a worker.
    ///
    /// # Errors
    /// [`Error::Listen`], if there is no descriptor for one.
    pub(super) fn of_worker(&self, worker: usize, workers: usize) -> Result<Vec<Listener>, Error> {
        let own = self.sockets.iter().skip(worker).step_by(workers.max(1));
        let (number, is_tls) = (self.number, self.address.is_tls);
        let duplicates: io::Result<_> =
            own.map(|socket| Ok(Listener { number, socket: socket.try_clone()?, is_tls })).collect();
        duplicates.map_err(|source| Error::Listen { address: self.real, source })
    }

    /// Calls a function for each socket, with the address of the configuration and the real one.
    pub(super) fn each_socket(
        &self,
        call: &mut impl FnMut(Address, SocketAddr, &TcpListener) -> io::Result<()>,
    ) -> io::Result<()> {
        self.sockets.iter().try_for_each(|socket| call(self.address, self.real, socket))
    }
}

/// Whether an address is that of all networks of IPv6, beside that of IPv4, on a system without IPv6.
fn is_spare(address: Address, all: &[Address], error: &io::Error) -> bool {
    let is_unknown =
        matches!(error.raw_os_error().map(Errno::from_raw_os_error), Some(Errno::AFNOSUPPORT | Errno::ADDRNOTAVAIL));
    let asked = address.asked;
    let beside = Address { asked: (Ipv4Addr::UNSPECIFIED, asked.port()).into(), ..address };
    is_unknown && asked.is_ipv6() && asked.ip().is_unspecified() && all.contains(&beside)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_addresses_of_both_versions_can_be_listened_at() {
        let binding = Binding { workers: 2, is_shared: false };
        let bind = |asked, is_tls| Sockets::bind(&[Address { asked, is_tls }], binding, &mut Vec::new());
        // Another program may have the port of one version.
        for _ in 0..10 {
            let Ok(version_6) = bind("[::]:0".parse().unwrap(), false) else {
                return println!("skipped: there is no IPv6 here");
            };
            let port = version_6.addresses().http[0].port();
            if bind(SocketAddr::from(([0, 0, 0, 0], port)), true).is_ok() {
                return;
            }
        }
        panic!("IPv6 keeps IPv4 away");
    }

    #[test]
    fn only_the_second_of_two_addresses_of_all_networks_can_be_spared() {
        let all = ["0.0.0.0:80", "[::]:80", "[::]:81", "[::1]:80"]
            .map(|one| Address { asked: one.parse().unwrap(), is_tls: false });
        let spared = |errno: Errno| -> Vec<bool> {
            let error = io::Error::from_raw_os_error(errno.raw_os_error());
            all.iter().map(|address| is_spare(*address, &all, &error)).collect()
        };
        assert_eq!(spared(Errno::AFNOSUPPORT), [false, true, false, false]);
        assert_eq!(spared(Errno::ADDRINUSE), [false; 4]);
    }

    #[test]
    fn redirects_lead_to_the_default_port_if_it_is_bound() {
        let port = |https: &[&str]| {
            let https = https.iter().map(|address| address.parse().unwrap()).collect();
            Addresses { http: Vec::new(), https }.https_port()
        };
        assert_eq!(port(&["0.0.0.0:8443", "0.0.0.0:443"]), Some(443));
        assert_eq!(port(&["0.0.0.0:8443", "0.0.0.0:9443"]), Some(8443));
        assert_eq!(port(&[]), None);
    }
}
