//! What the caller's other threads know of the fleet, and ask of it.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use eyewall_fleet::{AsOf, Covers, Notes, Subject};
use eyewall_region::clock;
use serde::Serialize;
use tokio::sync::{mpsc, oneshot};

use crate::status::{FleetStatus, NodeStatus, Seen};
use crate::unread::{Pending, Unread};

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

/// What other threads know of the fleet.
pub struct Fleet {
    orders: mpsc::Sender<Order>,
    seen: Arc<Mutex<Seen>>,
    places: Arc<Mutex<Places>>,
    notes: Arc<Mutex<Notes>>,
    unread: Arc<Unread>,
    /// Whether it takes foreign responses now.
    takes: OnceLock<Box<dyn Fn() -> bool + Send + Sync>>,
}

/// How many tags and addresses of lines are noted.
const NOTES_MAX: usize = 100_000;

/// How far this node is.
#[derive(Debug, Default)]
pub(crate) struct Places {
    /// All lines up to this one are applied.
    pub(crate) applied: Option<AsOf>,
    /// When it becomes blind unless it is confirmed before. `None`: it isn't confirmed.
    pub(crate) blind_from_ms: Option<u64>,
}

/// The other end, until the thread has it.
pub struct Orders {
    pub(crate) receiver: mpsc::Receiver<Order>,
    pub(crate) seen: Arc<Mutex<Seen>>,
    pub(crate) places: Arc<Mutex<Places>>,
    pub(crate) notes: Arc<Mutex<Notes>>,
    pub(crate) unread: Arc<Unread>,
}

/// What the thread is asked for.
pub(crate) enum Order {
    /// To write a purge.
    Append { purge: Vec<u8>, waits: Waiting },
    /// To note earlier lines again.
    NoteEarlier,
    /// To list the nodes.
    Nodes(oneshot::Sender<Vec<NodeStatus>>),
}

/// The one that waits until a purge is in the log, and read.
pub(crate) enum Waiting {
    /// A client.
    Client(oneshot::Sender<Written>),
    /// Nobody.
    Nobody(Pending),
}

/// The line that a purge has become.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) number: u64,
    pub(crate) reign: String,
}

/// What the log says of a purge.
#[derive(Debug, Serialize)]
pub struct Appended {
    /// The number of its line.
    line: u64,
    /// Whether all live nodes have applied it; missing if nobody wanted to know.
    #[serde(skip_serializing_if = "Option::is_none")]
    applied: Option<bool>,
}

/// Why a purge has not reached the fleet.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// The log doesn't have it, for this reason.
    #[error(
        "purged at this node, but the purge log of the fleet could not be written: {0}. This node writes it as soon as it can, unless it ends \
         before; purge again to be sure"
    )]
    NotWritten(String),
    /// These nodes have not applied it.
    #[error("purged at this node and written to the purge log, but these nodes have not applied it in time: {}", .0.join(", "))]
    NotApplied(Vec<String>),
}

impl Fleet {
    /// A fleet, and what its thread needs. `is_durable`: no acknowledged line of its log is ever lost.
    pub fn new(is_durable: bool) -> (Arc<Self>, Orders) {
        let (sender, receiver) = mpsc::channel(ORDERS_MAX);
        let orders = Orders {
            receiver,
            seen: Arc::default(),
            places: Arc::default(),
            notes: Arc::new(Mutex::new(Notes::new(NOTES_MAX, is_durable))),
            unread: Arc::default(),
        };
        let fleet = Self {
            orders: sender,
            seen: Arc::clone(&orders.seen),
            places: Arc::clone(&orders.places),
            notes: Arc::clone(&orders.notes),
            unread: Arc::clone(&orders.unread),
            takes: OnceLock::new(),
        };
        (Arc::new(fleet), orders)
    }

    /// Writes a purge that this node has applied to the log, and waits until the log has it, or all live nodes have applied it.
    ///
    /// # Errors
    /// [`FleetError`].
    pub async fn append(&self, purge: Vec<u8>, is_awaited: bool) -> Result<Appended, FleetError> {
        let (sender, receiver) = oneshot::channel();
        if self.orders.try_send(Order::Append { purge, waits: Waiting::Client(sender) }).is_err() {
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

    /// Writes a purge that the volume has noted to the log. True: the log has it, however long that took. False: too many purges wait for the
    /// log, so the caller has to try again later.
    pub async fn write(&self, purge: Vec<u8>) -> bool {
        let (sender, receiver) = oneshot::channel();
        self.orders.try_send(Order::Append { purge, waits: Waiting::Client(sender) }).is_ok() && receiver.await.is_ok()
    }

    /// Writes a purge that this node is about to apply to the log, without a wait. Until the node has read its line, it takes no foreign
    /// response that the purge covers. If too many wait for the log, one soft purge of everything is written in their place.
    pub fn write_later<'a>(&self, purge: Vec<u8>, covers: impl IntoIterator<Item = Covers<'a>>) {
        let waits = Waiting::Nobody(self.unread.begin(covers));
        if let Err(error) = self.orders.try_send(Order::Append { purge, waits }) {
            self.unread.is_missing();
            drop(error);
        }
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
    pub fn this(&self) -> Seen {
        locked(&self.seen).clone()
    }

    /// The last line that this node has applied, with all before it. `None`: it doesn't follow the log now.
    pub fn as_of(&self) -> Option<AsOf> {
        let places = locked(&self.places);
        // The node's thread may be late to say that it is blind.
        places.blind_from_ms.filter(|blind_from_ms| clock::since_boot_ms() < *blind_from_ms)?;
        places.applied.clone()
    }

    /// From now on, foreign responses are taken only while this holds. It is asked before the notes.
    pub fn takes_only_if(&self, condition: impl Fn() -> bool + Send + Sync + 'static) {
        // The fleet has one volume.
        let _ = self.takes.set(Box::new(condition));
    }

    /// Whether a response that others have made may be taken ([`Notes::allows`]). Ask after the volume's purges were marked.
    pub fn allows(&self, as_of: &AsOf, subject: Subject<'_>) -> bool {
        let takes = self.takes.get().is_none_or(|takes| takes());
        // A purge is among the notes before it leaves those that wait.
        takes && self.as_of().is_some() && !self.unread.covers(subject) && locked(&self.notes).allows(as_of, subject)
    }

    /// From now on, lines cover something else. Earlier ones are read again.
    pub fn forget_notes(&self) {
        locked(&self.notes).forget();
        // If it finds no place, foreign responses of before are refused.
        let _ = self.orders.try_send(Order::NoteEarlier);
    }

    /// How the fleet is doing.
    pub async fn status(&self) -> FleetStatus {
        let nodes = self.nodes().await;
        FleetStatus { this: self.this(), nodes }
    }
}

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A word that nobody else has.
pub(crate) fn random_word() -> io::Result<String> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(format!("{:016x}", u64::from_le_bytes(bytes)))
}
