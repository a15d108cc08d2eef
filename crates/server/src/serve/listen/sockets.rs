//! The sockets that listen, for all workers.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use rustix::io::Errno;
use socket2::{Domain, Protocol, Socket, Type};

use crate::serve::error::Error;

/// How many connections may wait to be accepted, at each socket.
const BACKLOG: i32 = 4096;

/// The server's addresses, bound for all workers.
pub(crate) struct Sockets {
    pub(super) addresses: Addresses,
    /// The sockets of each worker.
    pub(super) of_workers: Vec<Vec<Listener>>,
}

/// The addresses, with the real port instead of port 0.
#[derive(Debug, Clone, Default)]
pub(crate) struct Addresses {
    pub(crate) http: Vec<SocketAddr>,
    pub(crate) https: Vec<SocketAddr>,
}

impl Addresses {
    /// The port for redirects to HTTPS: the default port if it is one of them.
    pub(crate) fn https_port(&self) -> Option<u16> {
        let mut ports = self.https.iter().map(SocketAddr::port);
        ports.clone().find(|port| *port == 443).or_else(|| ports.next())
    }
}

/// A socket of a worker.
pub(super) struct Listener {
    pub(super) socket: std::net::TcpListener,
    /// Whether its clients speak TLS.
    pub(super) is_tls: bool,
}

impl Sockets {
    /// Binds each address once for each of `workers`. Port 0 takes a free port.
    ///
    /// # Errors
    /// [`Error::Listen`], if an address is not available, for instance because another program listens there.
    pub(crate) fn bind(http: &[SocketAddr], https: &[SocketAddr], workers: usize) -> Result<Self, Error> {
        let of_workers = (0..workers).map(|_| Vec::new()).collect();
        let mut sockets = Self { addresses: Addresses::default(), of_workers };
        for (addresses, is_tls) in [(http, false), (https, true)] {
            for &address in addresses {
                match sockets.bind_one(address, is_tls) {
                    Err(error) if is_spare(address, addresses, &error) => {
                        tracing::debug!(%address, "this system has no IPv6");
                    }
                    bound => bound.map_err(|source| Error::Listen { address, source })?,
                }
            }
        }
        Ok(sockets)
    }

    /// The bound addresses.
    pub(crate) fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    fn bind_one(&mut self, address: SocketAddr, is_tls: bool) -> io::Result<()> {
        // `SO_REUSEPORT` would also let another server of the same user share the port, and get half of the connections.
        listen_at(address, |_| Ok(()))?;
        let mut bound = address;
        for sockets in &mut self.of_workers {
            let socket: std::net::TcpListener = listen_at(bound, |socket| socket.set_reuse_port(true))?.into();
            bound = socket.local_addr()?;
            sockets.push(Listener { socket, is_tls });
        }
        let list = if is_tls { &mut self.addresses.https } else { &mut self.addresses.http };
        list.push(bound);
        Ok(())
    }
}

/// Whether an address is that of all networks of IPv6, beside that of IPv4, on a system without IPv6.
fn is_spare(address: SocketAddr, all: &[SocketAddr], error: &io::Error) -> bool {
    let is_unknown =
        matches!(error.raw_os_error().map(Errno::from_raw_os_error), Some(Errno::AFNOSUPPORT | Errno::ADDRNOTAVAIL));
    let beside = SocketAddr::from((Ipv4Addr::UNSPECIFIED, address.port()));
    is_unknown && address.is_ipv6() && address.ip().is_unspecified() && all.contains(&beside)
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
        // Another program may have the port of one version.
        for _ in 0..10 {
            let Ok(version_6) = Sockets::bind(&["[::]:0".parse().unwrap()], &[], 2) else {
                return println!("skipped: there is no IPv6 here");
            };
            let port = version_6.addresses.http[0].port();
            if Sockets::bind(&[], &[SocketAddr::from(([0, 0, 0, 0], port))], 2).is_ok() {
                return;
            }
        }
        panic!("IPv6 keeps IPv4 away");
    }

    #[test]
    fn only_the_second_of_two_addresses_of_all_networks_can_be_spared() {
        let all: Vec<SocketAddr> =
            ["0.0.0.0:80", "[::]:80", "[::]:81", "[::1]:80"].map(|one| one.parse().unwrap()).into();
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
