//! The connections of all workers: the limit of descriptors is the process's, and so the longest idle of all make room.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::connection_state::{ConnectionState, Order};

/// So many of the idle connections are closed at once, the longest idle first: one of eight, and some at least.
const CLOSED_SHARE: usize = 8;
const CLOSED_MIN: usize = 8;

/// All connections that are open.
#[derive(Default)]
pub(super) struct Roster(Mutex<Connections>);

/// Fewer connections than this leave no memory behind that would be worth the trouble.
const MANY: usize = 16;

#[derive(Default)]
struct Connections {
    last: u64,
    /// The most that were open at once since there were last half as many.
    peak: usize,
    open: HashMap<u64, Arc<ConnectionState>>,
}

/// A connection's place in the roster, as long as it lives.
pub(super) struct Enrolled {
    roster: Arc<Roster>,
    number: u64,
}

impl Roster {
    pub(super) fn enroll(self: &Arc<Self>, state: &Arc<ConnectionState>) -> Enrolled {
        let mut connections = self.connections();
        connections.last += 1;
        let number = connections.last;
        connections.open.insert(number, Arc::clone(state));
        connections.peak = connections.peak.max(connections.open.len());
        drop(connections);
        Enrolled { roster: Arc::clone(self), number }
    }

    /// Has some of the connections closed that have been idle for longest. They close soon, not at once.
    pub(super) fn make_room(&self) {
        let mut idle: Vec<_> = {
            let connections = self.connections();
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

    /// Whether there were many connections, and half of them have gone since this was last so.
    pub(super) fn has_shrunk(&self) -> bool {
        let mut connections = self.connections();
        let count = connections.open.len();
        let has_shrunk = connections.peak >= MANY && count <= connections.peak / 2;
        if has_shrunk {
            connections.peak = count;
        }
        has_shrunk
    }

    fn connections(&self) -> MutexGuard<'_, Connections> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Enrolled {
    fn drop(&mut self) {
        let gone = self.roster.connections().open.remove(&self.number);
        drop(gone);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_has_shrunk_once_when_half_of_many_have_gone() {
        let roster = Arc::new(Roster::default());
        let enroll =
            |count: usize| -> Vec<_> { (0..count).map(|_| roster.enroll(&Arc::new(ConnectionState::new()))).collect() };
        drop(enroll(MANY - 1));
        assert!(!roster.has_shrunk(), "they are few");
        let mut many = enroll(MANY);
        many.truncate(MANY / 2 + 1);
        assert!(!roster.has_shrunk());
        many.truncate(MANY / 2);
        assert!(roster.has_shrunk() && !roster.has_shrunk());
        drop(many);
        assert!(!roster.has_shrunk(), "they are few");
    }
}
