//! How many requests the origins of a site get at once, and the queue of those that wait for their turn.
//!
//! A request has its place until the last byte of its response has come. Requests that wait for the response of another one
//! (request collapsing) need none.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The limits for the requests to the origins of a site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct QueueLimits {
    pub(crate) at_once: usize,
    pub(crate) waiting: usize,
    pub(crate) wait: Duration,
}

/// The places for requests to the origins of a site, and those who wait for one, first come, first served.
pub(crate) struct OriginQueue {
    limits: QueueLimits,
    places: Arc<Semaphore>,
    waiting: AtomicUsize,
}

/// The place of a request, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    _permit: OwnedSemaphorePermit,
}

/// There is no place, and none became free in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Full;

impl OriginQueue {
    pub(crate) fn new(limits: QueueLimits) -> Self {
        Self { limits, places: Arc::new(Semaphore::new(limits.at_once)), waiting: AtomicUsize::new(0) }
    }

    /// How long a client should wait before it tries again.
    pub(crate) fn retry_after(&self) -> Duration {
        self.limits.wait
    }

    /// Waits for a place.
    ///
    /// # Errors
    /// [`Full`], at once if too many wait already, or when the wait has been too long.
    pub(crate) async fn enter(&self) -> Result<Place, Full> {
        if let Ok(permit) = Arc::clone(&self.places).try_acquire_owned() {
            return Ok(Place { _permit: permit });
        }
        let _waiting = self.begin_to_wait().ok_or(Full)?;
        let permit = tokio::time::timeout(self.limits.wait, Arc::clone(&self.places).acquire_owned()).await;
        // The semaphore is never closed.
        permit.ok().and_then(Result::ok).map(|permit| Place { _permit: permit }).ok_or(Full)
    }

    fn begin_to_wait(&self) -> Option<Waiting<'_>> {
        let one_more = |waiting| (waiting < self.limits.waiting).then_some(waiting + 1);
        self.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).ok()?;
        Some(Waiting(&self.waiting))
    }
}

/// Counts a request in the queue.
struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_request_waits_for_a_place_but_not_forever() {
        let queue = OriginQueue::new(QueueLimits { at_once: 1, waiting: 1, wait: Duration::from_secs(5) });
        let first = queue.enter().await.unwrap();
        let mut second = pin!(queue.enter());
        assert!(futures_poll(second.as_mut()).await.is_none(), "it waits");
        assert_eq!(queue.enter().await.unwrap_err(), Full, "the queue is full");
        drop(first);
        let second = second.await.unwrap();
        let began = tokio::time::Instant::now();
        assert_eq!(queue.enter().await.unwrap_err(), Full);
        assert_eq!(began.elapsed(), Duration::from_secs(5));
        drop(second);
        assert!(queue.enter().await.is_ok());
    }

    /// The result of a future that is polled once.
    async fn futures_poll<F: Future>(mut future: std::pin::Pin<&mut F>) -> Option<F::Output> {
        std::future::poll_fn(|context| match future.as_mut().poll(context) {
            std::task::Poll::Ready(output) => std::task::Poll::Ready(Some(output)),
            std::task::Poll::Pending => std::task::Poll::Ready(None),
        })
        .await
    }
}
