//! Administration of a running server: JSON over HTTP/1.1, at a Unix socket or a loopback address.
//!
//! ```text
//! door     a socket that only its owner may open, or a loopback address with a token               ../unix_socket, ../shared
//!   api    checks access, and dispatches                                                                access, refusal
//!     POST /purge    a purge request in JSON                                                            purge_request
//!     POST /explain  what would become of a request, and why                                             ../explain
//!     POST /upgrade  starts another process, which takes over
//!     POST /log      changes the levels of the server's own log
//!     POST /reload   puts the configuration file in force that is there now
//!     GET  /advice   what would make more requests hits                                                 ../advice
//!     GET  /fleet    how the nodes of the fleet are doing
//!     GET  /requests a line for each request of clients, as it ends                                     ../follow
//!     GET  /status   how the server and its volume are doing                                        status
//!     GET  /metrics  the same as numbers for Prometheus                                             ../metrics
//!     GET  /dashboard        a page for browsers, which shows them live                                 ../dashboard
//! ```
//! It runs on the thread that waits for signals, so it answers even if the workers are busy. A refusal is `{"error": words}`.

mod access;
mod api;
mod purge_request;
mod refusal;
mod status;

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::task::Context;

use eyewall::Cache;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::watch;

use super::small_http;
use super::unix_socket::{self, SocketFile};
use super::upgrade::{AdminPlace, AdminSocket, InheritedAdmin, Upgrader};
use crate::config::settings;
use crate::serve::error::Error;
use api::Api;

/// Only the owner may open the socket, because opening it gives access to the administration.
const SOCKET_MODE: u32 = 0o600;
/// How many connections may wait to be accepted.
const BACKLOG: i32 = 64;

/// The administration, bound and not yet open.
pub(crate) struct Admin {
    door: Door,
    place: AdminPlace,
    is_inherited: bool,
    api: Api,
}

/// The listening socket of the administration.
enum Door {
    Socket { listener: std::os::unix::net::UnixListener, file: SocketFile },
    Address { listener: std::net::TcpListener, bound: SocketAddr },
}

impl Admin {
    /// Binds the socket or the address of the configuration, which has exactly one of them; port 0 takes a free port.
    ///
    /// # Errors
    /// [`Error::Admin`].
    ///
    /// A socket that the process before has handed over is taken, if it is the same.
    pub(crate) fn bind(
        settings: &settings::Admin,
        upgrader: &Arc<Upgrader>,
        cache: &Cache,
        inherited: Option<InheritedAdmin>,
    ) -> Result<Self, Error> {
        let place = match (&settings.socket, &settings.listen) {
            (Some(path), _) => AdminPlace::Socket(path.get_ref().clone()),
            (None, Some(address)) => AdminPlace::Address(*address.get_ref()),
            (None, None) => {
                return Err(Error::Admin { place: String::new(), source: io::ErrorKind::InvalidInput.into() });
            }
        };
        let inherited = inherited.filter(|inherited| inherited.place == place);
        let is_inherited = inherited.is_some();
        let door = match (&place, inherited) {
            (AdminPlace::Socket(path), None) => Door::of_socket(path),
            (AdminPlace::Address(address), None) => Door::of_address(*address),
            (_, Some(inherited)) => Door::of_inherited(inherited),
        };
        let door = door.map_err(|source| {
            let place = match &place {
                AdminPlace::Socket(path) => path.display().to_string(),
                AdminPlace::Address(address) => address.to_string(),
            };
            Error::Admin { place, source }
        })?;
        Ok(Self { door, place, is_inherited, api: Api::new(Arc::clone(upgrader), cache.clone()) })
    }

    /// Whether the process before had its socket.
    pub(crate) fn is_inherited(&self) -> bool {
        self.is_inherited
    }

    /// Its socket, for a process that takes over.
    ///
    /// # Errors
    /// The system's, if there is no descriptor for it.
    pub(crate) fn socket(&self) -> io::Result<AdminSocket> {
        let (listener, is_handed_over) = match &self.door {
            Door::Socket { listener, file } => (listener.try_clone()?.into(), Arc::clone(file.is_handed_over())),
            Door::Address { listener, .. } => (listener.try_clone()?.into(), Arc::default()),
        };
        Ok(AdminSocket { place: self.place.clone(), listener, is_handed_over })
    }

    /// The path of the socket, or a URL.
    pub(crate) fn place(&self) -> String {
        match &self.door {
            Door::Socket { file, .. } => file.path().display().to_string(),
            Door::Address { bound, .. } => format!("http://{bound}/"),
        }
    }

    /// Answers until `ending` says true. The last requests are answered then; the receivers are dropped after them.
    ///
    /// # Errors
    /// The system's, if it can't wait for a socket.
    ///
    /// # Panics
    /// Outside of a runtime.
    pub(crate) fn start(self, ending: watch::Receiver<bool>) -> io::Result<()> {
        tokio::spawn(self.api.dashboard().run(ending.clone()));
        let api = Arc::new(self.api);
        tokio::spawn({
            let (api, mut ending) = (Arc::clone(&api), ending.clone());
            async move {
                // An error means that the server is gone.
                let _ = ending.wait_for(|ends| *ends).await;
                drop(ending);
                api.end();
            }
        });
        match self.door {
            Door::Socket { listener, file } => {
                let listener = UnixListener::from_std(listener)?;
                tokio::spawn(async move {
                    // Dropping it removes the file.
                    let _file = file;
                    let accept = move |context: &mut Context<'_>| listener.poll_accept(context);
                    small_http::answer(move |context| accept(context).map_ok(|(stream, _)| stream), api, ending).await;
                });
            }
            Door::Address { listener, .. } => {
                let listener = TcpListener::from_std(listener)?;
                tokio::spawn(small_http::answer(
                    move |context| listener.poll_accept(context).map_ok(|(stream, _)| stream),
                    api,
                    ending,
                ));
            }
        }
        Ok(())
    }
}

impl Door {
    fn of_socket(path: &Path) -> io::Result<Self> {
        let (socket, file) = unix_socket::listen(path, SOCKET_MODE, BACKLOG)?;
        Ok(Self::Socket { listener: socket.into(), file })
    }

    fn of_address(address: SocketAddr) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let bound = listener.local_addr()?;
        Ok(Self::Address { listener, bound })
    }

    fn of_inherited(inherited: InheritedAdmin) -> io::Result<Self> {
        let InheritedAdmin { place, listener } = inherited;
        match place {
            AdminPlace::Socket(path) => {
                Ok(Self::Socket { listener: listener.into(), file: SocketFile::inherited(&path)? })
            }
            AdminPlace::Address(_) => {
                let listener = std::net::TcpListener::from(listener);
                let bound = listener.local_addr()?;
                Ok(Self::Address { listener, bound })
            }
        }
    }
}
