//! The connections of all workers: the limit of descriptors is the process's, and so the longest idle of all make room.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::activity::{Activity, Order};

/// So many of the idle connections are closed at once, the longest idle first: one of eight, and some at least.
const CLOSED_SHARE: usize = 8;
const CLOSED_MIN: usize = 8;

/// All connections that are open.
#[derive(Default)]
pub(super) struct Roster(Mutex<Connections>);

#[derive(Default)]
struct Connections {
    last: u64,
    open: HashMap<u64, Arc<Activity>>,
}

/// A connection's place in the roster, as long as it lives.
pub(super) struct Enrolled {
    roster: Arc<Roster>,
    number: u64,
}

impl Roster {
    pub(super) fn enroll(self: &Arc<Self>, activity: &Arc<Activity>) -> Enrolled {
        let mut connections = self.connections();
        connections.last += 1;
        let number = connections.last;
        connections.open.insert(number, Arc::clone(activity));
        drop(connections);
        Enrolled { roster: Arc::clone(self), number }
    }

    /// Has some of the connections closed that have been idle for longest. They close soon, not at once.
    pub(super) fn make_room(&self) {
        let mut idle: Vec<_> = {
            let connections = self.connections();
            let since = |activity: &Arc<Activity>| Some((activity.idle_since()?, Arc::clone(activity)));
            connections.open.values().filter_map(since).collect()
        };
        let count = (idle.len() / CLOSED_SHARE).max(CLOSED_MIN);
        if idle.len() > count {
            idle.select_nth_unstable_by_key(count, |(since, _)| *since);
        }
        for (_, activity) in idle.iter().take(count) {
            activity.order(Order::Part);
        }
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
