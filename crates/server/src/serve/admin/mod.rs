//! Administration of a running server: JSON over HTTP/1.1, at a Unix socket or a loopback address.
//!
//! ```text
//! door     a socket that only its owner may open, or a loopback address with a token               socket, ../token
//!   api    checks access, and dispatches
//!     POST /purge    a purge request in JSON                                                            purge_request
//!     GET  /status   how the server and its volume are doing                                        status
//! ```
//! It runs on the thread that waits for signals, so it answers even if the workers are busy. A refusal is `{"error": words}`.

mod api;
mod purge_request;
mod socket;
mod status;

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use eyewall::Cache;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::Semaphore;

use super::shared::Shared;
use super::token::Token;
use crate::config::settings;
use crate::serve::error::Error;
use api::Api;
use socket::SocketFile;

/// The most connections at once; more wait.
const CONNECTIONS_MAX: usize = 64;
/// The timeout for a request's head; it also ends idle connections.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// How long to wait after a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The administration, bound and not yet open.
pub(crate) struct Admin {
    door: Door,
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
    /// [`Error::Admin`] and [`Error::TokenFile`].
    pub(crate) fn bind(settings: &settings::Admin, shared: &Arc<Shared>, cache: &Cache) -> Result<Self, Error> {
        let mut token = None;
        if let (Some(_), Some(path)) = (&settings.listen, &settings.token_file) {
            let path = path.get_ref();
            token = Some(Token::read(path).map_err(|source| Error::TokenFile { path: path.clone(), source })?);
        }
        let door = match (&settings.socket, &settings.listen) {
            (Some(path), _) => Door::of_socket(path.get_ref()),
            (None, Some(address)) => Door::of_address(*address.get_ref()),
            (None, None) => Err(Error::Admin { place: String::new(), source: io::ErrorKind::InvalidInput.into() }),
        };
        Ok(Self { door: door?, api: Api::new(Arc::clone(shared), cache.clone(), token) })
    }

    /// The path of the socket, or a URL.
    pub(crate) fn place(&self) -> String {
        match &self.door {
            Door::Socket { file, .. } => file.path().display().to_string(),
            Door::Address { bound, .. } => format!("http://{bound}/"),
        }
    }

    /// Answers from now on, until the current runtime ends.
    ///
    /// # Errors
    /// The system's, if it can't wait for a socket.
    ///
    /// # Panics
    /// Outside of a runtime.
    pub(crate) fn start(self) -> io::Result<()> {
        let api = Arc::new(self.api);
        match self.door {
            Door::Socket { listener, file } => {
                let listener = UnixListener::from_std(listener)?;
                tokio::spawn(async move {
                    // Dropping it removes the file.
                    let _file = file;
                    answer(move |context| listener.poll_accept(context).map_ok(|(stream, _)| stream), api).await;
                });
            }
            Door::Address { listener, .. } => {
                let listener = TcpListener::from_std(listener)?;
                tokio::spawn(answer(move |context| listener.poll_accept(context).map_ok(|(stream, _)| stream), api));
            }
        }
        Ok(())
    }
}

impl Door {
    fn of_socket(path: &Path) -> Result<Self, Error> {
        let (listener, file) =
            socket::listen(path).map_err(|source| Error::Admin { place: path.display().to_string(), source })?;
        Ok(Self::Socket { listener, file })
    }

    fn of_address(address: SocketAddr) -> Result<Self, Error> {
        let bind = || {
            let listener = std::net::TcpListener::bind(address)?;
            listener.set_nonblocking(true)?;
            let bound = listener.local_addr()?;
            Ok(Self::Address { listener, bound })
        };
        bind().map_err(|source| Error::Admin { place: address.to_string(), source })
    }
}

/// Answers all clients.
async fn answer<S>(accept: impl Fn(&mut Context<'_>) -> Poll<io::Result<S>>, api: Arc<Api>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    // The semaphore is never closed.
    while let Ok(place) = Arc::clone(&places).acquire_owned().await {
        match poll_fn(&accept).await {
            Ok(stream) => {
                let api = Arc::clone(&api);
                tokio::spawn(async move {
                    serve(stream, api).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "could not accept a connection to the administration");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, api: Arc<Api>) {
    let answer = service_fn(move |request| {
        let api = Arc::clone(&api);
        async move { Ok::<_, Infallible>(api.answer(request).await) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
    if let Err(error) = builder.serve_connection(TokioIo::new(stream), answer).await {
        tracing::debug!(%error, "a connection to the administration ended early");
    }
}
