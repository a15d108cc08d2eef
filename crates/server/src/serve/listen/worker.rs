//! A worker: a thread with a runtime of its own, which serves the connections that it accepts.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;

use super::accept::{Closing, Served, accept};
use super::common::Common;
use super::connections::Connections;
use super::listener::{Layers, ListenSocket, Listener};
use super::stream_budget::StreamBudget;
use super::workers::{Beginning, Change, Order};
use crate::serve::shared::Shared;
use crate::serve::stop::Stop;

/// The most threads for work that waits for storage.
const BLOCKING_THREADS_MAX: usize = 16;

/// What all workers have in common.
#[derive(Clone)]
pub(super) struct Together {
    pub(super) shared: Arc<Shared>,
    pub(super) connections: Arc<Connections>,
    pub(super) budget: Arc<StreamBudget>,
}

/// A worker that runs.
struct Worker {
    served: Served,
    /// Those for the sockets of the address with this number, in their order.
    closers: HashMap<u64, Vec<Closer>>,
    accepting: JoinSet<()>,
}

/// Closes a socket.
struct Closer {
    close: oneshot::Sender<Closing>,
    /// Ends once the last of them was taken.
    is_closed: oneshot::Receiver<()>,
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
        let Together { shared, connections, budget } = together;
        let common = Common::new(&shared, connections, budget);
        drop(shared);
        // Each connection has a sender. The receiver ends when the last sender is dropped.
        let (alive, mut all_gone) = mpsc::channel::<()>(1);
        let served = Served {
            common: Arc::new(ArcSwap::from_pointee(common)),
            stopping: stopping.clone(),
            alive,
            address: 0,
            layers: Layers::default(),
        };
        let mut worker = Worker { served, closers: HashMap::new(), accepting: JoinSet::new() };
        for listener in listeners {
            worker.listen(listener, None)?;
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
    /// Accepts from a socket, once those have been taken that waited there `before`.
    fn listen(&mut self, socket: ListenSocket, before: Option<oneshot::Receiver<()>>) -> io::Result<()> {
        let ListenSocket { socket, address, layers } = socket;
        let listener = Listener::new(socket)?;
        let ((close, closed), (closing, is_closed)) = (oneshot::channel(), oneshot::channel::<()>());
        let served = Served { address, layers, ..self.served.clone() };
        self.accepting.spawn(async move {
            if let Some(before) = before {
                // It fails when the sender is dropped.
                let _ = before.await;
            }
            accept(listener, served, closed).await;
            drop(closing);
        });
        self.closers.entry(address).or_default().push(Closer { close, is_closed });
        Ok(())
    }

    /// Puts a change in force: connections have it at their next request.
    fn change(&mut self, change: Change) {
        let Change { shared, added, removed, done } = change;
        let before = self.served.common.load_full();
        self.served.common.store(Arc::new(before.renewed(&shared)));
        let mut closing: HashMap<u64, VecDeque<_>> = HashMap::new();
        for number in removed {
            for Closer { close, is_closed } in self.closers.remove(&number).unwrap_or_default() {
                // It fails if the socket is closed already.
                let _ = close.send(Closing { begun: Arc::clone(&before), done: done.clone() });
                closing.entry(number).or_default().push_back(is_closed);
            }
        }
        for listener in added {
            // The same socket, if its address stays.
            let before = closing.get_mut(&listener.address).and_then(VecDeque::pop_front);
            if let Err(error) = self.listen(listener, before) {
                tracing::error!(%error, "a worker can't accept connections at a new address; other workers may");
            }
        }
        // Those of addresses that were closed.
        while self.accepting.try_join_next().is_some() {}
        drop(done);
    }
}
