//! The time that a request waited for the heads of its origin's responses.
//!
//! The code that asks the origin measures it, and the code that writes the line needs it. No code between them uses it, so it is
//! a local of the task. Requests to the origin in other tasks, for which the client doesn't wait, are not counted.

use std::cell::Cell;
use std::time::{Duration, Instant};

tokio::task_local! {
    /// The time so far; `None` before the first request to an origin.
    static WAITED: Cell<Option<Duration>>;
}

/// Runs the answering of a request, and returns the time that it waited for an origin, if it asked one.
pub(crate) async fn measured<T>(answering: impl Future<Output = T>) -> (T, Option<Duration>) {
    let answer_and_time = async { (answering.await, WAITED.with(Cell::get)) };
    WAITED.scope(Cell::new(None), answer_and_time).await
}

/// Runs a request to an origin, and counts its time if the task measures it.
pub(crate) async fn counted<T>(asking: impl Future<Output = T>) -> T {
    if WAITED.try_with(|_| ()).is_err() {
        return asking.await;
    }
    let started = Instant::now();
    let answer = asking.await;
    WAITED.with(|waited| waited.set(Some(waited.get().unwrap_or_default() + started.elapsed())));
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_time_of_the_origin_is_counted_in_its_own_task() {
        assert_eq!(counted(async { 5 }).await, 5, "the task does not measure");
        assert_eq!(measured(async { 5 }).await, (5, None), "no origin was asked");
        let (answer, first) = measured(counted(async { 5 })).await;
        assert_eq!((answer, first.is_some()), (5, true));
        let elsewhere = measured(async { tokio::spawn(counted(async { 5 })).await.unwrap() });
        assert_eq!(elsewhere.await, (5, None), "another task is not counted");
    }
}
