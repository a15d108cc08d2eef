//! The connections of all workers. The limit of descriptors is the process's, so the longest idle ones of all workers make room.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::connection_state::{ConnectionState, Order};
use crate::serve::admission::ConnectionCounts;

/// How many idle connections are closed at once, the longest idle first: one of eight, and at least some.
const CLOSED_SHARE: usize = 8;
const CLOSED_MIN: usize = 8;

/// All open connections.
#[derive(Default)]
pub(super) struct Connections {
    list: Mutex<List>,
    /// How many of them each client has. A connection is counted before its task begins.
    pub(super) counts: Arc<ConnectionCounts>,
}

/// Fewer connections than this don't leave enough memory behind to give back.
const MANY: usize = 16;

#[derive(Default)]
struct List {
    last: u64,
    /// The most that were open at once since the last time that their number halved.
    peak: usize,
    open: HashMap<u64, Arc<ConnectionState>>,
}

/// A connection's entry in the list, while it is open.
pub(super) struct Registered {
    connections: Arc<Connections>,
    number: u64,
}

impl Connections {
    pub(super) fn register(self: &Arc<Self>, state: &Arc<ConnectionState>) -> Registered {
        let mut connections = self.lock();
        connections.last += 1;
        let number = connections.last;
        connections.open.insert(number, Arc::clone(state));
        connections.peak = connections.peak.max(connections.open.len());
        drop(connections);
        Registered { connections: Arc::clone(self), number }
    }

    /// Orders some of the connections that have been idle for longest to close. They close soon, not at once.
    pub(super) fn make_room(&self) {
        let mut idle: Vec<_> = {
            let connections = self.lock();
            let since = |state: &Arc<ConnectionState>| Some((state.idle_since()?, Arc::clone(state)));
            connections.open.values().filter_map(since).collect()
        };
        let count = (idle.len() / CLOSED_SHARE).max(CLOSED_MIN);
        if idle.len() > count {
            idle.select_nth_unstable_by_key(count, |(since, _)| *since);
        }
        for (_, state) in idle.iter().take(count) {
            state.order(Order::Close);
        }
    }

    /// Whether there were many connections, and half of them are gone since this was last true.
    pub(super) fn has_shrunk(&self) -> bool {
        let mut connections = self.lock();
        let count = connections.open.len();
        let has_shrunk = connections.peak >= MANY && count <= connections.peak / 2;
        if has_shrunk {
            connections.peak = count;
        }
        has_shrunk
    }

    fn lock(&self) -> MutexGuard<'_, List> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        let gone = self.connections.lock().open.remove(&self.number);
        drop(gone);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_has_shrunk_once_when_half_of_many_are_gone() {
        let connections = Arc::new(Connections::default());
        let register = |count: usize| -> Vec<_> {
            (0..count).map(|_| connections.register(&Arc::new(ConnectionState::new()))).collect()
        };
        drop(register(MANY - 1));
        assert!(!connections.has_shrunk(), "they are few");
        let mut many = register(MANY);
        many.truncate(MANY / 2 + 1);
        assert!(!connections.has_shrunk());
        many.truncate(MANY / 2);
        assert!(connections.has_shrunk() && !connections.has_shrunk());
        drop(many);
        assert!(!connections.has_shrunk(), "they are few");
    }
}
