//! Gives accepted connections their places. While there is none, idle connections make room: one for each that waits.
//!
//! A connection is accepted first and waits then, because a listening socket can't say that a client waits. So each worker has at most
//! one connection for each of its sockets beyond the limits, and the others wait in the kernel.

use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::accept::{Served, should_log};
use super::held::Place;
use crate::config::memory;
use crate::config::settings::Limits;
use crate::serve::admission::{ConnectionLimits, Crowd, Entered};
use crate::serve::service::Service;
use crate::serve::stop::Stop;

/// How long a connection waits for the one that makes room, before another one is asked: a client of HTTP/2 may be gone.
const PATIENCE: Duration = Duration::from_millis(500);
/// How long it waits if there is no idle one.
const PAUSE: Duration = Duration::from_millis(50);
/// When the limits for all connections and for those of an address were logged.
static FULL_LOGGED: AtomicU64 = AtomicU64::new(0);

/// Why a connection has no place.
enum Unplaced {
    /// It is closed.
    Refused,
    /// It waits.
    Crowded(Crowd),
}

/// The client may have no connection at all.
struct Denied;

impl Served {
    /// The place of an accepted connection. It waits while there are as many as there may be, unless the server ends. None: it is closed.
    /// `begun` has the networks and proxies under which it begins.
    pub(super) async fn admit(&self, peer: IpAddr, begun: &Service) -> Option<Place> {
        let entered = match self.enter(peer, begun, false) {
            Ok(entered) => Some(entered),
            Err(Unplaced::Refused) => None,
            Err(Unplaced::Crowded(_)) => {
                let mut stopping = self.stopping.clone();
                tokio::select! {
                    biased;
                    // An error means that all senders are gone.
                    _ = stopping.wait_for(|stop| *stop != Stop::NotYet) => self.enter_at_once(peer, begun),
                    entered = self.wait_for_place(peer, begun) => entered,
                }
            }
        };
        entered.map(|entered| Place { entered, alive: self.alive.clone() })
    }

    async fn wait_for_place(&self, peer: IpAddr, begun: &Service) -> Option<Entered> {
        let connections = Arc::clone(&self.common.load().connections);
        let _waiting = connections.counts.begin_to_wait();
        let mut next_look = Instant::now();
        loop {
            let mut freed = pin!(connections.counts.freed());
            // Before the look, so that no place is freed between.
            freed.as_mut().enable();
            let crowd = match self.enter(peer, begun, true) {
                Ok(entered) => return Some(entered),
                Err(Unplaced::Refused) => return None,
                Err(Unplaced::Crowded(crowd)) => crowd,
            };
            tell_full(crowd);
            // Not whenever a place is freed: it may be for another one, and the look costs time for each connection.
            if Instant::now() >= next_look {
                let listener = (crowd == Crowd::Listener).then_some(self.address);
                let makes_room = connections.make_room(listener);
                next_look = Instant::now() + if makes_room { PATIENCE } else { PAUSE };
            }
            let _ = timeout_at(next_look, freed).await;
        }
    }

    /// Counts a connection of this peer. A connection that `waits` goes before those that don't.
    fn enter(&self, peer: IpAddr, begun: &Service, waits: bool) -> Result<Entered, Unplaced> {
        let common = self.common.load();
        let per_client =
            of_client(&common.limits, begun, peer, self.layers.has_proxy_header).map_err(|Denied| Unplaced::Refused)?;
        let limits = &common.limits;
        let header_bytes = limits.header_bytes.0;
        let all = limits.connections.map(|max| max.0);
        let per_listener = limits.connections_per_listener.map(|max| max.0);
        let memory = common.memory.map(|memory| memory.connections);
        let limits = ConnectionLimits { all, per_listener, per_client, memory };
        let place = (self.address, self.bytes(header_bytes));
        common.connections.counts.enter(peer, place, limits, waits).map_err(|crowd| match crowd {
            Crowd::Client => {
                tell_crowd(peer);
                Unplaced::Refused
            }
            crowd => Unplaced::Crowded(crowd),
        })
    }

    /// The memory that a connection here may need.
    fn bytes(&self, header_bytes: u64) -> u64 {
        memory::connection(header_bytes) + if self.layers.is_tls { memory::TLS_CONNECTION } else { 0 }
    }

    /// [`Served::enter`] without a limit for all: the server ends.
    fn enter_at_once(&self, peer: IpAddr, begun: &Service) -> Option<Entered> {
        let common = self.common.load();
        let per_client = of_client(&common.limits, begun, peer, self.layers.has_proxy_header).ok()?;
        let limits = ConnectionLimits { per_client, ..ConnectionLimits::default() };
        let place = (self.address, self.bytes(common.limits.header_bytes.0));
        common.connections.counts.enter(peer, place, limits, true).ok()
    }

    /// Gives the place to the client that a PROXY header names. None if the client may not have it.
    pub(super) fn pass_on(&self, place: Place, (client, is_proxy): (IpAddr, bool), begun: &Service) -> Option<Place> {
        let common = self.common.load();
        let per_client = of_client(&common.limits, begun, client, is_proxy).ok()?;
        let Place { entered, alive } = place;
        let Some(entered) = entered.pass_on(client, per_client) else {
            tell_crowd(client);
            return None;
        };
        Some(Place { entered, alive })
    }
}

/// How many connections a client may have. A proxy may have any number, because its connections are those of its clients; `names_clients`
/// tells whether it names them by PROXY headers.
fn of_client(limits: &Limits, begun: &Service, client: IpAddr, names_clients: bool) -> Result<Option<u64>, Denied> {
    let is_proxy = begun.trusts(client) || names_clients && begun.trusts_proxy_header(client);
    if !is_proxy && !begun.may_connect(client) {
        tracing::debug!(%client, "closed a connection: its address may not connect");
        return Err(Denied);
    }
    Ok(limits.connections_per_client.map(|max| max.0).filter(|_| !is_proxy))
}

fn tell_full(crowd: Crowd) {
    if should_log(&FULL_LOGGED) {
        let limit = match crowd {
            Crowd::Listener => "connections_per_listener",
            Crowd::Memory => "memory",
            Crowd::All | Crowd::Client => "connections",
        };
        tracing::warn!(
            "there are as many connections as `{limit}` of [server.limits] allows; closing the one that has been idle for longest for each \
             that waits (logged once a minute)"
        );
    }
}

fn tell_crowd(client: IpAddr) {
    tracing::debug!(%client, "closed a connection: its client has as many as it may have");
}
