//! The destinations of lines that are open. Logs with the same destination share one, also over a reload.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;

use tokio::signal::unix::{SignalKind, signal};

use super::writer::{Target, Writer};
use super::{Queue, new_queue};
use crate::config::access_log::LogTarget;
use crate::serve::error::Error;

/// All sinks of a server.
#[derive(Default)]
pub(crate) struct Sinks {
    open: Mutex<Vec<Open>>,
    /// How many lines the sinks of each destination have lost that are closed by now.
    lost: Mutex<BTreeMap<String, u64>>,
}

/// A destination to which lines go.
pub(super) struct Sink {
    pub(super) queue: Arc<Queue>,
}

/// Writes the lines that wait when it is dropped.
pub(crate) struct LastLines(pub(crate) Arc<Sinks>);

struct Open {
    target: LogTarget,
    sink: Weak<Sink>,
    queue: Arc<Queue>,
    thread: JoinHandle<()>,
}

impl Sinks {
    /// The sink of a destination. If it isn't open yet, opens it, and starts the thread that writes it. From now on SIGUSR1 and SIGHUP reopen
    /// its file.
    ///
    /// # Errors
    /// [`Error::AccessLog`], if it can't be opened; [`Error::Start`], if the system gives no thread or signal.
    pub(super) fn open(&self, wanted: &LogTarget) -> Result<Arc<Sink>, Error> {
        let mut open = lock(&self.open);
        let mut same = open.iter().filter(|open| open.target == *wanted);
        if let Some(sink) = same.find_map(|open| open.sink.upgrade()) {
            return Ok(sink);
        }
        for closed in open.extract_if(.., |open| open.thread.is_finished()) {
            *lock(&self.lost).entry(closed.target.to_string()).or_default() += closed.queue.lost();
        }
        let target =
            Target::open(wanted).map_err(|source| Error::AccessLog { path: wanted.to_string().into(), source })?;
        let queue = Arc::new(new_queue());
        let thread = start(Arc::clone(&queue), target)?;
        let sink = Arc::new(Sink { queue: Arc::clone(&queue) });
        open.push(Open { target: wanted.clone(), sink: Arc::downgrade(&sink), queue, thread });
        Ok(sink)
    }

    /// How many lines each destination has lost.
    pub(crate) fn lost(&self) -> BTreeMap<String, u64> {
        // The lock of `open` comes first, as in [`Sinks::open`].
        let open = lock(&self.open);
        let mut lost = lock(&self.lost).clone();
        for open in &*open {
            *lost.entry(open.target.to_string()).or_default() += open.queue.lost();
        }
        lost
    }

    fn end(&self) {
        for Open { queue, thread, .. } in lock(&self.open).drain(..) {
            queue.end();
            // The thread has logged a panic already.
            let _ = thread.join();
        }
    }
}

impl Drop for Sink {
    /// No configuration has it any more.
    fn drop(&mut self) {
        self.queue.end();
    }
}

impl Drop for LastLines {
    fn drop(&mut self) {
        self.0.end();
    }
}

fn start(queue: Arc<Queue>, target: Target) -> Result<JoinHandle<()>, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::Start)?;
    let reopen = {
        let _inside = runtime.enter();
        let [usr1, hangup] = [SignalKind::user_defined1(), SignalKind::hangup()].map(signal);
        [usr1.map_err(Error::Start)?, hangup.map_err(Error::Start)?]
    };
    let writer = Writer::new(queue, target);
    let work = move || runtime.block_on(writer.run(reopen));
    std::thread::Builder::new().name("access-log".to_owned()).spawn(work).map_err(Error::Start)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
