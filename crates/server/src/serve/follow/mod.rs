//! Those who follow the requests of a running server: `GET /requests` of the administration, and `eyewall log`.
//!
//! ```text
//! worker ──> seen     from the head of a request until the last byte of its response has left
//!              └────> queue of each follower whose filter matches, bounded ──> stream: the body of its response
//! filter: which requests a follower wants
//! ```
//!
//! While nobody follows, a request costs one relaxed load. No worker ever waits for a follower: a line that finds its queue full is
//! dropped and counted, and the follower is told how many it has missed.
//!
//! A line has nothing that the access log doesn't have: no cookies, and no fields of clients other than the host.
//!
//! # What is absent
//! Bytes that were not a request, which the access log shows with `-`.

mod filter;
mod seen;
mod stream;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(crate) use filter::Filter;
pub(crate) use seen::{Seen, SeenRequest};
use stream::Queue;
pub(crate) use stream::{Following, Form};

/// The most followers at once.
pub(crate) const FOLLOWERS_MAX: usize = 16;

/// The followers of a server. Every configuration of it has the same ones.
#[derive(Default)]
pub(crate) struct Followers {
    /// How many there are. A worker that sees a new one late misses its first lines, and no more.
    count: AtomicUsize,
    all: Mutex<All>,
}

#[derive(Default)]
struct All {
    queues: Vec<Arc<Queue>>,
    /// The server ends.
    has_ended: bool,
}

impl Followers {
    /// Whether anybody follows.
    #[inline]
    pub(crate) fn are_there(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }

    /// One more follower, from now until the body is dropped; `None` if there are too many.
    pub(crate) fn follow(self: &Arc<Self>, filter: Filter, form: Form) -> Option<Following> {
        let mut all = self.lock();
        if all.queues.len() >= FOLLOWERS_MAX {
            return None;
        }
        let queue = Arc::new(Queue::new(filter, form));
        if all.has_ended {
            queue.end();
        }
        all.queues.push(Arc::clone(&queue));
        self.count.store(all.queues.len(), Ordering::Relaxed);
        Some(Following::new(queue, Arc::clone(self)))
    }

    /// Ends all bodies after the lines that wait.
    pub(crate) fn end(&self) {
        let mut all = self.lock();
        all.has_ended = true;
        for queue in &all.queues {
            queue.end();
        }
    }

    fn leave(&self, queue: &Arc<Queue>) {
        let mut all = self.lock();
        all.queues.retain(|other| !Arc::ptr_eq(other, queue));
        self.count.store(all.queues.len(), Ordering::Relaxed);
    }

    /// Gives a request that ended to all who want it.
    fn tell(&self, seen: &Seen) {
        let mut line = None;
        for queue in &self.lock().queues {
            if queue.filter.wants(seen) {
                queue.push(line.get_or_insert_with(|| seen.line()));
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, All> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
