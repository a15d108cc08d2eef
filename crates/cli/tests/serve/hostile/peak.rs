//! The most memory that a server has had.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::common::server::anonymous_bytes;

/// How often it is read: an attack lasts longer than a moment.
const EVERY: Duration = Duration::from_millis(5);

/// Reads the anonymous memory of a process again and again.
pub(super) struct Peak {
    shared: Arc<Shared>,
    process: u32,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    bytes: AtomicU64,
    has_ended: AtomicBool,
}

impl Peak {
    pub(super) fn of(process: u32) -> Self {
        let shared = Arc::<Shared>::default();
        let known = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            while !known.has_ended.load(Ordering::Relaxed) {
                known.bytes.fetch_max(anonymous_bytes(process), Ordering::Relaxed);
                thread::sleep(EVERY);
            }
        });
        Self { shared, process, thread: Some(thread) }
    }

    pub(super) fn bytes(&self) -> u64 {
        let now = anonymous_bytes(self.process);
        self.shared.bytes.fetch_max(now, Ordering::Relaxed).max(now)
    }
}

impl Drop for Peak {
    fn drop(&mut self) {
        self.shared.has_ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
