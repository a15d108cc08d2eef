//! An agent: the node of a volume without a server.
//!
//! ```text
//! waits for the turn ──it is ours──> follows the log, passes purges on ──file removed, and another one has the turn──> waits
//! ```

use std::io;
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use eyewall::{Cache, Outbox};
use eyewall_fleet_redis::{Fleet, FleetThread, Settings};
use eyewall_second_level::{self as second_level, SecondLevelThread};
use tokio::sync::oneshot;

use crate::bare::Bare;
use crate::epochs::Epochs;
use crate::passing::{Progress, Turns, pass_all};
use crate::sharing::{Door, Sharing};

/// How often an agent looks whether the volume has no agent any more.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The settings of an agent.
#[derive(Clone)]
pub struct AgentSettings {
    /// Those of the node.
    pub node: Settings,
    /// The store of objects that the volumes of the fleet share, if they do.
    pub second_level: Option<second_level::Settings>,
}

/// A thread that makes a volume a node of a fleet. Several processes may have an agent for one volume: one of them is the node, and another
/// one takes over if it ends. Dropping this ends the thread.
pub struct Agent {
    /// Nothing is sent on it: dropping it ends the thread.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Agent {
    /// Starts. It returns once the volume has no entry that a purge of the fleet covers: it has caught up, or another agent is the node, or,
    /// if the log can't be reached, all entries are stale.
    ///
    /// # Errors
    /// The system's, if it gives no thread, runtime or random number.
    pub fn start(cache: &Cache, settings: AgentSettings) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, mut stopped) = oneshot::channel();
        let (ready, is_ready) = mpsc::channel();
        let cache = cache.clone();
        let work = move || {
            let mut ready = Some(ready);
            let mut turns = Turns::new(cache.clone());
            runtime.block_on(async {
                tokio::select! {
                    _ = &mut stopped => {}
                    () = take_turns(&cache, &settings, &mut turns, &mut ready) => {}
                }
            });
        };
        let thread = std::thread::Builder::new().name("fleet-agent".to_owned()).spawn(work)?;
        // If the thread has panicked, that is logged.
        is_ready.recv().unwrap_or(Ok(()))?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // The thread has logged a panic already.
            let _ = thread.join();
        }
    }
}

type Ready = Option<mpsc::Sender<io::Result<()>>>;

async fn take_turns(cache: &Cache, settings: &AgentSettings, turns: &mut Turns, ready: &mut Ready) {
    loop {
        if let Some(outbox) = turns.take()
            && let Err(error) = be_the_node(outbox, cache, settings, ready).await
        {
            tracing::warn!(%error, "the volume can't follow the fleet");
            if let Some(ready) = ready.take() {
                let _ = ready.send(Err(error));
                return;
            }
        }
        if let Some(ready) = ready.take() {
            let _ = ready.send(Ok(()));
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

async fn be_the_node(mut outbox: Outbox, cache: &Cache, settings: &AgentSettings, ready: &mut Ready) -> io::Result<()> {
    let (fleet, orders) = Fleet::new(settings.node.durable);
    let volume = Bare::new(cache, &settings.node.name);
    let (epochs, progress) = (volume.epochs(), Progress::of(cache));
    progress.guard(&fleet);
    let _thread = FleetThread::start(&settings.node, orders, Arc::new(volume))?;
    let shared = match &settings.second_level {
        // Purges matter more than objects that are shared.
        Some(second_level) => share(second_level, cache, &fleet, epochs).unwrap_or_else(|error| {
            tracing::warn!(%error, "the programs of this volume share no objects");
            None
        }),
        None => None,
    };
    if let Some(ready) = ready.take() {
        // The caller waits for it.
        let _ = ready.send(Ok(()));
    }
    let passing = pass_all(&mut outbox, &fleet, &progress);
    match shared {
        Some((_thread, door, sharing)) => {
            tokio::select! {
                () = passing => {}
                () = door.serve(Arc::new(sharing)) => {}
            }
        }
        None => passing.await,
    }
    Ok(())
}

/// The second level, and the socket of its clients. `None` for a volume without a path.
fn share(
    settings: &second_level::Settings,
    cache: &Cache,
    fleet: &Arc<Fleet>,
    epochs: Arc<Mutex<Epochs>>,
) -> io::Result<Option<(SecondLevelThread, Door, Sharing)>> {
    let Some(path) = cache.path() else { return Ok(None) };
    let (second_level, thread) = SecondLevelThread::start(settings).map_err(io::Error::other)?;
    let sharing = Sharing { cache: cache.clone(), fleet: Arc::clone(fleet), second_level, epochs };
    Ok(Some((thread, Door::open(path)?, sharing)))
}
