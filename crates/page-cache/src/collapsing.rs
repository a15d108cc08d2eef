//! Request collapsing (RFC 9211): of several requests of a process that miss the same key at once, one asks. The others wait for the
//! head of its answer, and become readers of its body.
//!
//! ```text
//! Asking ──the head came, and may be stored──> Answered ──stored──> gone: found in the volume
//!    ├──it came, and may not───────────────────────────────────> Alone: everybody asks for himself
//!    └──nothing came: given up, or an error────────────────────> Over: the next one takes its place
//! ```

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use eyewall::Epoch;
use tokio::sync::watch;

/// What is asked for by somebody just now; `A` is what all get who wait for an answer.
#[derive(Debug)]
pub struct InFlight<A> {
    running: Mutex<Running<A>>,
}

type Running<A> = HashMap<Vec<u8>, Arc<Collapsed<A>>>;

#[derive(Debug)]
struct Collapsed<A> {
    /// The volume's when the request began.
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
pub enum Joined<A> {
    /// Ask. Dropping the leader ends it.
    Lead(Leader<A>),
    /// Wait.
    Follow(Waiter<A>),
}

/// The right, and the duty, to ask for a key.
pub struct Leader<A> {
    in_flight: Arc<InFlight<A>>,
    key: Vec<u8>,
    request: Arc<Collapsed<A>>,
    /// What is given back with it.
    held: Option<Box<dyn Send + Sync>>,
}

/// Somebody else's request.
#[derive(Debug)]
pub struct Waiter<A> {
    stage: watch::Receiver<Stage<A>>,
    /// Whether the answer had come before anybody waited here: it was not given to this request.
    pub is_late: bool,
}

/// What came of waiting.
#[derive(Debug)]
pub enum Outcome<A> {
    /// The head is there.
    Answered(Arc<A>),
    /// It is not for others.
    Alone,
    /// It is stored by now, or nothing came of it.
    Over,
    /// Nothing came in time.
    Late,
}

impl<A> Default for InFlight<A> {
    fn default() -> Self {
        Self { running: Mutex::default() }
    }
}

impl<A> InFlight<A> {
    fn running(&self) -> MutexGuard<'_, Running<A>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The running request for a key, or a new one. `epoch` is the volume's present one. Who comes behind a purge, whatever that meant, doesn't join who came before it.
    pub fn join(self: &Arc<Self>, key: &[u8], epoch: Option<Epoch>) -> Joined<A> {
        let mut running = self.running();
        if let Some(request) = running.get(key).filter(|request| request.epoch == epoch) {
            let stage = request.stage.subscribe();
            let is_late = !matches!(*stage.borrow(), Stage::Asking);
            return Joined::Follow(Waiter { stage, is_late });
        }
        let request = Arc::new(Collapsed { epoch, stage: watch::Sender::new(Stage::Asking) });
        running.insert(key.to_vec(), Arc::clone(&request));
        Joined::Lead(Leader { in_flight: Arc::clone(self), key: key.to_vec(), request, held: None })
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.running().len()
    }

    /// Who asks from now on for a key, or for one that begins with it and a blank, starts anew.
    pub fn leave(&self, key: &[u8]) {
        let is_of_key = |other: &[u8]| other.strip_prefix(key).is_some_and(|rest| rest.is_empty() || rest[0] == b' ');
        self.running().retain(|other, _| !is_of_key(other));
    }
}

impl<A> Leader<A> {
    /// Holds something for as long as the leader, such as the same right before other processes.
    pub fn hold(&mut self, held: impl Send + Sync + 'static) {
        self.held = Some(Box::new(held));
    }

    /// Gives the answer to the waiters, who become readers of its body.
    pub fn answered(&self, answer: &Arc<A>) {
        self.request.stage.send_replace(Stage::Answered(Arc::clone(answer)));
    }

    /// Tells the others not to wait for one another.
    pub fn alone(self) {
        self.request.stage.send_replace(Stage::Alone);
    }
}

impl<A> Waiter<A> {
    /// Waits for the head of the answer, or for the end of the request without one.
    pub async fn answer(mut self, deadline: Duration) -> Outcome<A> {
        let landed = self.stage.wait_for(|stage| !matches!(stage, Stage::Asking));
        match tokio::time::timeout(deadline, landed).await {
            Err(_) => Outcome::Late,
            Ok(Ok(stage)) => match &*stage {
                Stage::Answered(answer) => Outcome::Answered(Arc::clone(answer)),
                Stage::Alone => Outcome::Alone,
                Stage::Asking | Stage::Over => Outcome::Over,
            },
            // The request is gone.
            Ok(Err(_)) => Outcome::Over,
        }
    }
}

impl<A> fmt::Debug for Leader<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leader").field("key", &self.key).finish_non_exhaustive()
    }
}

impl<A> Drop for Leader<A> {
    fn drop(&mut self) {
        let mut running = self.in_flight.running();
        // After a purge somebody else may ask for the key.
        if running.get(&self.key).is_some_and(|request| Arc::ptr_eq(request, &self.request)) {
            running.remove(&self.key);
        }
        drop(running);
        self.request.stage.send_if_modified(|stage| {
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

    fn lead(in_flight: &Arc<InFlight<u8>>) -> Leader<u8> {
        match in_flight.join(b"key", None) {
            Joined::Lead(leader) => leader,
            Joined::Follow(_) => panic!("somebody leads"),
        }
    }

    fn follow(in_flight: &Arc<InFlight<u8>>) -> Waiter<u8> {
        match in_flight.join(b"key", None) {
            Joined::Follow(waiting) => waiting,
            Joined::Lead(_) => panic!("nobody leads"),
        }
    }

    #[tokio::test]
    async fn who_waits_hears_what_came_of_it() {
        let in_flight = Arc::default();
        let leader = lead(&in_flight);
        let early = follow(&in_flight);
        leader.answered(&Arc::new(7));
        let late = follow(&in_flight);
        assert_eq!((early.is_late, late.is_late, in_flight.count()), (false, true, 1));
        drop(leader);
        assert!(matches!(early.answer(LONG).await, Outcome::Answered(answer) if *answer == 7));
        assert!(matches!(late.answer(LONG).await, Outcome::Answered(_)), "it has landed, and is known to who waited");
        assert_eq!(in_flight.count(), 0);

        let leader = lead(&in_flight);
        let waiting = follow(&in_flight);
        leader.alone();
        assert!(matches!(waiting.answer(LONG).await, Outcome::Alone));

        let leader = lead(&in_flight);
        let (waiting, impatient) = (follow(&in_flight), follow(&in_flight));
        assert!(matches!(impatient.answer(Duration::ZERO).await, Outcome::Late));
        drop(leader);
        assert!(matches!(waiting.answer(LONG).await, Outcome::Over));
    }

    #[test]
    fn who_comes_behind_a_purge_of_a_key_or_of_what_it_begins_starts_anew() {
        let in_flight: Arc<InFlight<u8>> = Arc::default();
        let first = lead(&in_flight);
        in_flight.leave(b"ke");
        follow(&in_flight);
        in_flight.leave(b"key");
        let second = lead(&in_flight);
        drop(first);
        follow(&in_flight);
        drop(second);
        let Joined::Lead(_variant) = in_flight.join(b"key variant", None) else { panic!("nobody leads") };
        in_flight.leave(b"key");
        assert_eq!(in_flight.count(), 0);
    }

    #[test]
    fn what_a_ticket_holds_goes_with_it() {
        let in_flight = Arc::default();
        let held = Arc::new(());
        let mut leader = lead(&in_flight);
        leader.hold(Arc::clone(&held));
        assert_eq!(Arc::strong_count(&held), 2);
        drop(leader);
        assert_eq!(Arc::strong_count(&held), 1);
    }
}
