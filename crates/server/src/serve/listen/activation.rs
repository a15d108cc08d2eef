//! Sockets that the service manager has bound and passed on: socket activation (`sd_listen_fds(3)`).
//!
//! They are chosen by their address, not by their names: a socket of an address in `listen` takes the place of a socket that the
//! server would bind.

use std::io;

use listenfd::ListenFd;
use socket2::Socket;

use crate::config::listen::ListenAddress;
use crate::serve::error::Error;

/// The sockets that nobody has taken yet.
#[derive(Default)]
pub(crate) struct Activated(Vec<Socket>);

impl Activated {
    /// The sockets of `LISTEN_FDS`, if `LISTEN_PID` is this process. A second call finds none.
    ///
    /// # Errors
    /// [`Error::Start`], if one of them is no socket for connections.
    pub(crate) fn from_environment() -> Result<Self, Error> {
        let mut passed = ListenFd::from_env();
        let mut sockets = Vec::new();
        for number in 0..passed.len() {
            let socket = match passed.take_unix_listener(number) {
                Ok(socket) => socket.map(Socket::from),
                Err(_) => passed.take_tcp_listener(number).map_err(Error::Start)?.map(Socket::from),
            };
            if let Some(socket) = socket {
                socket.set_nonblocking(true).map_err(Error::Start)?;
                sockets.push(socket);
            }
        }
        Ok(Self(sockets))
    }

    /// Takes the sockets of this address. There are several if each worker has its own.
    pub(super) fn take(&mut self, address: &ListenAddress) -> Vec<Socket> {
        self.0.extract_if(.., |socket| address_of(socket).is_ok_and(|its| its == *address)).collect()
    }

    /// # Errors
    /// [`Error::Listen`], if nobody has taken a socket: its clients would wait forever.
    pub(crate) fn check_all_taken(&self) -> Result<(), Error> {
        let Some(left) = self.0.first() else { return Ok(()) };
        let address = address_of(left).map_err(Error::Start)?;
        let words = "the service manager passed a socket of this address, which is not in `listen`; add it there, or remove it \
                     from the socket unit";
        Err(Error::Listen { address, source: io::Error::new(io::ErrorKind::InvalidInput, words) })
    }
}

/// The address to which a socket is bound.
fn address_of(socket: &Socket) -> io::Result<ListenAddress> {
    let bound = socket.local_addr()?;
    let tcp = bound.as_socket().map(ListenAddress::Tcp);
    let unix = || bound.as_pathname().map(|path| ListenAddress::Unix(path.to_owned()));
    tcp.or_else(unix).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "a passed socket has no address"))
}
