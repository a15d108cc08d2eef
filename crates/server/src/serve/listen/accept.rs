//! Accepts connections until the server stops, and then the ones that the kernel has accepted already.

use std::io;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use rustix::io::Errno;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, oneshot, watch};

use super::common::Common;
use super::connection_state::FIRST_REQUEST;
use super::file_queue::SendFile;
use super::held::Place;
use super::listener::{Accepted, BACKLOG, Layers, Listener};
use super::proxy_protocol::{self, HeaderError};
use super::{connection, handshake};
use crate::serve::stop::Stop;

/// How long to wait after a connection could not be accepted, usually for want of descriptors.
const PAUSE: Duration = Duration::from_millis(50);
/// How often that is logged, at most.
const TOLD_EVERY: Duration = Duration::from_mins(1);
/// When a connection that could not be accepted was logged.
static LOGGED: AtomicU64 = AtomicU64::new(0);
/// How often a stopping server waits for descriptors.
const DRAIN_TRIES: u32 = 40;

/// The state of a connection, which lives as long as the connection.
#[derive(Clone)]
pub(super) struct Served {
    pub(super) common: Arc<ArcSwap<Common>>,
    pub(super) stopping: watch::Receiver<Stop>,
    /// When the last of these is dropped, all connections have ended.
    pub(super) alive: mpsc::Sender<()>,
    /// The number of the address where it was accepted.
    pub(super) address: u64,
    pub(super) layers: Layers,
}

/// The removal of an address, or of its layers.
pub(super) struct Closing {
    /// The configuration of the connections that wait there. The present one may have no certificate for them.
    pub(super) begun: Arc<Common>,
    /// A reload waits until it is dropped: a client that connects after the reload must not be taken for one from before.
    pub(super) done: Sender<()>,
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
    /// Serves an accepted connection once it has its place. It begins under `begun`, or the present configuration.
    async fn serve(&self, accepted: Accepted, begun: Option<&Arc<Common>>) {
        let Ok(peer) = accepted.peer() else { return };
        // A reload may come while it waits for its place.
        let begun = begun.map_or_else(|| self.common.load_full(), Arc::clone);
        let Some(place) = self.admit(peer, &begun.service).await else { return };
        // A task for each kind of stream, so that none has to look which it is.
        match accepted {
            Accepted::Tcp(stream) => {
                // A failure only costs a delay.
                let _ = stream.set_nodelay(true);
                self.spawn(stream, peer, place, begun);
            }
            Accepted::Unix(stream) => self.spawn(stream, peer, place, begun),
        }
    }

    fn spawn(
        &self,
        mut stream: impl AsyncRead + AsyncWrite + SendFile + Unpin + Send + 'static,
        peer: IpAddr,
        place: Place,
        begun: Arc<Common>,
    ) {
        let Self { common, stopping, .. } = self.clone();
        // Several tasks, since a connection without TLS and without a PROXY header needs less memory.
        match self.layers {
            Layers { has_proxy_header: false, is_tls: false } => {
                tokio::spawn(connection::serve(stream, peer, (place, begun), common, stopping));
            }
            Layers { has_proxy_header: false, is_tls: true } => {
                tokio::spawn(handshake::serve(stream, peer, (place, begun), common, stopping));
            }
            Layers { has_proxy_header: true, is_tls } => {
                let served = self.clone();
                tokio::spawn(async move {
                    let client = match served.named_client(&mut stream, peer, &begun).await {
                        Ok(client) => client,
                        Err(error) => return proxy_protocol::report(&error, peer),
                    };
                    // From now on it counts for the client.
                    let Some(place) = served.pass_on(place, (client, client == peer), &begun.service) else { return };
                    // On the heap, so that a connection that only begins needs little memory.
                    if is_tls {
                        Box::pin(handshake::serve(stream, client, (place, begun), common, stopping)).await;
                    } else {
                        Box::pin(connection::serve(stream, client, (place, begun), common, stopping)).await;
                    }
                });
            }
        }
    }

    /// The client that the PROXY header of a connection names.
    async fn named_client(
        &self,
        stream: &mut (impl AsyncRead + Unpin),
        peer: IpAddr,
        begun: &Common,
    ) -> Result<IpAddr, HeaderError> {
        if !begun.service.trusts_proxy_header(peer) {
            return Err(HeaderError::Untrusted);
        }
        let mut stopping = self.stopping.clone();
        // After a handover it has as long as a head.
        let stopped = async {
            let _ = stopping.wait_for(|stop| *stop > Stop::HandedOver).await;
            tokio::time::sleep(FIRST_REQUEST).await;
        };
        let named = tokio::select! {
            named = proxy_protocol::read(stream, begun.limits.head_timeout.0) => named?,
            () = stopped => return Err(HeaderError::Late(FIRST_REQUEST)),
        };
        Ok(named.map_or(peer, |named| named.ip()))
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
                self.common.load().connections.make_much_room(PAUSE);
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

/// Accepts until the server is asked to stop, or `closed` says that the address was removed. Then it still takes the connections that
/// the kernel has accepted already, because their requests are in flight.
pub(super) async fn accept(listener: Listener, served: Served, mut closed: oneshot::Receiver<Closing>) {
    let mut stopping = served.stopping.clone();
    let (begun, done) = loop {
        let accepted = tokio::select! {
            biased;
            // An error means that all senders are gone.
            stop = stopping.wait_for(|stop| *stop != Stop::NotYet) => match stop {
                // Another process takes the connections that wait.
                Ok(stop) if *stop == Stop::HandedOver => return,
                _ => break (None, None),
            },
            // An error means that the worker ends.
            closing = &mut closed => break parts(closing.ok()),
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok(stream) => {
                let mut serving = pin!(served.serve(stream, None));
                tokio::select! {
                    biased;
                    () = serving.as_mut() => {}
                    closing = &mut closed => {
                        // The connection waits for a place, for an unknown time. A reload doesn't.
                        let (begun, _) = parts(closing.ok());
                        serving.await;
                        break (begun, None);
                    }
                }
            }
            Err(error) => served.mend(Lack::of(&error), error).await,
        }
    };
    let Ok(listener) = listener.into_idle() else { return };
    drain(|| listener.accept(), &served, (begun, done)).await;
}

fn parts(closing: Option<Closing>) -> (Option<Arc<Common>>, Option<Sender<()>>) {
    closing.map(|Closing { begun, done }| (begun, done)).unzip()
}

/// Takes all connections that the kernel has accepted already. If that fails permanently, the others are lost. `done` is dropped when all
/// are taken, or when one has to wait for its place.
async fn drain(
    mut accept: impl FnMut() -> io::Result<Accepted>,
    served: &Served,
    (begun, mut done): (Option<Arc<Common>>, Option<Sender<()>>),
) {
    let mut tries = DRAIN_TRIES;
    // More have come since then, and would come without end.
    let mut left = BACKLOG;
    while tries > 0 && left > 0 {
        let error = match accept() {
            Ok(stream) => {
                left -= 1;
                let mut serving = pin!(served.serve(stream, begun.as_ref()));
                tokio::select! {
                    biased;
                    () = serving.as_mut() => {}
                    () = std::future::ready(()) => {
                        drop(done.take());
                        serving.await;
                    }
                }
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
                    drop(done.take());
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
    use std::sync::mpsc::TryRecvError;

    use tokio::io::AsyncWriteExt as _;

    use super::*;
    use crate::config::settings::Limits;
    use crate::config::value::Within;
    use crate::serve::unix_client::UNIX_CLIENT;

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
            drain(accept, &served, (None, None)).await;
            assert_eq!(asked, expected);
        }
    }

    #[tokio::test]
    async fn a_reload_waits_for_those_that_wait_in_the_kernel_unless_there_is_no_place() {
        let folder = tempfile::tempdir().unwrap();
        // The second one waits for its place when the reload comes, or comes to wait after it.
        for (is_full, is_late) in [(false, false), (true, false), (true, true)] {
            let (_stop, stopping) = watch::channel(Stop::NotYet);
            let served = super::super::tests::served();
            let common = Arc::into_inner(Arc::into_inner(served.common).unwrap().into_inner()).unwrap();
            let per_listener = is_full.then_some(Within(1));
            let limits = Limits { connections_per_listener: per_listener, ..common.limits.clone() };
            let common = Arc::new(ArcSwap::from_pointee(Common { limits, ..common }));
            let served = Served { common, stopping, ..served };
            let path = folder.path().join(format!("{is_full} {is_late}"));
            let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
            listener.set_nonblocking(true).unwrap();
            let clients: Vec<_> = (0..2).map(|_| std::os::unix::net::UnixStream::connect(&path).unwrap()).collect();
            let (close, closed) = oneshot::channel();
            let (done, all_done) = std::sync::mpsc::channel();
            let begun = served.common.load_full();
            let listener = Listener::new(socket2::Socket::from(listener)).unwrap();
            let accepting = tokio::spawn(accept(listener, served, closed));
            for _ in 0..if is_late { 1000 } else { 0 } {
                tokio::task::yield_now().await;
            }
            assert!(close.send(Closing { begun, done }).is_ok());
            assert_eq!(all_done.try_recv(), Err(TryRecvError::Empty), "they were not taken yet");
            while all_done.try_recv() == Err(TryRecvError::Empty) {
                tokio::task::yield_now().await;
            }
            // The second one waits for the place of the first.
            assert_eq!(accepting.is_finished(), !is_full);
            drop(clients);
            accepting.await.unwrap();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_proxy_header_has_the_time_of_a_head_until_the_server_ends() {
        for (stop, is_late) in [(Stop::NotYet, false), (Stop::HandedOver, false), (Stop::InOrder, true)] {
            let (_stop, stopping) = watch::channel(stop);
            let served = Served { stopping, ..super::super::tests::served() };
            let begun = served.common.load_full();
            let (mut near, mut far) = tokio::io::duplex(100);
            let saying = async {
                tokio::time::sleep(5 * FIRST_REQUEST).await;
                far.write_all(b"PROXY TCP4 192.0.2.7 10.0.0.1 4660 80\r\n").await.unwrap();
            };
            let (named, ()) = tokio::join!(served.named_client(&mut near, UNIX_CLIENT, &begun), saying);
            assert_eq!(named.is_err(), is_late, "{stop:?}");
        }
    }
}
