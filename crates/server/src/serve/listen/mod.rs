//! Sockets and connections: accepts connections, and ends them gracefully.
//!
//! ```text
//! handle, signals ──> stop ──┬──> worker 0: a thread, its runtime, its sockets, its connections
//!                            └──> worker 1: ...
//! ```
//! A socket is bound here, or passed by the service manager (`activation`). A connection may begin with a header that names its
//! client (`proxy_protocol`). Then it is a stack. From the socket up, `write_timeout`, TLS (`handshake`) and `read_timeout`; they bound its
//! times, which `connection_state` measures; `fast_path` answers hits in memory; hyper handles the other requests; `limits` refuses
//! requests beyond them.
//!
//! The thread that waits for the end also serves the administration and the metrics, if there are any.
//!
//! Each worker listens on its own sockets for the same addresses (`SO_REUSEPORT`), and the kernel distributes the connections. A
//! connection stays with its worker, so that nothing on the path of a hit moves between cores.

mod abandoned;
mod accept;
mod activation;
mod admit;
mod common;
mod connection;
mod connection_state;
mod connections;
mod current;
mod farewell;
mod fast_path;
mod file_queue;
mod handshake;
mod head_bytes;
mod held;
mod limits;
mod listener;
mod loss_check;
mod proxy_protocol;
mod read_buffer;
mod read_timeout;
mod request_line;
mod signals;
mod sockets;
mod stream_budget;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_reload;
#[cfg(test)]
mod tests_tls;
mod tracked_body;
mod watchdog;
mod witness;
mod worker;
mod workers;
mod write_timeout;

use std::io;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::sync::watch;

use super::admin::Admin;
use super::handle::Handle;
use super::metrics::Door;
use super::stop::Stop;
use super::upgrade::Upgrader;
use crate::serve::error::Error;
pub(crate) use activation::Activated;
use connections::Connections;
pub(crate) use file_queue::FileQueue;
pub(crate) use held::Held;
pub(crate) use listener::listen_at;
use signals::Signals;
pub(crate) use sockets::{Binding, ListenPlace, OpenSocket, Sockets, https_port};
use stream_budget::StreamBudget;
use worker::Together;
pub(crate) use workers::{Beginning, Workers};

/// The time of connections to end by themselves before they are cut off.
const LAST_CALL: Duration = Duration::from_secs(2);

/// How often the server checks whether it can give memory back.
const GIVE_BACK_EVERY: Duration = Duration::from_secs(5);

/// How often the memory that waits for clients is counted.
const RECOUNT_EVERY: Duration = Duration::from_secs(1);

/// A server that accepts connections, and the thread that ends it.
pub(crate) struct Listening {
    /// `None` once it has been joined.
    thread: Option<JoinHandle<Result<(), Error>>>,
}

impl Listening {
    /// Serves until `handle`, or a signal if signals are handled, asks for the end. Then requests in flight may end, until `drain_timeout`
    /// is over or the end is requested again. When this returns, the server accepts connections. The receivers of `stop_peers` are told of
    /// the end, too, and waited for.
    ///
    /// # Errors
    /// [`Error::Start`], if the system gives no thread, runtime or signal.
    pub(crate) fn start(
        beginnings: Vec<Beginning>,
        upgrader: &Arc<Upgrader>,
        (admin, metrics): (Option<Admin>, Option<Door>),
        (handle, handles_signals, stop_peers): (&Handle, bool, watch::Sender<Stop>),
    ) -> Result<Self, Error> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::Start)?;
        let (stop, told) = watch::channel(Stop::NotYet);
        let mut running = Running {
            runtime,
            asked: Asked { signals: None, told: handle.told() },
            stop,
            stop_peers,
            upgrader: Arc::clone(upgrader),
            connections: Arc::new(Connections::default()),
            threads: Vec::new(),
        };
        let connections = Arc::clone(&running.connections);
        upgrader.reloader.shared().metrics.count_connections_by(move || connections.figures());
        if let Err(error) = running.prepare(admin, metrics, handles_signals) {
            return Err(running.abandon(error));
        }
        for beginning in beginnings {
            let together = Together {
                shared: upgrader.reloader.shared(),
                connections: Arc::clone(&running.connections),
                budget: Arc::clone(&upgrader.reloader.workers().budget),
            };
            let told = told.clone();
            let work = move || worker::run(beginning, together, told);
            let thread = std::thread::Builder::new().name(format!("worker-{}", running.threads.len()));
            match thread.spawn(work) {
                Ok(worker) => running.threads.push(worker),
                Err(error) => return Err(running.abandon(error)),
            }
        }
        drop(told);
        // If there is no thread for it, it must not be lost with the closure.
        let running = Arc::new(Mutex::new(Some(running)));
        let taken = Arc::clone(&running);
        let work = move || take(&taken).map_or(Ok(()), Running::run);
        match std::thread::Builder::new().name("server".to_owned()).spawn(work) {
            Ok(thread) => Ok(Self { thread: Some(thread) }),
            Err(error) => match take(&running) {
                Some(running) => Err(running.abandon(error)),
                None => Err(Error::Start(error)),
            },
        }
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
    /// For answers to other nodes.
    stop_peers: watch::Sender<Stop>,
    upgrader: Arc<Upgrader>,
    connections: Arc<Connections>,
    threads: Vec<JoinHandle<io::Result<()>>>,
}

impl Running {
    /// Starts the administration and the metrics, and takes the signals if they are to be handled.
    fn prepare(&mut self, admin: Option<Admin>, metrics: Option<Door>, handles_signals: bool) -> io::Result<()> {
        let _inside = self.runtime.enter();
        metrics.map_or(Ok(()), |metrics| metrics.start(self.upgrader.ending.subscribe()))?;
        admin.map_or(Ok(()), |admin| admin.start(self.upgrader.ending.subscribe()))?;
        self.asked.signals = handles_signals.then(|| Signals::new(&self.upgrader)).transpose()?;
        Ok(())
    }

    /// Serves until the end, and waits for all workers. The error is the first that a worker had.
    fn run(self) -> Result<(), Error> {
        let Self { runtime, mut asked, stop, stop_peers, upgrader, connections, threads } = self;
        let ending = &upgrader.ending;
        let workers = upgrader.reloader.workers();
        runtime.block_on(async {
            tokio::select! {
                () = end(&mut asked, (stop, stop_peers), &upgrader) => {}
                () = give_back(&connections, &workers.budget) => {}
                () = recount(&workers.budget) => {}
                () = watchdog::feed(&upgrader) => {}
            }
            ending.send_replace(true);
            // For instance, the response that says that another process has taken over.
            let _ = tokio::time::timeout(LAST_CALL, ending.closed()).await;
        });
        // An upgrade that is under way may wait for its process.
        runtime.shutdown_background();
        joined(threads).map_err(Error::Start)
    }

    /// Ends what has begun. A task of a runtime may call this, so no runtime may be dropped here.
    fn abandon(self, error: io::Error) -> Error {
        let Self { runtime, asked, stop, threads, .. } = self;
        drop(stop);
        let _ = joined(threads);
        {
            let _inside = runtime.enter();
            drop(asked);
        }
        runtime.shutdown_background();
        Error::Start(error)
    }
}

/// Waits for all workers. A thread has logged its panic.
fn joined(threads: Vec<JoinHandle<io::Result<()>>>) -> io::Result<()> {
    threads.into_iter().map(|worker| worker.join().unwrap_or(Ok(()))).fold(Ok(()), Result::and)
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
    /// Waits for a signal, which asks to end gracefully, or until the handle asks for at least this stage. Returns the stage.
    async fn next(&mut self, least: Stop) -> Stop {
        let signal = async {
            match &mut self.signals {
                Some(signals) => signals.next().await,
                None => std::future::pending().await,
            }
        };
        let told = async {
            match self.told.wait_for(|stop| *stop >= least).await {
                Ok(stop) => *stop,
                // No handle is left.
                Err(_) => std::future::pending().await,
            }
        };
        tokio::select! {
            () = signal => Stop::InOrder.max(least),
            stop = told => stop,
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

/// Waits for a request to end, and then for the workers and the answers to other nodes.
async fn end(asked: &mut Asked, (stop, stop_peers): (watch::Sender<Stop>, watch::Sender<Stop>), upgrader: &Upgrader) {
    let mut stage = tokio::select! {
        stage = asked.next(Stop::HandedOver) => stage,
        // They end by themselves only if they can't start.
        () = stop.closed() => return,
    };
    upgrader.close();
    let tell = |stage| [&stop, &stop_peers].map(|stop| stop.send_replace(stage));
    let closed = || async { _ = tokio::join!(stop.closed(), stop_peers.closed()) };
    let timeout = upgrader.reloader.shared().config.server.drain_timeout.0;
    let mut over = pin!(tokio::time::sleep(timeout));
    while stage < Stop::AtOnce {
        if stage == Stop::HandedOver {
            // The administration belongs to the other process.
            upgrader.ending.send_replace(true);
        } else if !upgrader.has_upgraded() {
            upgrader.reloader.supervisor().stopping();
        }
        tell(stage);
        tokio::select! {
            () = closed() => return,
            () = over.as_mut() => {
                if stage == Stop::HandedOver {
                    // Connections without a request close now.
                    tell(Stop::InOrder);
                    if tokio::time::timeout(LAST_CALL, closed()).await.is_ok() {
                        return;
                    }
                }
                tracing::warn!("cut off the requests that were still in flight, and the tunnels that were still open");
                break;
            }
            next = asked.next(if stage == Stop::HandedOver { Stop::InOrder } else { Stop::AtOnce }) => stage = next,
        }
    }
    tell(Stop::AtOnce);
}
