//! How many requests the origins of a site get at once, and the queue of those that wait for their turn.
//!
//! A request has its place until the last byte of its response has come. Requests that wait for the response of another one
//! (request collapsing) need none.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The limits for the requests to the origins of a site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct QueueLimits {
    pub(crate) at_once: usize,
    pub(crate) waiting: usize,
    pub(crate) wait: Duration,
}

/// The places for requests to the origins of a site, and the requests that wait for one, first come, first served.
pub(crate) struct OriginQueue {
    limits: QueueLimits,
    /// The same for all configurations of a site.
    state: Arc<State>,
}

#[derive(Debug)]
struct State {
    places: Arc<Semaphore>,
    numbers: Mutex<Numbers>,
    waiting: AtomicUsize,
}

#[derive(Debug)]
struct Numbers {
    at_once: usize,
    /// The places that are taken and that a reload took away: a request that leaves one frees nothing.
    too_many: usize,
}

/// The place of a request, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    /// `None` once it is dropped.
    permit: Option<OwnedSemaphorePermit>,
    state: Arc<State>,
}

/// There is no place, and none became free in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Full;

impl OriginQueue {
    pub(crate) fn new(limits: QueueLimits) -> Self {
        let numbers = Mutex::new(Numbers { at_once: limits.at_once, too_many: 0 });
        let places = Arc::new(Semaphore::new(limits.at_once));
        Self { limits, state: Arc::new(State { places, numbers, waiting: AtomicUsize::new(0) }) }
    }

    /// The queue by another configuration, with the requests of this one. Its number of places counts after [`OriginQueue::begin`].
    pub(crate) fn renewed(&self, limits: QueueLimits) -> Self {
        Self { limits, state: Arc::clone(&self.state) }
    }

    /// The configuration is in force.
    pub(crate) fn begin(&self) {
        self.state.resize(self.limits.at_once);
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
        let state = Arc::clone(&self.state);
        if let Ok(permit) = Arc::clone(&state.places).try_acquire_owned() {
            return Ok(Place { permit: Some(permit), state });
        }
        let _waiting = self.begin_to_wait().ok_or(Full)?;
        let permit = tokio::time::timeout(self.limits.wait, Arc::clone(&state.places).acquire_owned()).await;
        // The semaphore is never closed.
        permit.ok().and_then(Result::ok).map(|permit| Place { permit: Some(permit), state }).ok_or(Full)
    }

    fn begin_to_wait(&self) -> Option<Waiting<'_>> {
        let one_more = |waiting| (waiting < self.limits.waiting).then_some(waiting + 1);
        let waiting = &self.state.waiting;
        waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).ok()?;
        Some(Waiting(waiting))
    }
}

impl State {
    fn resize(&self, at_once: usize) {
        let mut numbers = self.numbers();
        let before = std::mem::replace(&mut numbers.at_once, at_once);
        let more = at_once.saturating_sub(before);
        let regained = more.min(numbers.too_many);
        numbers.too_many -= regained;
        self.places.add_permits(more - regained);
        let fewer = before.saturating_sub(at_once);
        numbers.too_many += fewer - self.places.forget_permits(fewer);
    }

    fn numbers(&self) -> MutexGuard<'_, Numbers> {
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut numbers = self.state.numbers();
        if numbers.too_many > 0
            && let Some(permit) = self.permit.take()
        {
            numbers.too_many -= 1;
            permit.forget();
        }
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

    #[tokio::test(start_paused = true)]
    async fn a_reload_changes_the_number_of_places_and_knows_those_that_are_taken() {
        let limits = |at_once| QueueLimits { at_once, waiting: 0, wait: Duration::from_secs(5) };
        let queue = OriginQueue::new(limits(3));
        let mut places = vec![queue.enter().await.unwrap(), queue.enter().await.unwrap()];
        let fewer = queue.renewed(limits(1));
        places.push(fewer.enter().await.unwrap());
        fewer.begin();
        // Of three, two are too many.
        for expected in [false, false, true] {
            assert!(fewer.enter().await.is_err());
            places.pop();
            assert_eq!(fewer.enter().await.is_ok(), expected);
        }
        let place = fewer.enter().await.unwrap();
        let more = fewer.renewed(limits(2));
        assert!(more.enter().await.is_err());
        more.begin();
        let other = more.enter().await.unwrap();
        assert!(more.enter().await.is_err());
        // One becomes too many, and is regained.
        fewer.begin();
        more.begin();
        drop(place);
        assert!(more.enter().await.is_ok());
        drop(other);
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
