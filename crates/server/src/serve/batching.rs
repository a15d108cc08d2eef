//! Items on their way from the workers to a thread that passes them on, many at a time: lines of the access log, and spans.
//!
//! ```text
//! workers ──> queue, bounded ──> a thread, when a batch is due: it is full, its first item has waited long enough, or no more come
//! ```
//! No worker waits for that thread. If it doesn't keep up, items are dropped and counted.

use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// The lengths of a queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lengths {
    /// If this many wait, items are dropped.
    pub(crate) waiting_max: usize,
    /// This many are passed on without waiting for more.
    pub(crate) batch: usize,
}

/// Items that wait. The lock is held for the time of adding one item, or of exchanging the buffer for another.
pub(crate) struct Queue<T> {
    lengths: Lengths,
    waiting: Mutex<Waiting<T>>,
    /// Notified of the first item, of a full batch, and of the end.
    news: Notify,
    /// Notified of the end alone.
    end: Notify,
    /// The number of items that were lost so far. Nothing depends on it, so it needs no ordering.
    lost: AtomicU64,
}

struct Waiting<T> {
    items: Vec<T>,
    dropped: u64,
    has_ended: bool,
}

/// The items taken from the queue.
pub(crate) struct Batch<T> {
    pub(crate) items: Vec<T>,
    /// The number of items dropped since the last batch.
    pub(crate) dropped: u64,
    /// No more will come.
    pub(crate) is_last: bool,
}

/// When the next batch of a queue is due.
pub(crate) struct Pace {
    /// The longest time that an item waits for others.
    delay: Duration,
    /// The time until which the first waiting item may wait.
    due: Option<Instant>,
}

impl<T> Queue<T> {
    pub(crate) fn new(lengths: Lengths) -> Self {
        let waiting = Waiting { items: Vec::new(), dropped: 0, has_ended: false };
        Self { lengths, waiting: Mutex::new(waiting), news: Notify::new(), end: Notify::new(), lost: AtomicU64::new(0) }
    }

    /// Adds what `write` appends, or drops it and counts it as one item if too many wait.
    pub(crate) fn push(&self, write: impl FnOnce(&mut Vec<T>)) {
        let Lengths { waiting_max, batch } = self.lengths;
        let mut waiting = self.lock();
        let before = waiting.items.len();
        if before >= waiting_max {
            waiting.dropped += 1;
            drop(waiting);
            self.lose(1);
            return;
        }
        write(&mut waiting.items);
        let after = waiting.items.len();
        drop(waiting);
        if before == 0 || before < batch && after >= batch {
            self.news.notify_one();
        }
    }

    /// Counts items that were not passed on.
    pub(crate) fn lose(&self, items: u64) {
        self.lost.fetch_add(items, Ordering::Relaxed);
    }

    /// How many items were not passed on.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Marks the end of the items.
    pub(crate) fn end(&self) {
        self.lock().has_ended = true;
        self.news.notify_one();
        self.end.notify_waiters();
    }

    /// Waits for the end of the items.
    pub(crate) async fn ended(&self) {
        loop {
            // Before the look: it is notified from now on.
            let end = self.end.notified();
            if self.has_ended() {
                break;
            }
            end.await;
        }
    }

    /// Whether no more items come.
    pub(crate) fn has_ended(&self) -> bool {
        self.lock().has_ended
    }

    /// Waits until there is an item, a batch is full, or no more items come. It may also return early.
    async fn news(&self) {
        self.news.notified().await;
    }

    /// Whether the waiting items should be passed on now.
    fn is_due(&self) -> bool {
        let waiting = self.lock();
        waiting.has_ended || waiting.items.len() >= self.lengths.batch
    }

    /// Takes the waiting items, in exchange for an empty buffer.
    pub(crate) fn take(&self, empty: Vec<T>) -> Batch<T> {
        let mut waiting = self.lock();
        let items = mem::replace(&mut waiting.items, empty);
        Batch { items, dropped: mem::take(&mut waiting.dropped), is_last: waiting.has_ended }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting<T>> {
        // At worst, the thread that panicked has left half an item.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pace {
    pub(crate) fn new(delay: Duration) -> Self {
        Self { delay, due: None }
    }

    /// Waits until a batch is due. A caller that drops the future and waits again loses no time.
    pub(crate) async fn batch<T>(&mut self, queue: &Queue<T>) {
        loop {
            let due = self.due;
            tokio::select! {
                () = queue.news() => {
                    if queue.is_due() {
                        break;
                    }
                    self.due.get_or_insert_with(|| Instant::now() + self.delay);
                }
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => break,
            }
        }
        self.taken();
    }

    /// The waiting items were taken before a batch was due.
    pub(crate) fn taken(&mut self) {
        self.due = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTHS: Lengths = Lengths { waiting_max: 8 << 20, batch: 256 << 10 };

    #[test]
    fn items_without_room_are_dropped_and_counted() {
        let queue = Queue::new(LENGTHS);
        let line = [[b'x'; 1023].as_slice(), b"\n"].concat();
        let lines = LENGTHS.waiting_max / line.len();
        for _ in 0..lines + 3 {
            queue.push(|bytes| bytes.extend_from_slice(&line));
        }
        assert!(queue.is_due());
        let batch = queue.take(Vec::new());
        assert_eq!((batch.items.len(), batch.dropped, batch.is_last), (LENGTHS.waiting_max, 3, false));
        assert_eq!(queue.lost(), 3);
        queue.push(|bytes| bytes.extend_from_slice(&line));
        assert!(!queue.is_due(), "there is room again");
        queue.end();
        let batch = queue.take(Vec::new());
        assert_eq!((batch.items.len(), batch.dropped, batch.is_last), (line.len(), 0, true));
    }

    #[tokio::test(start_paused = true)]
    async fn a_batch_is_due_when_it_is_full_or_old_or_the_last() {
        const DELAY: Duration = Duration::from_secs(5);
        let queue = Queue::new(Lengths { waiting_max: 10, batch: 3 });
        let mut pace = Pace::new(DELAY);
        let begun = Instant::now();
        queue.push(|items| items.push(1));
        // Others may come, and a caller may do something else meanwhile.
        assert!(tokio::time::timeout(Duration::from_secs(1), pace.batch(&queue)).await.is_err());
        pace.batch(&queue).await;
        assert_eq!((queue.take(Vec::new()).items, begun.elapsed() >= DELAY), (vec![1], true));
        let begun = Instant::now();
        (0..3).for_each(|item| queue.push(|items| items.push(item)));
        pace.batch(&queue).await;
        assert_eq!((queue.take(Vec::new()).items.len(), begun.elapsed()), (3, Duration::ZERO));
        queue.push(|items| items.push(4));
        queue.end();
        pace.batch(&queue).await;
        let batch = queue.take(Vec::new());
        assert_eq!((batch.items, batch.is_last, begun.elapsed()), (vec![4], true, Duration::ZERO));
    }

    #[tokio::test]
    async fn the_end_is_seen_before_and_after_it_came() {
        let queue = std::sync::Arc::new(Queue::<u8>::new(LENGTHS));
        let waiting = tokio::spawn({
            let queue = std::sync::Arc::clone(&queue);
            async move { queue.ended().await }
        });
        tokio::task::yield_now().await;
        assert!(!queue.has_ended());
        queue.end();
        waiting.await.unwrap();
        queue.ended().await;
    }
}
