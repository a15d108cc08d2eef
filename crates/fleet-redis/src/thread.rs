//! The fleet's thread, from its start to its end.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

use tokio::sync::oneshot;

use crate::handle::Orders;
use crate::node::Node;
use crate::{Settings, Volume};

/// The thread. Dropping this ends it.
pub struct FleetThread {
    /// Nothing is sent on it: dropping it ends the thread.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl FleetThread {
    /// Starts to follow the log. It returns once the node may answer requests: when it has caught up, or after a while, when it has made
    /// everything stale.
    ///
    /// # Errors
    /// The system's, if it gives no thread, runtime or random number.
    pub fn start(settings: &Settings, orders: Orders, volume: Arc<dyn Volume>) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (ready, is_ready) = std::sync::mpsc::channel();
        let node = Node::new(settings, orders, volume, ready)?;
        let (stop, stopped) = oneshot::channel();
        let work = move || {
            runtime.block_on(node.run(stopped));
            // A purge may be under way on a thread that waits.
            runtime.shutdown_background();
        };
        let thread = std::thread::Builder::new().name("fleet".to_owned()).spawn(work)?;
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
