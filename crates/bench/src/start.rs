//! How threads begin and end together.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crate::clock::now_ns;

/// Lets threads start together and stop at one time. The first thread to start sets the deadline, unless it was set
/// beforehand. Each thread checks the clock itself, since a supervisor would wait long for a core among 64 busy
/// threads.
pub(crate) struct Start {
    ready: Barrier,
    /// No thread begins before this moment.
    begin_ns: u64,
    /// 0: not set. No other data depends on this word, so relaxed accesses suffice.
    deadline_ns: AtomicU64,
    duration: Duration,
}

impl Start {
    pub(crate) fn new(threads: usize, duration: Duration) -> Self {
        Self { ready: Barrier::new(threads), begin_ns: 0, deadline_ns: AtomicU64::new(0), duration }
    }

    /// Starts at a moment that other processes know, too.
    pub(crate) fn at(threads: usize, begin_ns: u64, duration: Duration) -> Self {
        let deadline_ns = AtomicU64::new(begin_ns + duration.as_nanos() as u64);
        Self { begin_ns, deadline_ns, ..Self::new(threads, duration) }
    }

    /// Waits for all threads. Returns when this thread began and when it has to end.
    pub(crate) fn wait(&self) -> (u64, u64) {
        self.ready.wait();
        thread::sleep(Duration::from_nanos(self.begin_ns.saturating_sub(now_ns())));
        let begin_ns = now_ns();
        let mine_ns = begin_ns + self.duration.as_nanos() as u64;
        let set = self.deadline_ns.compare_exchange(0, mine_ns, Ordering::Relaxed, Ordering::Relaxed);
        (begin_ns, set.err().unwrap_or(mine_ns))
    }
}
