//! Looking after the volume while the server runs.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::store::Store;
use crate::Error;

/// How often the header is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The thread that does it. Dropping this ends it.
pub(crate) struct Upkeep {
    /// Nothing is sent: its end is the thread's.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Upkeep {
    /// # Errors
    /// [`Error::Start`], where there can't be another thread.
    pub(crate) fn start(store: Arc<Store>) -> Result<Self, Error> {
        let (stop, stopped) = channel();
        let work = move || run(&store, &stopped);
        let thread = thread::Builder::new().name("upkeep".to_owned()).spawn(work).map_err(Error::Start)?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Upkeep {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // A panic was told already by its thread.
            let _ = thread.join();
        }
    }
}

fn run(store: &Store, stopped: &Receiver<()>) {
    // A volume that has failed isn't better later.
    while !store.has_failed() {
        store.check_header();
        if stopped.recv_timeout(LOOK_EVERY) != Err(RecvTimeoutError::Timeout) {
            return;
        }
    }
}
