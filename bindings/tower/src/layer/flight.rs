//! Single flight: of several requests of this process that miss the same key at once, one asks the inner service. The others
//! wait for the head of its answer, and read the body along as it comes.
//!
//! ```text
//! Asking ──the head came, and may be stored──> Answered ──stored──> gone: found in the volume
//!    ├──it came, and may not───────────────────────────────────> Alone: everybody asks for himself
//!    └──nothing came: given up, or an error────────────────────> Over: the next one takes its place
//! ```

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use eyewall::{Epoch, Writer};
use tokio::sync::watch;

use super::incoming::Answer;

/// The requests to the inner service that are under way.
#[derive(Debug, Default)]
pub(crate) struct Flights {
    running: Mutex<HashMap<Vec<u8>, Arc<Flight>>>,
}

#[derive(Debug)]
struct Flight {
    /// The volume's when the flight began.
    epoch: Option<Epoch>,
    stage: watch::Sender<Stage>,
}

#[derive(Debug, Clone)]
enum Stage {
    Asking,
    Answered(Arc<Answer>),
    Alone,
    Over,
}

/// What a request is to do about a miss.
pub(crate) enum Joined {
    /// Ask. Dropping the ticket ends the flight.
    Lead(Ticket),
    /// Wait.
    Follow(Waiting),
}

/// The right, and the duty, to ask for a key.
pub(crate) struct Ticket {
    flights: Arc<Flights>,
    key: Vec<u8>,
    flight: Arc<Flight>,
    /// The same right before other processes.
    pub(crate) claim: Option<Box<Writer>>,
}

/// Somebody else's request.
pub(crate) struct Waiting {
    stage: watch::Receiver<Stage>,
    /// Whether the answer had come before anybody waited here: it was not given to this request.
    pub(crate) is_late: bool,
}

/// What came of waiting.
pub(crate) enum Landing {
    /// The head is there.
    Answered(Arc<Answer>),
    /// It is not for others.
    Alone,
    /// It is stored by now, or nothing came of it.
    Over,
    /// Nothing came in time.
    Late,
}

impl Flights {
    fn running(&self) -> MutexGuard<'_, HashMap<Vec<u8>, Arc<Flight>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `epoch` is the volume's present one. Who comes behind a purge, whatever that meant, doesn't join who came before it.
    pub(crate) fn join(self: &Arc<Self>, key: &[u8], epoch: Option<Epoch>) -> Joined {
        let mut running = self.running();
        if let Some(flight) = running.get(key).filter(|flight| flight.epoch == epoch) {
            let stage = flight.stage.subscribe();
            let is_late = !matches!(*stage.borrow(), Stage::Asking);
            return Joined::Follow(Waiting { stage, is_late });
        }
        let flight = Arc::new(Flight { epoch, stage: watch::Sender::new(Stage::Asking) });
        running.insert(key.to_vec(), Arc::clone(&flight));
        Joined::Lead(Ticket { flights: Arc::clone(self), key: key.to_vec(), flight, claim: None })
    }

    /// Who asks from now on for a key, or for one that begins with it and a blank, starts anew.
    pub(crate) fn leave(&self, key: &[u8]) {
        let is_of_key = |other: &[u8]| other.strip_prefix(key).is_some_and(|rest| rest.is_empty() || rest[0] == b' ');
        self.running().retain(|other, _| !is_of_key(other));
    }
}

impl Ticket {
    /// Lets the others read along.
    pub(crate) fn answered(&self, answer: &Arc<Answer>) {
        self.flight.stage.send_replace(Stage::Answered(Arc::clone(answer)));
    }

    /// Tells the others not to wait for one another.
    pub(crate) fn alone(self) {
        self.flight.stage.send_replace(Stage::Alone);
    }
}

impl Waiting {
    /// Waits for the head of the answer, or for the end of the flight without one.
    pub(crate) async fn landing(mut self, deadline: Duration) -> Landing {
        let landed = self.stage.wait_for(|stage| !matches!(stage, Stage::Asking));
        match tokio::time::timeout(deadline, landed).await {
            Err(_) => Landing::Late,
            Ok(Ok(stage)) => match &*stage {
                Stage::Answered(answer) => Landing::Answered(Arc::clone(answer)),
                Stage::Alone => Landing::Alone,
                Stage::Asking | Stage::Over => Landing::Over,
            },
            // The flight is gone.
            Ok(Err(_)) => Landing::Over,
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut running = self.flights.running();
        // After a purge somebody else may fly for the key.
        if running.get(&self.key).is_some_and(|flight| Arc::ptr_eq(flight, &self.flight)) {
            running.remove(&self.key);
        }
        drop(running);
        self.flight.stage.send_if_modified(|stage| {
            let was_asking = matches!(stage, Stage::Asking);
            if was_asking {
                *stage = Stage::Over;
            }
            was_asking
        });
    }
}
