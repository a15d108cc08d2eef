//! Single flight: of several requests of a process that miss the same key at once, one asks. The others wait for the
//! head of its answer, and read the body along as it comes.
//!
//! ```text
//! Asking ──the head came, and may be stored──> Answered ──stored──> gone: found in the volume
//!    ├──it came, and may not───────────────────────────────────> Alone: everybody asks for himself
//!    └──nothing came: given up, or an error────────────────────> Over: the next one takes its place
//! ```
//! Over several processes, the one that asks holds a claim in the volume for as long:
//!
//! ```text
//! FLIGHT_KEY fill      claimed for as long as somebody asks for what has this flight key
//! ```

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use eyewall::{Epoch, Writer};
use tokio::sync::watch;

use crate::pages::Pages;

/// What is asked for by somebody just now; `A` is what all get who wait for an answer.
#[derive(Debug)]
pub(crate) struct Flights<A> {
    running: Mutex<Running<A>>,
}

type Running<A> = HashMap<Vec<u8>, Arc<Flight<A>>>;

#[derive(Debug)]
struct Flight<A> {
    /// The volume's when the flight began.
    epoch: Option<Epoch>,
    stage: watch::Sender<Stage<A>>,
}

#[derive(Debug)]
enum Stage<A> {
    Asking,
    Answered(Arc<A>),
    Alone,
    Over,
}

/// What a request is to do about a miss.
#[derive(Debug)]
pub(crate) enum Joined<A> {
    /// Ask. Dropping the ticket ends the flight.
    Lead(Ticket<A>),
    /// Wait.
    Follow(Waiting<A>),
}

/// The right, and the duty, to ask for a key.
pub(crate) struct Ticket<A> {
    flights: Arc<Flights<A>>,
    key: Vec<u8>,
    flight: Arc<Flight<A>>,
    /// What is given back with it.
    held: Option<Box<dyn Send + Sync>>,
}

/// Somebody else's request.
#[derive(Debug)]
pub(crate) struct Waiting<A> {
    stage: watch::Receiver<Stage<A>>,
    /// Whether the answer had come before anybody waited here: it was not given to this request.
    pub(crate) is_late: bool,
}

/// What came of waiting.
#[derive(Debug)]
pub(crate) enum Landing<A> {
    /// The head is there.
    Answered(Arc<A>),
    /// It is not for others.
    Alone,
    /// It is stored by now, or nothing came of it.
    Over,
    /// Nothing came in time.
    Late,
}

impl<A> Default for Flights<A> {
    fn default() -> Self {
        Self { running: Mutex::default() }
    }
}

impl<A> Flights<A> {
    fn running(&self) -> MutexGuard<'_, Running<A>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The flight of a key, or a new one. `epoch` is the volume's present one. Who comes behind a purge, whatever that meant, doesn't join who came before it.
    pub(crate) fn join(self: &Arc<Self>, key: &[u8], epoch: Option<Epoch>) -> Joined<A> {
        let mut running = self.running();
        if let Some(flight) = running.get(key).filter(|flight| flight.epoch == epoch) {
            let stage = flight.stage.subscribe();
            let is_late = !matches!(*stage.borrow(), Stage::Asking);
            return Joined::Follow(Waiting { stage, is_late });
        }
        let flight = Arc::new(Flight { epoch, stage: watch::Sender::new(Stage::Asking) });
        running.insert(key.to_vec(), Arc::clone(&flight));
        Joined::Lead(Ticket { flights: Arc::clone(self), key: key.to_vec(), flight, held: None })
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.running().len()
    }

    /// Who asks from now on for a key, or for one that begins with it and a blank, starts anew.
    pub(crate) fn leave(&self, key: &[u8]) {
        let is_of_key = |other: &[u8]| other.strip_prefix(key).is_some_and(|rest| rest.is_empty() || rest[0] == b' ');
        self.running().retain(|other, _| !is_of_key(other));
    }
}

impl<A> Ticket<A> {
    /// Holds something for as long as the ticket, such as the same right before other processes.
    pub(crate) fn hold(&mut self, held: impl Send + Sync + 'static) {
        self.held = Some(Box::new(held));
    }

    /// Lets the others read along.
    pub(crate) fn answered(&self, answer: &Arc<A>) {
        self.flight.stage.send_replace(Stage::Answered(Arc::clone(answer)));
    }

    /// Tells the others not to wait for one another.
    pub(crate) fn alone(self) {
        self.flight.stage.send_replace(Stage::Alone);
    }
}

impl<A> Waiting<A> {
    /// Waits for the head of the answer, or for the end of the flight without one.
    pub(crate) async fn landing(mut self, deadline: Duration) -> Landing<A> {
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

impl Pages {
    /// The claim of a key in the volume, which no entry is stored under: those that wait in other processes wait on a thread that may,
    /// one for each key, whoever waits there for that in turn. None: another process has it still, or the volume has no place for it.
    /// Who gives up waiting leaves no thread behind that waits.
    pub(crate) async fn claim(&self, flight_key: &[u8], wait: Duration) -> Option<Writer> {
        let key = [flight_key, b" fill"].concat();
        let store = Arc::clone(&self.store);
        // Lives as long as this is waited for.
        let waiting = Arc::new(());
        let wanted = Arc::downgrade(&waiting);
        let claiming = move || {
            let is_wanted = || wanted.strong_count() > 0;
            store.claim(&key, wait, &is_wanted)
        };
        // A panic in there was told already by its thread.
        let claimed = tokio::task::spawn_blocking(claiming).await.ok().flatten();
        drop(waiting);
        claimed
    }
}

impl<A> fmt::Debug for Ticket<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket").field("key", &self.key).finish_non_exhaustive()
    }
}

impl<A> Drop for Ticket<A> {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Longer than anything here takes.
    const LONG: Duration = Duration::from_mins(1);

    fn lead(flights: &Arc<Flights<u8>>) -> Ticket<u8> {
        match flights.join(b"key", None) {
            Joined::Lead(ticket) => ticket,
            Joined::Follow(_) => panic!("somebody leads"),
        }
    }

    fn follow(flights: &Arc<Flights<u8>>) -> Waiting<u8> {
        match flights.join(b"key", None) {
            Joined::Follow(waiting) => waiting,
            Joined::Lead(_) => panic!("nobody leads"),
        }
    }

    #[tokio::test]
    async fn who_waits_hears_what_came_of_it() {
        let flights = Arc::default();
        let ticket = lead(&flights);
        let early = follow(&flights);
        ticket.answered(&Arc::new(7));
        let late = follow(&flights);
        assert_eq!((early.is_late, late.is_late, flights.count()), (false, true, 1));
        drop(ticket);
        assert!(matches!(early.landing(LONG).await, Landing::Answered(answer) if *answer == 7));
        assert!(matches!(late.landing(LONG).await, Landing::Answered(_)), "it has landed, and is known to who waited");
        assert_eq!(flights.count(), 0);

        let ticket = lead(&flights);
        let waiting = follow(&flights);
        ticket.alone();
        assert!(matches!(waiting.landing(LONG).await, Landing::Alone));

        let ticket = lead(&flights);
        let (waiting, impatient) = (follow(&flights), follow(&flights));
        assert!(matches!(impatient.landing(Duration::ZERO).await, Landing::Late));
        drop(ticket);
        assert!(matches!(waiting.landing(LONG).await, Landing::Over));
    }

    #[test]
    fn who_comes_behind_a_purge_of_a_key_or_of_what_it_begins_starts_anew() {
        let flights: Arc<Flights<u8>> = Arc::default();
        let first = lead(&flights);
        flights.leave(b"ke");
        follow(&flights);
        flights.leave(b"key");
        let second = lead(&flights);
        drop(first);
        follow(&flights);
        drop(second);
        let Joined::Lead(_variant) = flights.join(b"key variant", None) else { panic!("nobody leads") };
        flights.leave(b"key");
        assert_eq!(flights.count(), 0);
    }

    #[test]
    fn what_a_ticket_holds_goes_with_it() {
        let flights = Arc::default();
        let held = Arc::new(());
        let mut ticket = lead(&flights);
        ticket.hold(Arc::clone(&held));
        assert_eq!(Arc::strong_count(&held), 2);
        drop(ticket);
        assert_eq!(Arc::strong_count(&held), 1);
    }
}
