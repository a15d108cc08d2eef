//! How many connections there are: in all, at each address that the server listens at, and of each client.
//!
//! They are counted without limits, too, so that a reload that sets limits finds the right numbers. The memory is that of the
//! clients that have connections.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use super::client::Client;

/// The numbers of open connections, of all workers.
#[derive(Default)]
pub(crate) struct ConnectionCounts {
    counts: Mutex<Counts>,
    /// The number of connections that wait for a place.
    waiting: AtomicUsize,
    /// Wakes all of them, since each may wait for another limit.
    freed: Notify,
}

#[derive(Default)]
struct Counts {
    all: u64,
    /// The memory that they may need.
    bytes: u64,
    /// By the numbers of the addresses.
    by_listener: HashMap<u64, u64>,
    by_client: HashMap<Client, u64>,
}

/// How many there may be.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ConnectionLimits {
    pub(crate) all: Option<u64>,
    pub(crate) per_listener: Option<u64>,
    pub(crate) per_client: Option<u64>,
    /// The memory of all.
    pub(crate) memory: Option<u64>,
}

/// The limit that is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Crowd {
    All,
    Listener,
    Client,
    Memory,
}

/// A counted connection, while it is open.
pub(crate) struct Entered {
    counts: Arc<ConnectionCounts>,
    listener: u64,
    client: Client,
    bytes: u64,
}

/// Counts a connection that waits for a place.
pub(crate) struct Waiting<'a>(&'a AtomicUsize);

impl ConnectionCounts {
    /// Counts a connection at the address of this number, which may need so many bytes. While others wait for a limit of all, only one that `waits` itself gets a place.
    ///
    /// # Errors
    /// A limit is reached. That of the client comes first: it doesn't pass by waiting.
    pub(crate) fn enter(
        self: &Arc<Self>,
        address: IpAddr,
        (listener, bytes): (u64, u64),
        limits: ConnectionLimits,
        waits: bool,
    ) -> Result<Entered, Crowd> {
        let client = Client::from(address);
        let is_limited = limits.all.is_some() || limits.memory.is_some();
        let others_wait = !waits && is_limited && self.waiting.load(Ordering::Relaxed) > 0;
        let mut counts = self.lock();
        if is_full(&counts.by_client, &client, limits.per_client) {
            return Err(Crowd::Client);
        }
        if is_full(&counts.by_listener, &listener, limits.per_listener) {
            return Err(Crowd::Listener);
        }
        if others_wait || limits.all.is_some_and(|max| counts.all >= max) {
            return Err(Crowd::All);
        }
        if limits.memory.is_some_and(|max| counts.bytes + bytes > max) {
            return Err(Crowd::Memory);
        }
        *counts.by_client.entry(client).or_default() += 1;
        *counts.by_listener.entry(listener).or_default() += 1;
        counts.all += 1;
        counts.bytes += bytes;
        drop(counts);
        Ok(Entered { counts: Arc::clone(self), listener, client, bytes })
    }

    pub(crate) fn begin_to_wait(&self) -> Waiting<'_> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        Waiting(&self.waiting)
    }

    /// Waits until a place is freed.
    pub(crate) fn freed(&self) -> Notified<'_> {
        self.freed.notified()
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entered {
    /// The number of its address.
    pub(crate) fn listener(&self) -> u64 {
        self.listener
    }

    /// From now on it counts for another client. None if that one has as many as it may have.
    pub(crate) fn pass_on(mut self, address: IpAddr, per_client: Option<u64>) -> Option<Self> {
        let client = Client::from(address);
        if client != self.client {
            let counts = Arc::clone(&self.counts);
            let mut counts = counts.lock();
            if is_full(&counts.by_client, &client, per_client) {
                // Dropping it takes the lock.
                drop(counts);
                return None;
            }
            *counts.by_client.entry(client).or_default() += 1;
            leave(&mut counts.by_client, &self.client);
            drop(counts);
            self.client = client;
        }
        Some(self)
    }
}

/// A client or address without connections has no entry, and is not at its limit.
fn is_full<K: Hash + Eq>(counts: &HashMap<K, u64>, key: &K, max: Option<u64>) -> bool {
    max.is_some_and(|max| counts.get(key).is_some_and(|count| *count >= max))
}

fn leave<K: Hash + Eq>(counts: &mut HashMap<K, u64>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let mut counts = self.counts.lock();
        counts.all = counts.all.saturating_sub(1);
        counts.bytes = counts.bytes.saturating_sub(self.bytes);
        leave(&mut counts.by_listener, &self.listener);
        leave(&mut counts.by_client, &self.client);
        drop(counts);
        if self.counts.waiting.load(Ordering::Relaxed) > 0 {
            self.counts.freed.notify_waiters();
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn each_client_and_each_address_has_its_own_number() {
        let counts = Arc::new(ConnectionCounts::default());
        let limits = ConnectionLimits { all: Some(4), per_listener: Some(3), per_client: Some(2), memory: None };
        let enter = |client: &str, listener| counts.enter(address(client), (listener, 0), limits, false);
        let first = enter("2001:db8::1", 0).ok().unwrap();
        let _second = enter("2001:db8::2", 0).ok().unwrap();
        assert_eq!(enter("2001:db8::3", 1).err(), Some(Crowd::Client), "the network has two");
        let other = enter("2001:db8:0:1::1", 0).ok().unwrap();
        assert_eq!(enter("2001:db8:0:1::1", 0).err(), Some(Crowd::Listener));
        let last = enter("2001:db8:0:1::1", 1).ok().unwrap();
        assert_eq!(enter("2001:db8:0:2::1", 1).err(), Some(Crowd::All));
        drop(last);
        let waiting = counts.begin_to_wait();
        assert_eq!(enter("2001:db8:0:2::1", 1).err(), Some(Crowd::All), "another one waits");
        assert!(counts.enter(address("2001:db8:0:2::1"), (1, 0), limits, true).is_ok());
        drop(waiting);
        drop((first, other));
        let counts = counts.lock();
        assert_eq!((counts.all, counts.by_client.len(), counts.by_listener.len()), (1, 1, 1), "others need no memory");
    }

    #[test]
    fn their_memory_is_counted_with_and_without_a_limit() {
        let counts = Arc::new(ConnectionCounts::default());
        let enter = |bytes, memory| {
            let limits = ConnectionLimits { memory, ..ConnectionLimits::default() };
            counts.enter(address("192.0.2.7"), (0, bytes), limits, false)
        };
        let first = enter(60, None).ok().unwrap();
        assert_eq!(enter(50, Some(100)).err(), Some(Crowd::Memory));
        let _second = enter(40, Some(100)).ok().unwrap();
        drop(first);
        assert!(enter(60, Some(100)).is_ok());
        let _waiting = counts.begin_to_wait();
        assert_eq!(enter(1, Some(100)).err(), Some(Crowd::All), "another one waits");
    }

    #[test]
    fn a_proxys_connection_becomes_its_clients() {
        let counts = Arc::new(ConnectionCounts::default());
        let (proxy, client) = (address("10.0.0.1"), address("192.0.2.7"));
        let enter = || counts.enter(proxy, (0, 0), ConnectionLimits::default(), false).ok().unwrap();
        let first = enter().pass_on(client, Some(1)).unwrap();
        assert!(enter().pass_on(client, Some(1)).is_none());
        assert_eq!(counts.lock().by_client.len(), 1);
        drop(first);
        let counts = counts.lock();
        assert_eq!((counts.all, counts.by_client.len()), (0, 0));
    }
}
