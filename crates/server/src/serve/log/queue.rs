//! Lines on their way from the workers to the thread that writes them.

use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// If this many bytes wait, lines are dropped: the disk, or the reader of standard output, is too slow.
const WAITING_BYTES_MAX: usize = 8 << 20;
/// This many bytes are written without waiting for more.
const BATCH_BYTES: usize = 256 << 10;

/// Lines that wait for the writer. The lock is held for the time of copying one line, or of exchanging the buffer for another.
#[derive(Default)]
pub(super) struct Queue {
    waiting: Mutex<Waiting>,
    /// Notified of the first line, of a full batch, and of the end.
    news: Notify,
    /// The number of lines that were lost so far. Nothing depends on it, so it needs no ordering.
    lost: AtomicU64,
}

#[derive(Default)]
struct Waiting {
    bytes: Vec<u8>,
    dropped: u64,
    has_ended: bool,
}

/// The lines taken from the queue.
pub(super) struct Batch {
    /// Whole lines.
    pub(super) bytes: Vec<u8>,
    /// The number of lines dropped since the last batch.
    pub(super) dropped: u64,
    /// No more lines will come.
    pub(super) is_last: bool,
}

impl Queue {
    /// Adds a line, or drops and counts it if too many wait.
    pub(super) fn push(&self, write: impl FnOnce(&mut Vec<u8>)) {
        let mut waiting = self.lock();
        let before = waiting.bytes.len();
        if before >= WAITING_BYTES_MAX {
            waiting.dropped += 1;
            drop(waiting);
            self.lose(1);
            return;
        }
        write(&mut waiting.bytes);
        let after = waiting.bytes.len();
        drop(waiting);
        if before == 0 || before < BATCH_BYTES && after >= BATCH_BYTES {
            self.news.notify_one();
        }
    }

    /// Counts lines that were not written.
    pub(super) fn lose(&self, lines: u64) {
        self.lost.fetch_add(lines, Ordering::Relaxed);
    }

    /// How many lines were not written.
    pub(super) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Marks the end of the lines.
    pub(super) fn end(&self) {
        self.lock().has_ended = true;
        self.news.notify_one();
    }

    /// Waits until there is a line, a batch is full, or no more lines come. It may also return early.
    pub(super) async fn news(&self) {
        self.news.notified().await;
    }

    /// Whether the waiting lines should be written now.
    pub(super) fn is_due(&self) -> bool {
        let waiting = self.lock();
        waiting.has_ended || waiting.bytes.len() >= BATCH_BYTES
    }

    /// Takes the waiting lines, in exchange for an empty buffer.
    pub(super) fn take(&self, empty: Vec<u8>) -> Batch {
        let mut waiting = self.lock();
        let bytes = mem::replace(&mut waiting.bytes, empty);
        Batch { bytes, dropped: mem::take(&mut waiting.dropped), is_last: waiting.has_ended }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // At worst, the thread that panicked has left half a line.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_without_room_are_dropped_and_counted() {
        let queue = Queue::default();
        let line = [[b'x'; 1023].as_slice(), b"\n"].concat();
        let lines = WAITING_BYTES_MAX / line.len();
        for _ in 0..lines + 3 {
            queue.push(|bytes| bytes.extend_from_slice(&line));
        }
        assert!(queue.is_due());
        let batch = queue.take(Vec::new());
        assert_eq!((batch.bytes.len(), batch.dropped, batch.is_last), (WAITING_BYTES_MAX, 3, false));
        assert_eq!(queue.lost(), 3);
        queue.push(|bytes| bytes.extend_from_slice(&line));
        assert!(!queue.is_due(), "there is room again");
        queue.end();
        let batch = queue.take(Vec::new());
        assert_eq!((batch.bytes.len(), batch.dropped, batch.is_last), (line.len(), 0, true));
    }

    #[tokio::test]
    async fn the_writer_is_notified_of_the_first_line_and_of_the_end() {
        let queue = Queue::default();
        queue.push(|bytes| bytes.extend_from_slice(b"line\n"));
        queue.news().await;
        assert!(!queue.is_due(), "others may come");
        queue.end();
        queue.news().await;
        assert!(queue.is_due());
    }
}
