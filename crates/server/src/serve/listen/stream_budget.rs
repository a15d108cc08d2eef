//! The memory of responses over HTTP/2, and its limit.
//!
//! Over HTTP/1 a client that reads nothing has one response in flight. Over HTTP/2 it may have a hundred, and never open their
//! windows.
//!
//! ```text
//! a response begins ──> counted, and again each second ──> its last byte has left: no longer counted
//!                          │ the budget is exceeded
//!                          v
//!       the streams whose clients took nothing for longest are reset
//! ```
//! Ending its task resets a stream. If hyper has taken the whole body, there is no such task; and if the socket takes nothing, a
//! reset can't be sent. In both cases the connection is closed.

use std::collections::HashMap;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::connection_state::{ConnectionState, Order};
use crate::serve::body::Backlog;

/// The memory of a response whose bytes are in the volume: its task, and hyper's state. 2.7 to 3.3 KiB were measured.
const STREAM_BYTES: u64 = 4 << 10;

tokio::task_local! {
    /// The task of a stream, which the budget may end. It is empty before the task runs and after it has ended.
    static TASK: Task;
}

type Task = Arc<Mutex<Option<AbortHandle>>>;

/// The budget for the responses of all workers.
pub(super) struct StreamBudget {
    bytes_max: AtomicU64,
    began: Instant,
    held: AtomicU64,
    has_shed: AtomicBool,
    streams: Mutex<Streams>,
}

#[derive(Default)]
struct Streams {
    last: u64,
    open: HashMap<u64, Weak<Stream>>,
}

/// A response over HTTP/2, until its last byte has left.
pub(super) struct Stream {
    budget: Arc<StreamBudget>,
    number: u64,
    /// The bytes counted for it; zero once it was reset.
    bytes: AtomicU64,
    backlog: Backlog,
    connection: Arc<ConnectionState>,
    task: Task,
    /// When the client last took something, in milliseconds from the budget's beginning.
    moved: AtomicU64,
}

/// Runs the streams of a connection, each in a task that can be ended.
#[derive(Clone, Copy)]
pub(super) struct Executor;

impl StreamBudget {
    /// Unlimited if `bytes_max` is zero.
    pub(super) fn new(bytes_max: u64) -> Self {
        Self {
            bytes_max: AtomicU64::new(limit(bytes_max)),
            began: Instant::now(),
            held: AtomicU64::new(0),
            has_shed: AtomicBool::new(false),
            streams: Mutex::default(),
        }
    }

    /// Sets another limit, for the next time that the memory is counted.
    pub(super) fn limit(&self, bytes_max: u64) {
        self.bytes_max.store(limit(bytes_max), Ordering::Relaxed);
    }

    /// Counts a response, which the running task sends.
    pub(super) fn begin(self: &Arc<Self>, connection: &Arc<ConnectionState>, backlog: Backlog) -> Arc<Stream> {
        let bytes = STREAM_BYTES + backlog.bytes();
        self.held.fetch_add(bytes, Ordering::Relaxed);
        let mut streams = self.streams();
        streams.last += 1;
        let stream = Arc::new(Stream {
            budget: Arc::clone(self),
            number: streams.last,
            bytes: AtomicU64::new(bytes),
            backlog,
            connection: Arc::clone(connection),
            task: TASK.try_with(Arc::clone).unwrap_or_default(),
            moved: AtomicU64::new(self.now()),
        });
        streams.open.insert(stream.number, Arc::downgrade(&stream));
        drop(streams);
        self.keep();
        stream
    }

    /// Counts again the memory that waits for clients: it grows while they take nothing.
    pub(super) fn recount(&self) {
        for stream in self.open() {
            stream.recount();
        }
        self.keep();
    }

    /// Whether streams were reset since the last call.
    pub(super) fn has_shed(&self) -> bool {
        self.has_shed.swap(false, Ordering::Relaxed)
    }

    fn keep(&self) {
        if self.held.load(Ordering::Relaxed) > self.bytes_max.load(Ordering::Relaxed) {
            self.shed();
        }
    }

    /// Resets the streams that have been stalled for longest, until an eighth of the budget is free. A scan of all streams for each
    /// single reset would be expensive.
    fn shed(&self) {
        let bytes_max = self.bytes_max.load(Ordering::Relaxed);
        let enough = bytes_max - bytes_max / 8;
        self.has_shed.store(true, Ordering::Relaxed);
        let mut open = self.open();
        open.sort_by_cached_key(|stream| (stream.moved.load(Ordering::Relaxed), stream.number));
        for stream in &open {
            if self.held.load(Ordering::Relaxed) <= enough {
                break;
            }
            stream.reset();
        }
    }

    fn open(&self) -> Vec<Arc<Stream>> {
        // Dropping the last reference to a stream locks this list. So none is dropped here, under the lock.
        self.streams().open.values().filter_map(Weak::upgrade).collect()
    }

    fn now(&self) -> u64 {
        self.began.elapsed().as_millis() as u64
    }

    fn streams(&self) -> MutexGuard<'_, Streams> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Zero is no limit.
fn limit(bytes_max: u64) -> u64 {
    if bytes_max == 0 { u64::MAX } else { bytes_max }
}

impl Stream {
    /// The client has taken some of it.
    pub(super) fn moved(&self) {
        self.moved.store(self.budget.now(), Ordering::Relaxed);
    }

    /// Hyper has all of the body, or wants no more of it: ending the task would then have no effect, and the handle would keep its
    /// memory.
    pub(super) fn is_taken(&self) {
        self.task().take();
    }

    /// Ends it. It is no longer counted, and is dropped as soon as its thread runs it.
    fn reset(&self) {
        if self.uncount() == 0 {
            return;
        }
        match self.task().take() {
            Some(task) if !self.connection.is_blocked() => task.abort(),
            _ => self.connection.order(Order::Abort),
        }
    }

    fn uncount(&self) -> u64 {
        let bytes = self.bytes.swap(0, Ordering::Relaxed);
        self.budget.held.fetch_sub(bytes, Ordering::Relaxed);
        bytes
    }

    fn recount(&self) {
        let (before, now) = (self.bytes.load(Ordering::Relaxed), STREAM_BYTES + self.backlog.bytes());
        if before == 0 || before == now {
            return;
        }
        // Added before the exchange: if the stream ends right after it, `now` is subtracted, and the sum must not fall below zero.
        self.budget.held.fetch_add(now, Ordering::Relaxed);
        let is_counted = self.bytes.compare_exchange(before, now, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        self.budget.held.fetch_sub(if is_counted { before } else { now }, Ordering::Relaxed);
    }

    fn task(&self) -> MutexGuard<'_, Option<AbortHandle>> {
        self.task.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.uncount();
        self.budget.streams().open.remove(&self.number);
    }
}

impl<F: Future<Output = ()> + Send + 'static> hyper::rt::Executor<F> for Executor {
    fn execute(&self, serving: F) {
        let task = Task::default();
        let running = tokio::spawn(TASK.scope(Arc::clone(&task), serving));
        // It doesn't run before this on a worker, which has one thread.
        *task.lock().unwrap_or_else(PoisonError::into_inner) = Some(running.abort_handle());
    }
}
