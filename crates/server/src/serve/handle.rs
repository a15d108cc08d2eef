//! Stops a running server from any thread.

use tokio::sync::watch;

use super::stop::Stop;

/// Ends a running server from any thread. Clones end the same one; dropping them ends nothing.
#[derive(Debug, Clone)]
pub struct Handle {
    wanted: watch::Sender<Stop>,
}

impl Handle {
    pub(super) fn new() -> Self {
        Self { wanted: watch::Sender::new(Stop::NotYet) }
    }

    /// The request of this handle and its clones.
    pub(super) fn told(&self) -> watch::Receiver<Stop> {
        self.wanted.subscribe()
    }

    /// Asks for a graceful end: the server accepts no more connections, and requests in flight have the time of `drain_timeout`. It returns at once;
    /// [`Server::wait`](crate::Server::wait) returns when the server has ended.
    pub fn stop(&self) {
        self.raise(Stop::InOrder);
    }

    /// Asks for the end without waiting for requests in flight.
    pub fn stop_now(&self) {
        self.raise(Stop::AtOnce);
    }

    pub(super) fn raise(&self, stop: Stop) {
        self.wanted.send_if_modified(|wanted| {
            let is_more = stop > *wanted;
            *wanted = stop.max(*wanted);
            is_more
        });
    }
}
