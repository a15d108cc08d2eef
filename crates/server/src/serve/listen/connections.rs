//! The connections of all workers. The limit of descriptors is the process's, so the longest idle ones of all workers make room.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::connection_state::{ConnectionState, Order};
use crate::serve::admission::{ConnectionCounts, MemoryUse};
use crate::serve::metrics::ConnectionFigures;

/// How many idle connections are closed at once if descriptors have run out, and how many are remembered: one of eight, and at least some.
const CLOSED_SHARE: usize = 8;
const CLOSED_MIN: usize = 8;
/// The least time between two looks at all connections, if the first has brought nothing.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long the connections of an address are remembered. A reload may have closed the address.
const REMEMBERED: Duration = Duration::from_mins(1);

/// All open connections.
#[derive(Default)]
pub(super) struct Connections {
    list: Mutex<List>,
    /// How many of them each client has. A connection is counted before its task begins.
    pub(super) counts: Arc<ConnectionCounts>,
    /// The memory that requests may need.
    pub(super) memory: Arc<MemoryUse>,
}

/// Fewer connections than this don't leave enough memory behind to give back.
const MANY: usize = 16;

#[derive(Default)]
struct List {
    last: u64,
    /// The most that were open at once since the last time that their number halved.
    peak: usize,
    open: HashMap<u64, Open>,
    /// Of all connections, and of those at the address of a number.
    idlest: HashMap<Option<u64>, Idlest>,
    made_room_at: Option<Instant>,
}

struct Open {
    state: Arc<ConnectionState>,
    /// The number of its address.
    listener: u64,
}

/// Some of the connections that have been idle for longest when all were looked at, the longest idle last. So the look at all of them
/// serves many that need room.
struct Idlest {
    looked: Instant,
    all: Vec<(Instant, u64)>,
    /// Whether one of them was ordered to close.
    has_closed: bool,
}

impl Idlest {
    fn of(open: &HashMap<u64, Open>, listener: Option<u64>, now: Instant) -> Self {
        let at = open.iter().filter(|(_, open)| listener.is_none_or(|listener| open.listener == listener));
        let mut all: Vec<_> = at.filter_map(|(number, open)| Some((open.state.idle_since()?, *number))).collect();
        let count = (open.len() / CLOSED_SHARE).max(CLOSED_MIN);
        if all.len() > count {
            all.select_nth_unstable(count);
            all.truncate(count);
        }
        all.sort_unstable_by(|one, other| other.cmp(one));
        Self { looked: now, all, has_closed: false }
    }

    /// Orders the one that has been idle for longest to close. False: none is idle any more.
    fn close_one(&mut self, open: &HashMap<u64, Open>) -> bool {
        while let Some((since, number)) = self.all.pop() {
            // It may have had a request meanwhile.
            if let Some(idle) = open.get(&number).filter(|open| open.state.idle_since() == Some(since)) {
                idle.state.order(Order::Close);
                self.has_closed = true;
                return true;
            }
        }
        false
    }

    /// Whether another look could bring more. Each worker asks again and again while there is no room, and a look holds a lock that
    /// each connection needs.
    fn is_outdated(&self, now: Instant) -> bool {
        self.has_closed || now.duration_since(self.looked) >= LOOK_EVERY
    }
}

/// A connection's entry in the list, while it is open.
pub(super) struct Registered {
    connections: Arc<Connections>,
    number: u64,
}

impl Connections {
    /// `listener` is the number of its address.
    pub(super) fn register(self: &Arc<Self>, state: &Arc<ConnectionState>, listener: u64) -> Registered {
        let mut connections = self.lock();
        connections.last += 1;
        let number = connections.last;
        connections.open.insert(number, Open { state: Arc::clone(state), listener });
        connections.peak = connections.peak.max(connections.open.len());
        drop(connections);
        Registered { connections: Arc::clone(self), number }
    }

    /// Orders the connection that has been idle for longest to close, of those at the address of this number, or of all. It closes soon, not
    /// at once. False: none is idle, or none was a moment ago.
    pub(super) fn make_room(&self, listener: Option<u64>) -> bool {
        let mut list = self.lock();
        let (List { open, idlest, .. }, now) = (&mut *list, Instant::now());
        if let Some(known) = idlest.get_mut(&listener) {
            if known.close_one(open) {
                return true;
            }
            if !known.is_outdated(now) {
                return false;
            }
        }
        idlest.retain(|_, known| now.duration_since(known.looked) < REMEMBERED);
        let mut looked = Idlest::of(open, listener, now);
        let makes_room = looked.close_one(open);
        idlest.insert(listener, looked);
        makes_room
    }

    /// The same for many of all connections, at most once in `pause`: descriptors have run out, and requests to origins need some, too.
    pub(super) fn make_much_room(&self, pause: Duration) {
        let mut list = self.lock();
        let now = Instant::now();
        if list.made_room_at.is_some_and(|at| now - at < pause) {
            return;
        }
        list.made_room_at = Some(now);
        let count = (list.open.len() / CLOSED_SHARE).max(CLOSED_MIN);
        drop(list);
        for _ in 0..count {
            if !self.make_room(None) {
                return;
            }
        }
    }

    /// How many there are.
    pub(super) fn figures(&self) -> ConnectionFigures {
        let list = self.lock();
        let mut figures = ConnectionFigures { accepted: list.last, ..ConnectionFigures::default() };
        for Open { state, .. } in list.open.values() {
            let kind = if state.is_tunnel() {
                &mut figures.tunnels
            } else if state.is_http2() {
                &mut figures.http2
            } else {
                &mut figures.http1
            };
            *kind += 1;
        }
        figures
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

    #[tokio::test(start_paused = true)]
    async fn the_longest_idle_one_makes_room_and_no_other() {
        let connections = Arc::new(Connections::default());
        let mut open = Vec::new();
        for listener in [0, 1, 0, 1, 0] {
            let state = Arc::new(ConnectionState::new());
            drop(state.open());
            open.push((connections.register(&state, listener), state));
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        let ordered = |open: &[(Registered, Arc<ConnectionState>)]| -> Vec<bool> {
            open.iter().map(|(_, state)| state.poll_order() == std::task::Poll::Ready(Order::Close)).collect()
        };
        assert!(connections.make_room(None));
        assert_eq!(ordered(&open), [true, false, false, false, false]);
        open.remove(0);
        assert!(connections.make_room(Some(0)));
        assert_eq!(ordered(&open), [false, true, false, false]);
        open.remove(1);
        // It is remembered as idle, and has a request now.
        let _busy = open[0].1.open();
        assert!(connections.make_room(None));
        assert_eq!(ordered(&open), [false, true, false]);
        open.remove(1);
        open[1].1.begin_tunnel();
        assert!(!connections.make_room(None), "one is busy, and one is a tunnel");
    }

    #[tokio::test(start_paused = true)]
    async fn all_are_looked_at_now_and_then_while_none_is_idle() {
        let connections = Arc::new(Connections::default());
        let state = Arc::new(ConnectionState::new());
        let _registered = connections.register(&state, 0);
        let busy = state.open();
        assert!(!connections.make_room(None));
        drop(busy);
        assert!(!connections.make_room(None), "no look at all connections");
        assert!(connections.make_room(Some(0)), "those of an address are looked at by themselves");
        assert_eq!(state.poll_order(), std::task::Poll::Ready(Order::Close));
        tokio::time::advance(LOOK_EVERY).await;
        assert!(connections.make_room(None));
        assert!(!connections.make_room(None), "it has its order");
    }

    #[test]
    fn it_has_shrunk_once_when_half_of_many_are_gone() {
        let connections = Arc::new(Connections::default());
        let register = |count: usize| -> Vec<_> {
            (0..count).map(|_| connections.register(&Arc::new(ConnectionState::new()), 0)).collect()
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
