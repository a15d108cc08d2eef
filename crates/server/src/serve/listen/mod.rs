//! Sockets and connections: accepts connections, and ends them gracefully.
//!
//! ```text
//! handle, signals ──> stop ──┬──> worker 0: a thread, its runtime, its sockets, its connections
//!                            └──> worker 1: ...
//! ```
//! A connection is a stack. From the socket up, `write_timeout`, TLS (`handshake`) and `read_timeout`; they bound its times, which
//! `connection_state` measures; `fast_path` answers hits in memory; hyper handles the other requests; `limits` refuses requests beyond them.
//!
//! The thread that waits for the end also serves the administration, if there is one.
//!
//! Each worker listens on its own sockets for the same addresses (`SO_REUSEPORT`), and the kernel distributes the connections. A
//! connection stays with its worker, so that nothing on the path of a hit moves between cores.

mod accept;
mod common;
mod connection;
mod connection_state;
mod connections;
mod farewell;
mod fast_path;
mod handshake;
mod limits;
mod loss_check;
mod read_buffer;
mod read_timeout;
mod request_line;
mod signals;
mod sockets;
mod stream_budget;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_tls;
mod tracked_body;
mod worker;
mod write_timeout;

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::sync::watch;

use super::admin::Admin;
use super::handle::Handle;
use super::log::Lines;
use super::service::Service;
use super::stop::Stop;
use crate::config::settings::Limits;
use crate::serve::error::Error;
use common::Common;
use connections::Connections;
use signals::Signals;
pub(crate) use sockets::{Addresses, Sockets};
use stream_budget::StreamBudget;

/// The time of requests in flight after the server is asked to stop.
const GRACE: Duration = Duration::from_secs(10);

/// How often the server checks whether it can give memory back.
const GIVE_BACK_EVERY: Duration = Duration::from_secs(5);

/// How often the memory that waits for clients is counted.
const RECOUNT_EVERY: Duration = Duration::from_secs(1);

/// A server that accepts connections, and the thread that ends it.
pub(crate) struct Listening {
    addresses: Addresses,
    /// `None` once it has been joined.
    thread: Option<JoinHandle<Result<(), Error>>>,
}

impl Listening {
    /// Serves until `handle`, or a signal if signals are handled, asks for the end. Then requests in flight may end, until [`GRACE`] is over or the end is
    /// requested again. `service` makes the service of a worker, on its thread. When this returns, the server accepts connections.
    ///
    /// # Errors
    /// [`Error::Start`], if the system gives no thread, runtime or signal.
    pub(crate) fn start(
        sockets: Sockets,
        admin: Option<Admin>,
        limits: &Limits,
        log: Option<&Lines>,
        service: impl Fn() -> Service + Clone + Send + 'static,
        handle: &Handle,
        handles_signals: bool,
    ) -> Result<Self, Error> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::Start)?;
        let (stop, told) = watch::channel(Stop::NotYet);
        let mut running = Running {
            runtime,
            asked: Asked { signals: None, told: handle.told() },
            stop,
            connections: Arc::new(Connections::default()),
            budget: Arc::new(StreamBudget::new(limits.stream_bytes.0)),
            workers: Vec::new(),
        };
        if let Err(error) = running.prepare(admin, handles_signals) {
            return Err(running.abandon(error));
        }
        for listeners in sockets.of_workers {
            let (service, limits, log, told) = (service.clone(), limits.clone(), log.cloned(), told.clone());
            let (connections, budget) = (Arc::clone(&running.connections), Arc::clone(&running.budget));
            let common = move || Common {
                service: service(),
                limits: limits.clone(),
                log: log.clone(),
                connections: Arc::clone(&connections),
                budget: Arc::clone(&budget),
            };
            let work = move || worker::run(listeners, common, told);
            let thread = std::thread::Builder::new().name(format!("worker-{}", running.workers.len()));
            match thread.spawn(work) {
                Ok(worker) => running.workers.push(worker),
                Err(error) => return Err(running.abandon(error)),
            }
        }
        drop(told);
        // If there is no thread for it, it must not be lost with the closure.
        let running = Arc::new(Mutex::new(Some(running)));
        let taken = Arc::clone(&running);
        let work = move || take(&taken).map_or(Ok(()), Running::run);
        match std::thread::Builder::new().name("server".to_owned()).spawn(work) {
            Ok(thread) => Ok(Self { addresses: sockets.addresses, thread: Some(thread) }),
            Err(error) => match take(&running) {
                Some(running) => Err(running.abandon(error)),
                None => Err(Error::Start(error)),
            },
        }
    }

    pub(crate) fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    /// Waits for the end. When it returns, the log's queue has the lines of all requests.
    ///
    /// # Errors
    /// [`Error::Start`], if a worker got no runtime; the first time only.
    pub(crate) fn wait(&mut self) -> Result<(), Error> {
        match self.thread.take() {
            // The thread has logged its panic.
            Some(thread) => thread.join().unwrap_or(Ok(())),
            None => Ok(()),
        }
    }
}

/// The parts of a server that runs.
struct Running {
    runtime: Runtime,
    asked: Asked,
    stop: watch::Sender<Stop>,
    connections: Arc<Connections>,
    budget: Arc<StreamBudget>,
    workers: Vec<JoinHandle<io::Result<()>>>,
}

impl Running {
    /// Starts the administration, and takes the signals if they are to be handled.
    fn prepare(&mut self, admin: Option<Admin>, handles_signals: bool) -> io::Result<()> {
        let _inside = self.runtime.enter();
        admin.map_or(Ok(()), Admin::start)?;
        self.asked.signals = handles_signals.then(Signals::new).transpose()?;
        Ok(())
    }

    /// Serves until the end, and waits for all workers. The error is the first that a worker had.
    fn run(self) -> Result<(), Error> {
        let Self { runtime, mut asked, stop, connections, budget, workers } = self;
        runtime.block_on(async {
            tokio::select! {
                () = end(&mut asked, stop) => {}
                () = give_back(&connections, &budget) => {}
                () = recount(&budget) => {}
            }
        });
        joined(workers).map_err(Error::Start)
    }

    /// Ends what has begun. A task of a runtime may call this, so no runtime may be dropped here.
    fn abandon(self, error: io::Error) -> Error {
        let Self { runtime, asked, stop, workers, .. } = self;
        drop(stop);
        let _ = joined(workers);
        {
            let _inside = runtime.enter();
            drop(asked);
        }
        runtime.shutdown_background();
        Error::Start(error)
    }
}

/// Waits for all workers. A thread has logged its panic.
fn joined(workers: Vec<JoinHandle<io::Result<()>>>) -> io::Result<()> {
    workers.into_iter().map(|worker| worker.join().unwrap_or(Ok(()))).fold(Ok(()), Result::and)
}

fn take(running: &Mutex<Option<Running>>) -> Option<Running> {
    running.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// The sources of requests to end.
struct Asked {
    signals: Option<Signals>,
    told: watch::Receiver<Stop>,
}

impl Asked {
    /// Waits for a signal, or until the handle asks for at least this stage.
    async fn next(&mut self, least: Stop) {
        let signal = async {
            match &mut self.signals {
                Some(signals) => signals.next().await,
                None => std::future::pending().await,
            }
        };
        let told = async {
            if self.told.wait_for(|stop| *stop >= least).await.is_err() {
                // No handle is left.
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            () = signal => {}
            () = told => {}
        }
    }
}

/// Periodically gives memory back to the system, after many connections or streams have ended. It never ends.
async fn give_back(connections: &Connections, budget: &StreamBudget) {
    loop {
        tokio::time::sleep(GIVE_BACK_EVERY).await;
        if connections.has_shrunk() | budget.has_shed() {
            eyewall_region::heap::give_back();
        }
    }
}

/// Periodically counts the memory that waits for clients over HTTP/2. It never ends.
async fn recount(budget: &StreamBudget) {
    loop {
        tokio::time::sleep(RECOUNT_EVERY).await;
        budget.recount();
    }
}

/// Waits for a request to end, and then for the workers.
async fn end(asked: &mut Asked, stop: watch::Sender<Stop>) {
    tokio::select! {
        () = asked.next(Stop::InOrder) => {}
        // They end by themselves only if they can't start.
        () = stop.closed() => return,
    }
    stop.send_replace(Stop::InOrder);
    tokio::select! {
        () = stop.closed() => {}
        () = tokio::time::sleep(GRACE) => tracing::warn!("cut off the requests that were still in flight"),
        () = asked.next(Stop::AtOnce) => {}
    }
    stop.send_replace(Stop::AtOnce);
}
