//! The fleet: purges of this server reach others, and theirs reach this one, through a log on Redis.
//!
//! ```text
//! PURGE, administration ──> Fleet::append ──order──> node ──> Outbox ──> link ──> Redis
//!                              ^ written                |                 |  lines, states
//!                              └────────────────────────┤ <───────────────┘
//!                                                       └──> Follower ──> apply ──> the volume
//! ```
//! `eyewall-fleet` is the protocol. This folder gives it Redis (`redis_log`, `link`), the clock (`node`), and the volume (`apply`). All of it
//! runs on a thread of its own, so no hit waits for it. Without `[fleet]`, there is no such thread.

mod apply;
mod link;
mod node;
mod redis_log;
mod status;

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use eyewall::Cache;
use serde::Serialize;
use tokio::sync::{mpsc, oneshot};

use super::error::Error;
use super::reload::Reloader;
use crate::config::fleet::Fleet as Settings;
use node::Node;
use status::NodeStatus;
pub(crate) use status::{FleetStatus, Seen};

/// How long a purge waits for the log.
const WRITTEN_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a purge with `wait=applied` waits for the nodes.
const APPLIED_TIMEOUT: Duration = Duration::from_secs(10);
/// How often it looks.
const APPLIED_EVERY: Duration = Duration::from_millis(5);
/// How long the status waits for the list of nodes.
const NODES_TIMEOUT: Duration = Duration::from_secs(2);
/// How many orders may wait for the thread.
const ORDERS_MAX: usize = 4096;

/// What the server's other parts know of the fleet.
pub(crate) struct Fleet {
    orders: mpsc::Sender<Order>,
    seen: Arc<Mutex<Seen>>,
}

/// The other end, until the thread has it.
pub(crate) struct Orders {
    orders: mpsc::Receiver<Order>,
    seen: Arc<Mutex<Seen>>,
}

/// What the thread is asked for.
enum Order {
    /// To write a purge.
    Append { purge: Vec<u8>, written: oneshot::Sender<Written> },
    /// To list the nodes.
    Nodes(oneshot::Sender<Vec<NodeStatus>>),
}

/// The line that a purge has become.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Written {
    number: u64,
    reign: String,
}

/// What the log says of a purge.
#[derive(Debug, Serialize)]
pub(crate) struct Appended {
    /// The number of its line.
    line: u64,
    /// Whether all live nodes have applied it; missing if nobody wanted to know.
    #[serde(skip_serializing_if = "Option::is_none")]
    applied: Option<bool>,
}

/// Why a purge has not reached the fleet.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FleetError {
    #[error(
        "purged at this node, but the purge log of the fleet could not be written: {0}. This node writes it as soon as it can, unless it ends \
         before; purge again to be sure"
    )]
    NotWritten(String),
    #[error("purged at this node and written to the purge log, but these nodes have not applied it in time: {}", .0.join(", "))]
    NotApplied(Vec<String>),
}

impl Fleet {
    /// The fleet of the configuration, and what its thread needs.
    pub(crate) fn new() -> (Arc<Self>, Orders) {
        let (sender, receiver) = mpsc::channel(ORDERS_MAX);
        let seen = Arc::new(Mutex::new(Seen::default()));
        let orders = Orders { orders: receiver, seen: Arc::clone(&seen) };
        (Arc::new(Self { orders: sender, seen }), orders)
    }

    /// Writes a purge that this node has applied to the log, and waits until the log has it, or all live nodes have applied it.
    ///
    /// # Errors
    /// [`FleetError`].
    pub(crate) async fn append(&self, purge: Vec<u8>, is_awaited: bool) -> Result<Appended, FleetError> {
        let (sender, receiver) = oneshot::channel();
        if self.orders.try_send(Order::Append { purge, written: sender }).is_err() {
            return Err(FleetError::NotWritten("too many purges wait for it".to_owned()));
        }
        let written = match tokio::time::timeout(WRITTEN_TIMEOUT, receiver).await {
            Ok(Ok(written)) => written,
            Ok(Err(_)) => return Err(FleetError::NotWritten("too many purges wait for it".to_owned())),
            Err(_) => {
                let trouble = locked(&self.seen).trouble.clone();
                return Err(FleetError::NotWritten(trouble.unwrap_or_else(|| "it did not answer in time".to_owned())));
            }
        };
        if is_awaited {
            self.wait_for_nodes(&written).await?;
        }
        Ok(Appended { line: written.number, applied: is_awaited.then_some(true) })
    }

    async fn wait_for_nodes(&self, written: &Written) -> Result<(), FleetError> {
        let mut behind = vec!["all".to_owned()];
        let waiting = async {
            loop {
                // A node that isn't live any more revalidates everything.
                let nodes = self.nodes().await.unwrap_or_default();
                let missing = nodes.iter().filter(|node| node.is_live && !node.has_applied(written));
                let missing: Vec<String> = missing.map(NodeStatus::title).collect();
                if missing.is_empty() && !nodes.is_empty() {
                    return;
                }
                if !nodes.is_empty() {
                    behind = missing;
                }
                tokio::time::sleep(APPLIED_EVERY).await;
            }
        };
        let is_done = tokio::time::timeout(APPLIED_TIMEOUT, waiting).await.is_ok();
        if is_done { Ok(()) } else { Err(FleetError::NotApplied(behind)) }
    }

    /// The nodes as the log knows them; `None` if it can't be reached.
    async fn nodes(&self) -> Option<Vec<NodeStatus>> {
        let (sender, receiver) = oneshot::channel();
        self.orders.try_send(Order::Nodes(sender)).ok()?;
        tokio::time::timeout(NODES_TIMEOUT, receiver).await.ok()?.ok()
    }

    /// How this node is doing.
    pub(crate) fn seen(&self) -> Seen {
        locked(&self.seen).clone()
    }

    /// How the fleet is doing.
    pub(crate) async fn status(&self) -> FleetStatus {
        let nodes = self.nodes().await;
        FleetStatus { this: self.seen(), nodes }
    }
}

/// The thread. Dropping this ends it.
pub(crate) struct FleetThread {
    /// Nothing is sent on it: dropping it ends the thread.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl FleetThread {
    /// Starts to follow the log. It returns once the node may answer requests: when it has caught up, or after a while, when it has made
    /// everything stale.
    ///
    /// # Errors
    /// [`Error::Fleet`] for a file, [`Error::Start`] if the system gives no thread or runtime.
    pub(crate) fn start(
        settings: &Settings,
        orders: Orders,
        reloader: &Arc<Reloader>,
        cache: &Cache,
    ) -> Result<Self, Error> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::Start)?;
        let (ready, is_ready) = std::sync::mpsc::channel();
        let node = Node::new(settings, orders, reloader, cache, ready).map_err(Error::Fleet)?;
        let (stop, stopped) = oneshot::channel();
        let work = move || {
            runtime.block_on(node.run(stopped));
            // A purge may be under way on a thread that waits.
            runtime.shutdown_background();
        };
        let thread = std::thread::Builder::new().name("fleet".to_owned()).spawn(work).map_err(Error::Start)?;
        // An error means that the thread has panicked, which is logged.
        let _ = is_ready.recv();
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for FleetThread {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // The thread has logged a panic already.
            let _ = thread.join();
        }
    }
}

fn locked(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A word that nobody else has.
fn random_word() -> io::Result<String> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(format!("{:016x}", u64::from_le_bytes(bytes)))
}
