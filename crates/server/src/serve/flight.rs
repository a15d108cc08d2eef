//! Single flight: of several requests of this process that miss the same key at once, one fetches and the others wait.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

/// The fetches that are under way.
#[derive(Default)]
pub(crate) struct Flights {
    running: Mutex<HashMap<Vec<u8>, watch::Receiver<()>>>,
}

/// What a request is to do about a miss.
pub(crate) enum Flight {
    /// Fetch. Dropping the ticket lets the others go on.
    Lead(Ticket),
    /// Wait, then look again.
    Follow(Waiting),
}

/// The right, and the duty, to fetch a key.
pub(crate) struct Ticket {
    flights: Arc<Flights>,
    key: Vec<u8>,
    /// Closed by dropping it, after the key has left `running`.
    _landing: watch::Sender<()>,
}

/// The end of somebody else's fetch.
pub(crate) struct Waiting(watch::Receiver<()>);

impl Flights {
    pub(crate) fn join(self: &Arc<Self>, key: &[u8]) -> Flight {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        match running.entry(key.to_vec()) {
            Entry::Occupied(flight) => Flight::Follow(Waiting(flight.get().clone())),
            Entry::Vacant(place) => {
                let (landing, waiting) = watch::channel(());
                place.insert(waiting);
                Flight::Lead(Ticket { flights: Arc::clone(self), key: key.to_vec(), _landing: landing })
            }
        }
    }
}

impl Waiting {
    /// Returns when the ticket is gone, whatever became of the fetch.
    pub(crate) async fn landing(mut self) {
        while self.0.changed().await.is_ok() {}
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.flights.running.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key);
    }
}
