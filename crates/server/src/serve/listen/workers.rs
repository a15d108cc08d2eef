//! The workers as a reload sees them: their sockets, and a way to tell each of them what changes.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::listener::{Layers, ListenSocket};
use super::sockets::{Binding, Bound, ListenPlace, OpenSocket, Sockets, https_port};
use super::stream_budget::StreamBudget;
use crate::config::listen::ListenAddress;
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
    pub(super) listeners: Vec<ListenSocket>,
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
    pub(super) added: Vec<ListenSocket>,
    /// The numbers of those to close. An address whose connections get other layers is removed and added: connections that wait there
    /// have the layers before.
    pub(super) removed: Vec<u64>,
    /// Dropped once the change is in force, and the connections are taken that waited at removed addresses.
    pub(super) done: Sender<()>,
}

/// The sockets of another configuration, bound and not used yet.
pub(crate) struct Prepared {
    /// In the order of the configuration.
    all: Vec<Result<Kept, Bound>>,
    /// For each worker.
    added: Vec<Vec<ListenSocket>>,
    /// Those for HTTPS.
    tls_addresses: Vec<SocketAddr>,
}

/// An address that stays bound.
struct Kept {
    number: u64,
    layers: Layers,
}

impl Prepared {
    /// Adds the sockets of an address, for connections with these layers.
    fn add(&mut self, bound: &Bound, layers: Layers) -> Result<(), Error> {
        let workers = self.added.len();
        for (worker, added) in self.added.iter_mut().enumerate() {
            added.append(&mut bound.of_worker((worker, workers), layers)?);
        }
        Ok(())
    }

    /// The port for redirects to HTTPS.
    pub(crate) fn https_port(&self) -> Option<u16> {
        https_port(&self.tls_addresses)
    }
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
                listeners.append(&mut bound.of_worker((worker, count), bound.layers)?);
            }
            let (sender, receiver) = unbounded_channel();
            orders.push(sender);
            beginnings.push(Beginning { listeners, orders: receiver });
        }
        let budget = Arc::new(StreamBudget::new(stream_bytes));
        Ok((Self { orders, sockets: Mutex::new(sockets), budget }, beginnings))
    }

    /// With the real ports, in the order of the configuration. Empty once the server ends.
    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        self.sockets().addresses()
    }

    /// The same for HTTPS.
    pub(crate) fn tls_addresses(&self) -> Vec<SocketAddr> {
        self.sockets().tls_addresses()
    }

    /// The paths of its Unix sockets, in the order of the configuration.
    pub(crate) fn unix_sockets(&self) -> Vec<PathBuf> {
        self.sockets().unix_sockets()
    }

    /// Notes whether another process has the sockets: the files of Unix sockets stay then.
    pub(crate) fn hand_over_files(&self, is_handed_over: bool) {
        self.sockets().all.iter().for_each(|bound| bound.hand_over_file(is_handed_over));
    }

    /// From now on [`Workers::prepare`] and [`Workers::change`] fail, because this process accepts no more.
    pub(crate) fn refuse_changes(&self) {
        self.sockets().are_final = true;
    }

    /// Whether the server ends, or another process has taken over.
    pub(crate) fn are_ending(&self) -> bool {
        self.sockets().are_final
    }

    /// Closes the sockets here, for good. A worker that ends closes its own ones.
    pub(crate) fn close(&self) {
        *self.sockets() = Sockets { all: Vec::new(), are_final: true };
    }

    /// Calls a function for each socket.
    ///
    /// # Errors
    /// The first one of the function.
    pub(crate) fn each_socket(&self, mut call: impl FnMut(OpenSocket<'_>) -> io::Result<()>) -> io::Result<()> {
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
    /// [`Error::Listen`], and [`Error::Draining`]. Nothing has changed then.
    pub(crate) fn prepare(
        &self,
        places: &[ListenPlace],
        binding: impl FnOnce(usize) -> Binding,
    ) -> Result<Prepared, Error> {
        let workers = self.orders.len();
        let binding = binding(workers);
        let sockets = self.sockets();
        if sockets.are_final {
            return Err(Error::Draining);
        }
        let mut present: Vec<&Bound> = sockets.all.iter().collect();
        let added = self.orders.iter().map(|_| Vec::new()).collect();
        let mut prepared = Prepared { all: Vec::new(), added, tls_addresses: Vec::new() };
        for place in places {
            let mut known = present.iter().enumerate().filter(|(_, bound)| bound.is_for(&place.address));
            // Port 0 may be that of several.
            let same = known.clone().find(|(_, bound)| bound.layers == place.layers).or_else(|| known.next());
            let same = same.map(|(number, _)| number).map(|number| present.remove(number));
            if let Some(same) = same {
                prepared.tls_addresses.extend(same.tcp().filter(|_| place.layers.is_tls));
                if same.layers != place.layers {
                    prepared.add(same, place.layers)?;
                }
                prepared.all.push(Ok(Kept { number: same.number, layers: place.layers }));
                continue;
            }
            let Some(bound) = Bound::new(place, places, binding)? else { continue };
            prepared.tls_addresses.extend(bound.tls());
            prepared.add(&bound, place.layers)?;
            prepared.all.push(Err(bound));
        }
        Ok(prepared)
    }

    /// Puts another configuration in force. When this returns, all workers have it. It blocks for that time. Returns the addresses that
    /// were closed.
    ///
    /// # Errors
    /// [`Error::Draining`], if the server has begun to end meanwhile. The sockets of `prepared` are closed then.
    pub(crate) fn change(&self, shared: &Arc<Shared>, prepared: Prepared) -> Result<Vec<ListenAddress>, Error> {
        let mut sockets = self.sockets();
        if sockets.are_final {
            return Err(Error::Draining);
        }
        let mut before = std::mem::take(&mut sockets.all);
        let mut removed = Vec::new();
        for bound in prepared.all {
            match bound {
                Ok(Kept { number, layers }) => {
                    for mut bound in before.extract_if(.., |bound| bound.number == number) {
                        if bound.layers != layers {
                            bound.layers = layers;
                            removed.push(number);
                        }
                        sockets.all.push(bound);
                    }
                }
                Err(bound) => sockets.all.push(bound),
            }
        }
        drop(sockets);
        removed.extend(before.iter().map(|bound| bound.number));
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
        Ok(before.into_iter().map(Bound::into_address).collect())
    }

    fn sockets(&self) -> MutexGuard<'_, Sockets> {
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
