//! The access log: a line for each request, in NCSA combined format or JSON.
//!
//! ```text
//! connection ──> entry    from the head of a request until the last byte of its response has left
//!                  └────> queue, bounded ──> writer: a thread, which batches ──> the file, or standard output
//! escape: the form of a line              origin_time: the time of the origin
//! ```
//!
//! No worker ever waits for the file. If the writer doesn't keep up, lines are dropped and counted. A line waits for others
//! at most a second, and a graceful end writes all lines.
//!
//! # What is absent
//! Rotation: SIGUSR1 and SIGHUP reopen the file, as logrotate and similar tools need it. The bytes of an upgraded connection.

mod entry;
mod escape;
mod origin_time;
mod queue;
mod writer;

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

use http::StatusCode;
use tokio::signal::unix::{SignalKind, signal};

use crate::config::settings::{AccessLog, LogFormat};
use crate::serve::error::Error;
pub(crate) use entry::{Entry, LoggedRequest};
pub(crate) use origin_time::{counted, measured};
use queue::Queue;
use writer::{Target, Writer};

/// An access log. Dropping it writes the lines that wait.
pub(crate) struct Log {
    lines: Lines,
    thread: Option<JoinHandle<()>>,
}

/// The workers' part of an access log.
#[derive(Clone)]
pub(crate) struct Lines {
    queue: Arc<Queue>,
    format: LogFormat,
}

impl Log {
    /// Opens the file, and starts the thread that writes it. From now on SIGUSR1 and SIGHUP reopen the file.
    ///
    /// # Errors
    /// [`Error::AccessLog`], if the file can't be opened; [`Error::Start`], if the system gives no thread or signal.
    pub(crate) fn start(settings: &AccessLog) -> Result<Self, Error> {
        let path: &Path = &settings.path;
        let target = Target::open(path).map_err(|source| Error::AccessLog { path: path.to_owned(), source })?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::Start)?;
        let reopen = {
            let _inside = runtime.enter();
            let signals = [SignalKind::user_defined1(), SignalKind::hangup()].map(signal);
            let [usr1, hangup] = signals;
            [usr1.map_err(Error::Start)?, hangup.map_err(Error::Start)?]
        };
        let queue = Arc::new(Queue::default());
        let writer = Writer::new(Arc::clone(&queue), target);
        let work = move || runtime.block_on(writer.run(reopen));
        let thread = std::thread::Builder::new().name("access-log".to_owned()).spawn(work).map_err(Error::Start)?;
        Ok(Self { lines: Lines { queue, format: settings.format }, thread: Some(thread) })
    }

    pub(crate) fn lines(&self) -> Lines {
        self.lines.clone()
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.lines.queue.end();
        if let Some(thread) = self.thread.take() {
            // The thread has logged a panic already.
            let _ = thread.join();
        }
    }
}

impl Lines {
    /// The line of a request whose head was whole at that time.
    pub(crate) fn entry(&self, request: &LoggedRequest<'_>, client: IpAddr, started: Instant) -> Entry {
        let mut entry = Entry::of_request(Arc::clone(&self.queue), self.format, request, client);
        entry.begun(started);
        entry
    }

    /// Writes the line of bytes that were not a request, and were refused with this status.
    pub(crate) fn refused(&self, client: IpAddr, status: StatusCode) {
        drop(Entry::of_refusal(Arc::clone(&self.queue), self.format, client, status));
    }
}
