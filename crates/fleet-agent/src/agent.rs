//! An agent: the node of a volume without a server.
//!
//! ```text
//! waits for the turn ──it is ours──> follows the log, passes purges on ──file removed, and another one has the turn──> waits
//! ```

use std::io;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use eyewall::{Cache, Outbox};
use eyewall_fleet_redis::{Fleet, FleetThread, Settings};
use tokio::sync::oneshot;

use crate::bare::Bare;
use crate::passing::{Turns, pass_all};

/// How often an agent looks whether the volume has no agent any more.
const LOOK_EVERY: Duration = Duration::from_millis(500);

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
    pub fn start(cache: &Cache, settings: Settings) -> io::Result<Self> {
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

async fn take_turns(cache: &Cache, settings: &Settings, turns: &mut Turns, ready: &mut Ready) {
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

async fn be_the_node(mut outbox: Outbox, cache: &Cache, settings: &Settings, ready: &mut Ready) -> io::Result<()> {
    let (fleet, orders) = Fleet::new();
    let _thread = FleetThread::start(settings, orders, Arc::new(Bare::new(cache, &settings.name)))?;
    if let Some(ready) = ready.take() {
        // The caller waits for it.
        let _ = ready.send(Ok(()));
    }
    pass_all(&mut outbox, &fleet).await;
    Ok(())
}
