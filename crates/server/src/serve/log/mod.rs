//! The access log: a line for each request, NCSA combined or JSON.
//!
//! ```text
//! connection ──> entry    from the head of a request until the last byte of its response has left
//!                  └────> queue, bounded ──> writer: a thread, which batches ──> the file, or standard output
//! escape, date, cache_status: how a line is written     origin_time: how long the origin took
//! ```
//!
//! No worker ever waits for the file. Where the writer doesn't keep up, lines are dropped and counted. A line waits for others
//! a second at most, and at an orderly end all are written.
//!
//! # What is absent
//! Rotation: the file is opened anew at SIGUSR1 and SIGHUP, as logrotate and its kin want it. Bytes that go through an
//! upgraded connection.

mod cache_status;
mod date;
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

use crate::Error;
use crate::config::settings::{AccessLog, LogFormat};
pub(crate) use entry::{Entry, LoggedRequest};
pub(crate) use origin_time::{counted, measured};
use queue::Queue;
use writer::{Target, Writer};

/// An access log, until it is dropped: then what waits is written.
pub(crate) struct Log {
    lines: Lines,
    thread: Option<JoinHandle<()>>,
}

/// What workers have of an access log.
#[derive(Clone)]
pub(crate) struct Lines {
    queue: Arc<Queue>,
    format: LogFormat,
}

impl Log {
    /// Opens the file, and starts the thread that writes it. From now on SIGUSR1 and SIGHUP have the file opened anew.
    ///
    /// # Errors
    /// [`Error::AccessLog`] where the file can't be opened, [`Error::Start`] where the system gives no thread or signal.
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
    /// The line of a request whose head was there then.
    pub(crate) fn entry(&self, request: &LoggedRequest<'_>, client: IpAddr, started: Instant) -> Entry {
        let mut entry = Entry::of_request(Arc::clone(&self.queue), self.format, request, client);
        entry.begun(started);
        entry
    }

    /// Writes the line of something that was no request, and was refused with this status.
    pub(crate) fn refused(&self, client: IpAddr, status: StatusCode) {
        drop(Entry::of_refusal(Arc::clone(&self.queue), self.format, client, status));
    }
}
