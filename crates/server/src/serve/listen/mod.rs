//! Sockets and connections: accepts connections, and ends them gracefully.
//!
//! ```text
//! handle, signals ──> stop ──┬──> worker 0: a thread, its runtime, its sockets, its connections
//!                            └──> worker 1: ...
//! ```
//! A connection is a stack. From the socket up, `write_timeout` and `read_timeout` bound its times, which `connection_state`
//! measures; `fast_path` answers hits in memory; hyper handles the other requests; `limits` refuses requests beyond them.
//!
//! The thread that waits for the end also serves the administration, if there is one.
//!
//! Each worker listens on its own sockets for the same addresses (`SO_REUSEPORT`), and the kernel distributes the connections. A
//! connection stays with its worker, so that nothing on the path of a hit moves between cores.

mod abandoned;
mod accept;
mod common;
mod connection;
mod connection_state;
mod connections;
mod fast_path;
mod head_bytes;
mod limits;
mod read_buffer;
mod read_timeout;
mod request_line;
mod signals;
mod stream_budget;
#[cfg(test)]
mod tests;
mod tracked_body;
mod worker;
mod write_timeout;

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
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
use stream_budget::StreamBudget;

/// How many connections may wait to be accepted, at each socket.
const BACKLOG: i32 = 4096;
/// The time of requests in flight after the server is asked to stop.
const GRACE: Duration = Duration::from_secs(10);

/// The server's addresses, bound for all workers.
pub(crate) struct Sockets {
    addresses: Vec<SocketAddr>,
    /// The sockets of each worker.
    of_workers: Vec<Vec<std::net::TcpListener>>,
}

/// How often the server checks whether it can give memory back.
const GIVE_BACK_EVERY: Duration = Duration::from_secs(5);

/// How often the memory that waits for clients is counted.
const RECOUNT_EVERY: Duration = Duration::from_secs(1);

impl Sockets {
    /// Binds each address once for each of `workers`. Port 0 takes a free port.
    ///
    /// # Errors
    /// [`Error::Listen`], if an address is not available, for instance because another program listens there.
    pub(crate) fn bind(addresses: &[SocketAddr], workers: usize) -> Result<Self, Error> {
        let mut sockets = Self { addresses: Vec::new(), of_workers: (0..workers).map(|_| Vec::new()).collect() };
        for &address in addresses {
            sockets.bind_one(address).map_err(|source| Error::Listen { address, source })?;
        }
        Ok(sockets)
    }

    fn bind_one(&mut self, address: SocketAddr) -> io::Result<()> {
        // `SO_REUSEPORT` would also let another server of the same user share the port, and get half of the connections.
        listen_at(address, |_| Ok(()))?;
        let mut bound = address;
        for sockets in &mut self.of_workers {
            let listener: std::net::TcpListener = listen_at(bound, |socket| socket.set_reuse_port(true))?.into();
            bound = listener.local_addr()?;
            sockets.push(listener);
        }
        self.addresses.push(bound);
        Ok(())
    }
}

/// Listens at this address only: `[::]` takes IPv6 alone, so that `0.0.0.0` can be given beside it.
fn listen_at(address: SocketAddr, set_up: impl FnOnce(&Socket) -> io::Result<()>) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_reuse_address(true)?;
    set_up(&socket)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket)
}

/// A server that accepts connections, and the thread that ends it.
pub(crate) struct Listening {
    addresses: Vec<SocketAddr>,
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

    pub(crate) fn addresses(&self) -> &[SocketAddr] {
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
