//! The workers as a reload sees them: their sockets, and a way to tell each of them what changes.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::sockets::{Address, Addresses, Binding, Bound, Listener, Sockets};
use super::stream_budget::StreamBudget;
use crate::serve::error::Error;
use crate::serve::shared::Shared;

/// All workers.
pub(crate) struct Workers {
    orders: Vec<UnboundedSender<Order>>,
    /// Changed by one reload at a time; emptied when the server ends.
    sockets: Mutex<Sockets>,
    pub(super) budget: Arc<StreamBudget>,
}

/// What a worker needs to begin.
pub(crate) struct Beginning {
    pub(super) listeners: Vec<Listener>,
    pub(super) orders: UnboundedReceiver<Order>,
}

/// What a worker has to do between two connections.
pub(super) enum Order {
    Change(Change),
    /// Drop the sender, to show that the worker isn't stuck.
    Answer(Sender<()>),
}

/// A new configuration, for one worker.
pub(super) struct Change {
    pub(super) shared: Arc<Shared>,
    /// Sockets to accept from in addition.
    pub(super) added: Vec<Listener>,
    /// The numbers of those to close.
    pub(super) removed: Vec<u64>,
    /// Dropped once the change is in force.
    pub(super) done: Sender<()>,
}

/// The sockets of another configuration, bound and not used yet.
pub(crate) struct Prepared {
    /// In the order of the configuration; a number is that of a present one.
    all: Vec<Result<u64, Bound>>,
    /// For each worker.
    added: Vec<Vec<Listener>>,
    /// With the real ports.
    pub(crate) addresses: Addresses,
}

impl Workers {
    /// The workers for these sockets, and what each of `count` needs to begin.
    ///
    /// # Errors
    /// [`Error::Listen`].
    pub(crate) fn new(sockets: Sockets, count: usize, stream_bytes: u64) -> Result<(Self, Vec<Beginning>), Error> {
        let (mut orders, mut beginnings) = (Vec::new(), Vec::new());
        for worker in 0..count {
            let mut listeners = Vec::new();
            for bound in &sockets.all {
                listeners.append(&mut bound.of_worker(worker, count)?);
            }
            let (sender, receiver) = unbounded_channel();
            orders.push(sender);
            beginnings.push(Beginning { listeners, orders: receiver });
        }
        let budget = Arc::new(StreamBudget::new(stream_bytes));
        Ok((Self { orders, sockets: Mutex::new(sockets), budget }, beginnings))
    }

    /// With the real ports, in the order of the configuration. Empty once the server ends.
    pub(crate) fn addresses(&self) -> Addresses {
        self.sockets().addresses()
    }

    /// Closes the sockets here. A worker that ends closes its own ones.
    pub(crate) fn close(&self) {
        self.sockets().all.clear();
    }

    /// Calls a function for each socket, with its address of the configuration, and the one with the real port.
    ///
    /// # Errors
    /// The first one of the function.
    pub(crate) fn each_socket(
        &self,
        mut call: impl FnMut(Address, SocketAddr, &TcpListener) -> io::Result<()>,
    ) -> io::Result<()> {
        self.sockets().all.iter().try_for_each(|bound| bound.each_socket(&mut call))
    }

    /// Whether every worker answers within this time. A worker that has ended counts. It blocks.
    pub(crate) fn answer_within(&self, timeout: Duration) -> bool {
        let (sender, answered) = channel();
        for orders in &self.orders {
            let _ = orders.send(Order::Answer(sender.clone()));
        }
        drop(sender);
        // It fails when the last sender is dropped.
        answered.recv_timeout(timeout) == Err(RecvTimeoutError::Disconnected)
    }

    /// Binds the addresses that aren't bound yet.
    ///
    /// # Errors
    /// [`Error::Listen`]. Nothing has changed then.
    pub(crate) fn prepare(&self, addresses: &[Address], is_shared: bool) -> Result<Prepared, Error> {
        let workers = self.orders.len();
        let sockets = self.sockets();
        let mut present: Vec<&Bound> = sockets.all.iter().collect();
        let added = self.orders.iter().map(|_| Vec::new()).collect();
        let mut prepared = Prepared { all: Vec::new(), added, addresses: Addresses::default() };
        for address in addresses {
            if let Some(same) = present.iter().position(|bound| bound.is_for(*address)) {
                let same = present.remove(same);
                prepared.addresses.push(address.is_tls, same.real);
                prepared.all.push(Ok(same.number));
                continue;
            }
            let Some(bound) = Bound::new(*address, addresses, Binding { workers, is_shared })? else { continue };
            for (worker, added) in prepared.added.iter_mut().enumerate() {
                added.append(&mut bound.of_worker(worker, workers)?);
            }
            prepared.addresses.push(address.is_tls, bound.real);
            prepared.all.push(Err(bound));
        }
        Ok(prepared)
    }

    /// Puts another configuration in force. When this returns, all workers have it. It blocks for that time.
    pub(crate) fn change(&self, shared: &Arc<Shared>, prepared: Prepared) {
        let mut sockets = self.sockets();
        let mut before = std::mem::take(&mut sockets.all);
        for bound in prepared.all {
            match bound {
                Ok(number) => sockets.all.extend(before.extract_if(.., |bound| bound.number == number)),
                Err(bound) => sockets.all.push(bound),
            }
        }
        drop(sockets);
        let removed: Vec<u64> = before.iter().map(|bound| bound.number).collect();
        let (done, all_done) = channel();
        for (orders, added) in self.orders.iter().zip(prepared.added) {
            let (shared, removed, done) = (Arc::clone(shared), removed.clone(), done.clone());
            // A worker that has ended needs no change.
            let _ = orders.send(Order::Change(Change { shared, added, removed, done }));
        }
        self.budget.limit(shared.config.server.limits.stream_bytes.0);
        drop(done);
        // It fails when the last sender is dropped.
        let _ = all_done.recv();
    }

    fn sockets(&self) -> MutexGuard<'_, Sockets> {
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
