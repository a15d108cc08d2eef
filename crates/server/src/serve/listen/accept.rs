//! Accepts connections until the server stops, and then the ones that the kernel has accepted already.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use rustix::io::Errno;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, oneshot, watch};

use super::common::Common;
use super::connection_state::FIRST_REQUEST;
use super::held::Place;
use super::listener::{Accepted, Layers, LayersCell, Listener};
use super::proxy_protocol::{self, HeaderError};
use super::{connection, handshake};
use crate::serve::admission::Entered;
use crate::serve::stop::Stop;

/// How long to wait after a connection could not be accepted, usually for want of descriptors.
const PAUSE: Duration = Duration::from_millis(50);
/// How often that is logged, at most.
const TOLD_EVERY: Duration = Duration::from_mins(1);
/// When a connection that could not be accepted was logged.
static LOGGED: AtomicU64 = AtomicU64::new(0);
/// The same of the limit for connections.
static FULL_LOGGED: AtomicU64 = AtomicU64::new(0);
/// How often a stopping server waits for descriptors.
const DRAIN_TRIES: u32 = 40;

/// The state of a connection, which lives as long as the connection.
#[derive(Clone)]
pub(super) struct Served {
    pub(super) common: Arc<ArcSwap<Common>>,
    pub(super) stopping: watch::Receiver<Stop>,
    /// When the last of these is dropped, all connections have ended.
    pub(super) alive: mpsc::Sender<()>,
    /// A reload may change them.
    pub(super) layers: Arc<LayersCell>,
}

/// The reason for which there is no connection.
#[derive(Debug, PartialEq, Eq)]
enum Lack {
    /// No client waits.
    Nobody,
    /// This client is gone, or its network is. The next one may be fine.
    OfClient,
    /// Descriptors or memory of the system have run out.
    Shortage,
    /// An immediate retry would fail, too.
    Other,
}

impl Lack {
    fn of(error: &io::Error) -> Self {
        match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::WOULDBLOCK) => Self::Nobody,
            Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => Self::Shortage,
            // Linux passes errors of the new connection's network to `accept` (accept(2)).
            Some(
                Errno::CONNABORTED
                | Errno::CONNRESET
                | Errno::INTR
                | Errno::PROTO
                | Errno::PERM
                | Errno::NOPROTOOPT
                | Errno::OPNOTSUPP
                | Errno::NETDOWN
                | Errno::NETUNREACH
                | Errno::HOSTDOWN
                | Errno::HOSTUNREACH
                | Errno::NONET
                | Errno::TIMEDOUT,
            ) => Self::OfClient,
            _ => Self::Other,
        }
    }
}

impl Served {
    /// Accepts a connection. While there are as many as there may be, idle ones make room first.
    async fn accept_within_limit(&self, listener: &Listener) -> io::Result<Accepted> {
        while self.is_full() {
            if should_log(&FULL_LOGGED) {
                tracing::warn!(
                    "there are as many connections as `connections` of [server.limits] allows; closing the ones that have been idle for longest (logged once a minute)"
                );
            }
            self.common.load().connections.make_room();
            tokio::time::sleep(PAUSE).await;
        }
        listener.accept().await
    }

    fn is_full(&self) -> bool {
        let common = self.common.load();
        common.connections.counts.is_full(common.limits.connections.map(|max| max.0))
    }

    fn serve(&self, accepted: Accepted) {
        let Ok(peer) = accepted.peer() else { return };
        // A task for each kind of stream, so that none has to look which it is.
        match accepted {
            Accepted::Tcp(stream) => {
                // A failure only costs a delay.
                let _ = stream.set_nodelay(true);
                self.spawn(stream, peer);
            }
            Accepted::Unix(stream) => self.spawn(stream, peer),
        }
    }

    fn spawn(&self, mut stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, peer: IpAddr) {
        let layers = self.layers.get();
        let Some(entered) = self.enter(peer, layers.has_proxy_header) else { return };
        let served = self.clone();
        let Self { common, stopping, alive, .. } = self.clone();
        let place = Place { entered, alive };
        // Several tasks, since a connection without TLS and without a PROXY header needs less memory.
        match layers {
            Layers { has_proxy_header: false, is_tls: false } => tokio::spawn(async move {
                connection::serve(stream, peer, place, common, stopping).await;
            }),
            Layers { has_proxy_header: false, is_tls: true } => tokio::spawn(async move {
                handshake::serve(stream, peer, place, common, stopping).await;
            }),
            Layers { has_proxy_header: true, is_tls } => tokio::spawn(async move {
                let client = match served.named_client(&mut stream, peer).await {
                    Ok(client) => client,
                    Err(error) => return proxy_protocol::report(&error, peer),
                };
                // From now on it counts for the client.
                let Place { entered, alive } = place;
                drop(entered);
                let Some(entered) = served.enter(client, client == peer) else { return };
                let place = Place { entered, alive };
                // On the heap, so that a connection that only begins needs little memory.
                if is_tls {
                    Box::pin(handshake::serve(stream, client, place, common, stopping)).await;
                } else {
                    Box::pin(connection::serve(stream, client, place, common, stopping)).await;
                }
            }),
        };
    }

    /// The client that the PROXY header of a connection names.
    async fn named_client(&self, stream: &mut (impl AsyncRead + Unpin), peer: IpAddr) -> Result<IpAddr, HeaderError> {
        let common = self.common.load_full();
        if !common.service.trusts_proxy_header(peer) {
            return Err(HeaderError::Untrusted);
        }
        let mut stopping = self.stopping.clone();
        let stopped = async {
            let _ = stopping.wait_for(|stop| *stop != Stop::NotYet).await;
            tokio::time::sleep(FIRST_REQUEST).await;
        };
        let named = tokio::select! {
            named = proxy_protocol::read(stream, common.limits.head_timeout.0) => named?,
            () = stopped => return Err(HeaderError::Late(FIRST_REQUEST)),
        };
        Ok(named.map_or(peer, |named| named.ip()))
    }

    /// Counts a connection of this client. None if the client may not have it. A proxy may have any number, because its connections
    /// are those of its clients; `names_clients` tells whether it names them by PROXY headers.
    fn enter(&self, client: IpAddr, names_clients: bool) -> Option<Entered> {
        let common = self.common.load();
        let Common { service, connections, limits, .. } = &**common;
        let is_proxy = service.trusts(client) || names_clients && service.trusts_proxy_header(client);
        if !is_proxy && !service.may_connect(client) {
            tracing::debug!(%client, "closed a connection: its address may not connect");
            return None;
        }
        let max = limits.connections_per_client.map(|max| max.0).filter(|_| !is_proxy);
        let entered = connections.counts.enter(client, max);
        if entered.is_none() {
            tracing::debug!(%client, "closed a connection: its client has as many as it may have");
        }
        entered
    }

    /// Reacts to the lack of a connection.
    async fn mend(&self, lack: Lack, error: io::Error) {
        match lack {
            Lack::Nobody | Lack::OfClient => {
                tracing::debug!(%error, "a client was gone before its connection was accepted");
            }
            Lack::Shortage => {
                if should_log(&LOGGED) {
                    tracing::warn!(%error, "could not accept a connection; closing the connections that have been idle for longest (logged once a minute)");
                }
                self.common.load().connections.make_room();
                tokio::time::sleep(PAUSE).await;
            }
            Lack::Other => {
                if should_log(&LOGGED) {
                    tracing::warn!(%error, "could not accept a connection (logged once a minute)");
                }
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// Accepts until the server is asked to stop, or the sender of `closed` is dropped. Then it still takes the connections that the
/// kernel has accepted already, because their requests are in flight.
pub(super) async fn accept(listener: Listener, served: Served, mut closed: oneshot::Receiver<()>) {
    let mut stopping = served.stopping.clone();
    loop {
        let accepted = tokio::select! {
            biased;
            // An error means that all senders are gone.
            stop = stopping.wait_for(|stop| *stop != Stop::NotYet) => match stop {
                // Another process takes the connections that wait.
                Ok(stop) if *stop == Stop::HandedOver => return,
                _ => break,
            },
            _ = &mut closed => break,
            accepted = served.accept_within_limit(&listener) => accepted,
        };
        match accepted {
            Ok(stream) => served.serve(stream),
            Err(error) => served.mend(Lack::of(&error), error).await,
        }
    }
    let Ok(listener) = listener.into_idle() else { return };
    drain(|| listener.accept(), &served).await;
}

/// Takes all connections that the kernel has accepted already. If that fails permanently, the others are lost.
async fn drain(mut accept: impl FnMut() -> io::Result<Accepted>, served: &Served) {
    let mut tries = DRAIN_TRIES;
    while tries > 0 {
        let error = match accept() {
            Ok(stream) => {
                served.serve(stream);
                continue;
            }
            Err(error) => error,
        };
        match Lack::of(&error) {
            Lack::Nobody => return,
            lack => {
                // Each of these errors belongs to one client, so there are no more of them than connections in the kernel.
                if lack != Lack::OfClient {
                    tries -= 1;
                }
                served.mend(lack, error).await;
            }
        }
    }
}

/// Whether the last report is long ago, for all workers together. `last_seconds` says when it was; it begins with zero.
pub(super) fn should_log(last_seconds: &AtomicU64) -> bool {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    // Zero means never.
    let now = START.get_or_init(Instant::now).elapsed().as_secs() + 1;
    let last = last_seconds.load(Ordering::Relaxed);
    // Another thread may have a later time.
    let is_due = last == 0 || now.saturating_sub(last) >= TOLD_EVERY.as_secs();
    is_due && last_seconds.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(errno: Errno) -> io::Error {
        io::Error::from_raw_os_error(errno.raw_os_error())
    }

    #[test]
    fn only_exhausted_resources_are_a_shortage() {
        for (errno, lack) in [
            (Errno::WOULDBLOCK, Lack::Nobody),
            (Errno::MFILE, Lack::Shortage),
            (Errno::NFILE, Lack::Shortage),
            (Errno::NOBUFS, Lack::Shortage),
            (Errno::NOMEM, Lack::Shortage),
            (Errno::CONNABORTED, Lack::OfClient),
            (Errno::PERM, Lack::OfClient),
            (Errno::INVAL, Lack::Other),
        ] {
            assert_eq!(Lack::of(&failed(errno)), lack, "{errno:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_stopping_server_takes_the_clients_after_one_that_is_gone() {
        for (errors, expected) in [
            (vec![Errno::CONNABORTED, Errno::PROTO, Errno::MFILE, Errno::WOULDBLOCK], 4),
            (vec![Errno::CONNABORTED; 1000], 1001),
            // It doesn't try forever.
            (vec![Errno::INVAL; 1000], DRAIN_TRIES),
        ] {
            let served = super::super::tests::served();
            let (mut errors, mut asked) = (errors.into_iter(), 0);
            let accept = || {
                asked += 1;
                Err(failed(errors.next().unwrap_or(Errno::WOULDBLOCK)))
            };
            drain(accept, &served).await;
            assert_eq!(asked, expected);
        }
    }
}
