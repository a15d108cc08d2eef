//! How long a request waited for the heads of its origin's responses.
//!
//! It is measured where the origin is asked, and wanted where the line is written, far away. Between the two lies nothing that
//! has a use for it, so that it goes past all of that, in the task: what runs in another task, behind the client's back, is not
//! counted.

use std::cell::Cell;
use std::time::{Duration, Instant};

tokio::task_local! {
    /// The time so far; none while no origin was asked.
    static WAITED: Cell<Option<Duration>>;
}

/// Runs the answering of a request, and says how long it waited for its origin; none if it asked none.
pub(crate) async fn measured<T>(answering: impl Future<Output = T>) -> (T, Option<Duration>) {
    let answer_and_time = async { (answering.await, WAITED.with(Cell::get)) };
    WAITED.scope(Cell::new(None), answer_and_time).await
}

/// Runs the asking of an origin, and counts its time if somebody wants to know.
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
    async fn what_the_origin_takes_is_counted_where_it_is_asked_for() {
        assert_eq!(counted(async { 5 }).await, 5, "nobody wants to know");
        assert_eq!(measured(async { 5 }).await, (5, None), "no origin was asked");
        let (answer, first) = measured(counted(async { 5 })).await;
        assert_eq!((answer, first.is_some()), (5, true));
        let elsewhere = measured(async { tokio::spawn(counted(async { 5 })).await.unwrap() });
        assert_eq!(elsewhere.await, (5, None), "it is behind the client's back");
    }
}
