//! Tells the supervisor that the server works, if it wants to know: all workers have to answer.

use std::sync::Arc;
use std::time::Duration;

use crate::serve::upgrade::Upgrader;

/// Sends a message twice in the time of the supervisor, while all workers answer and no other process
/// has taken over. It never ends.
pub(super) async fn feed(upgrader: &Arc<Upgrader>) {
    let supervisor = upgrader.reloader.supervisor();
    let Some(timeout) = supervisor.watchdog() else { return std::future::pending().await };
    let pause = (timeout / 2).max(Duration::from_millis(1));
    while !upgrader.has_upgraded() {
        let asking = Arc::clone(&upgrader.reloader);
        let answering = tokio::task::spawn_blocking(move || asking.workers().answer_within(pause));
        if answering.await.unwrap_or(false) {
            supervisor.alive();
        } else {
            tracing::error!("a worker does not answer; the supervisor will end this process");
        }
        tokio::time::sleep(pause).await;
    }
    std::future::pending::<()>().await;
}
