//! How many connections there are, in all and of each client.
//!
//! They are counted without limits, too, so that a reload that sets limits finds the right numbers. The memory is that of the
//! clients that have connections.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::client::Client;

/// The numbers of open connections, of all workers.
#[derive(Default)]
pub(crate) struct ConnectionCounts(Mutex<Counts>);

#[derive(Default)]
struct Counts {
    all: u64,
    by_client: HashMap<Client, u64>,
}

/// A counted connection, while it is open.
pub(crate) struct Entered {
    counts: Arc<ConnectionCounts>,
    client: Client,
}

impl ConnectionCounts {
    /// Counts a connection. None if the client has as many as it may have.
    pub(crate) fn enter(self: &Arc<Self>, address: IpAddr, per_client_max: Option<u64>) -> Option<Entered> {
        let client = Client::from(address);
        let mut counts = self.lock();
        let count = counts.by_client.entry(client).or_default();
        // A client has an entry only while it has connections, and without any it isn't at its limit.
        if per_client_max.is_some_and(|max| *count >= max) {
            return None;
        }
        *count += 1;
        counts.all += 1;
        drop(counts);
        Some(Entered { counts: Arc::clone(self), client })
    }

    /// Whether there are as many as there may be.
    pub(crate) fn is_full(&self, max: Option<u64>) -> bool {
        max.is_some_and(|max| self.lock().all >= max)
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let mut counts = self.counts.lock();
        counts.all = counts.all.saturating_sub(1);
        if let Some(count) = counts.by_client.get_mut(&self.client) {
            *count -= 1;
            if *count == 0 {
                counts.by_client.remove(&self.client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_has_its_own_number() {
        let counts = Arc::new(ConnectionCounts::default());
        let enter = |address: &str| counts.enter(address.parse().unwrap(), Some(2));
        let first = enter("2001:db8::1").unwrap();
        let _second = enter("2001:db8::2").unwrap();
        assert!(enter("2001:db8::3").is_none(), "the network has two");
        let other = enter("2001:db8:0:1::1").unwrap();
        assert!(counts.is_full(Some(3)) && !counts.is_full(Some(4)) && !counts.is_full(None));
        drop(first);
        assert!(!counts.is_full(Some(3)) && enter("2001:db8::3").is_some());
        drop(other);
        assert_eq!(counts.lock().by_client.len(), 1, "clients without connections need no memory");
    }
}
