//! A worker: a thread with a runtime of its own, which serves the connections that it accepts.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;

use super::accept::{Served, accept};
use super::common::Common;
use super::connections::Connections;
use super::listener::{ListenSocket, Listener};
use super::stream_budget::StreamBudget;
use super::workers::{Beginning, Change, Order};
use crate::serve::log::Lines;
use crate::serve::shared::Shared;
use crate::serve::stop::Stop;

/// The most threads for work that waits for storage.
const BLOCKING_THREADS_MAX: usize = 16;

/// What all workers have in common.
#[derive(Clone)]
pub(super) struct Together {
    pub(super) shared: Arc<Shared>,
    pub(super) log: Option<Lines>,
    pub(super) connections: Arc<Connections>,
    pub(super) budget: Arc<StreamBudget>,
}

/// A worker that runs.
struct Worker {
    served: Served,
    /// Dropping the senders closes the sockets with this number.
    closers: HashMap<u64, Vec<oneshot::Sender<()>>>,
    accepting: JoinSet<()>,
}

/// Serves until it is asked to stop.
///
/// # Errors
/// The system's, if the runtime can't be created.
pub(super) fn run(beginning: Beginning, together: Together, mut stopping: watch::Receiver<Stop>) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING_THREADS_MAX)
        .build()?;
    let Beginning { listeners, mut orders } = beginning;
    runtime.block_on(async {
        let Together { shared, log, connections, budget } = together;
        let common = Common::new(&shared, log, connections, budget);
        drop(shared);
        // Each connection has a sender. The receiver ends when the last sender is dropped.
        let (alive, mut all_gone) = mpsc::channel::<()>(1);
        let served = Served {
            common: Arc::new(ArcSwap::from_pointee(common)),
            stopping: stopping.clone(),
            alive,
            layers: Arc::default(),
        };
        let mut worker = Worker { served, closers: HashMap::new(), accepting: JoinSet::new() };
        for (number, listener) in listeners {
            worker.listen(number, listener)?;
        }
        loop {
            tokio::select! {
                // An error means that all senders are gone.
                _ = stopping.wait_for(|stop| *stop != Stop::NotYet) => break,
                Some(order) = orders.recv() => match order {
                    Order::Change(change) => worker.change(change),
                    Order::Answer(sender) => drop(sender),
                },
            }
        }
        // A change that comes from now on fails.
        drop(orders);
        let Worker { served, closers: _closers, mut accepting } = worker;
        drop(served);
        // They end once the server is asked to stop, and close their sockets.
        while accepting.join_next().await.is_some() {}
        tokio::select! {
            _ = all_gone.recv() => {}
            _ = stopping.wait_for(|stop| *stop == Stop::AtOnce) => {}
        }
        Ok(())
    })
}

impl Worker {
    fn listen(&mut self, number: u64, socket: ListenSocket) -> io::Result<()> {
        let ListenSocket { socket, layers } = socket;
        let listener = Listener::new(socket)?;
        let (closer, closed) = oneshot::channel();
        let served = Served { layers, ..self.served.clone() };
        self.accepting.spawn(accept(listener, served, closed));
        self.closers.entry(number).or_default().push(closer);
        Ok(())
    }

    /// Puts a change in force: connections have it at their next request.
    fn change(&mut self, change: Change) {
        let Change { shared, added, removed, done } = change;
        let common = self.served.common.load_full().renewed(&shared);
        self.served.common.store(Arc::new(common));
        for (number, listener) in added {
            if let Err(error) = self.listen(number, listener) {
                tracing::error!(%error, "a worker can't accept connections at a new address; other workers may");
            }
        }
        for number in removed {
            self.closers.remove(&number);
        }
        // Those of addresses that were closed.
        while self.accepting.try_join_next().is_some() {}
        drop(done);
    }
}
