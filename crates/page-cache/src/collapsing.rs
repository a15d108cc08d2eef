//! Request collapsing (RFC 9211). When several requests of a process miss the same key, one of them asks. The others wait for the
//! head of its answer, and then read its body.
//!
//! ```text
//! Asking ──head arrives, may be stored──> Answered ──stored──> gone: found in the volume
//!    ├──head arrives, may not be──────────────────────────────> Alone: every request asks for itself
//!    └──no head: given up, or an error────────────────────────> Over: the next request takes its place
//! ```
//! Across processes, the request that asks also holds a claim in the volume:
//!
//! ```text
//! COLLAPSE_KEY fill      claimed while a request asks for a response with this collapse key
//! ```

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use eyewall::{Epoch, Writer};
use tokio::sync::Notify;

use crate::pages::Pages;

/// The requests that are under way. `A` is the answer that every waiting request gets.
#[derive(Debug)]
pub(crate) struct InFlight<A> {
    running: Mutex<Running<A>>,
}

type Running<A> = HashMap<Vec<u8>, Arc<Collapsed<A>>>;

#[derive(Debug)]
struct Collapsed<A> {
    /// The epoch of the volume when the request began.
    epoch: Option<Epoch>,
    stage: Mutex<Stage<A>>,
    /// Notified after the stage has changed. Most requests have nobody who waits, and pay almost nothing for it.
    landed: Notify,
}

#[derive(Debug)]
enum Stage<A> {
    Asking,
    Answered(Arc<A>),
    Alone,
    Over,
}

/// What a request has to do on a miss.
#[derive(Debug)]
pub(crate) enum Joined<A> {
    /// The request asks. Dropping the leader ends that.
    Lead(Leader<A>),
    /// The request waits.
    Follow(Waiter<A>),
}

/// The right, and the duty, to ask for a key.
pub(crate) struct Leader<A> {
    in_flight: Arc<InFlight<A>>,
    key: Vec<u8>,
    request: Arc<Collapsed<A>>,
    /// Released together with the leader.
    held: Option<Box<dyn Send + Sync>>,
}

/// A request that waits for another one.
#[derive(Debug)]
pub(crate) struct Waiter<A> {
    request: Arc<Collapsed<A>>,
    /// Whether the answer arrived before this request began to wait. So it was not given to this request.
    pub(crate) is_late: bool,
}

/// How the wait ended.
#[derive(Debug)]
pub(crate) enum Outcome<A> {
    /// The head has arrived.
    Answered(Arc<A>),
    /// The answer is not for other requests.
    Alone,
    /// The answer has been stored, or the request failed.
    Over,
    /// The wait reached its deadline.
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

    /// Joins the running request for a key, or begins a new one. `epoch` is the present epoch of the volume. A request after any
    /// purge doesn't join one from before it.
    pub(crate) fn join(self: &Arc<Self>, key: &[u8], epoch: Option<Epoch>) -> Joined<A> {
        let mut running = self.running();
        if let Some(request) = running.get(key).filter(|request| request.epoch == epoch) {
            let request = Arc::clone(request);
            let is_late = !matches!(*request.stage(), Stage::Asking);
            return Joined::Follow(Waiter { request, is_late });
        }
        let request = Arc::new(Collapsed { epoch, stage: Mutex::new(Stage::Asking), landed: Notify::new() });
        running.insert(key.to_vec(), Arc::clone(&request));
        Joined::Lead(Leader { in_flight: Arc::clone(self), key: key.to_vec(), request, held: None })
    }

    /// The number of running requests.
    pub(crate) fn count(&self) -> usize {
        self.running().len()
    }

    /// Requests for this key, or for one that begins with it and a blank, no longer join a running request.
    pub(crate) fn leave(&self, key: &[u8]) {
        let is_of_key = |other: &[u8]| other.strip_prefix(key).is_some_and(|rest| rest.is_empty() || rest[0] == b' ');
        self.running().retain(|other, _| !is_of_key(other));
    }
}

impl<A> Collapsed<A> {
    fn stage(&self) -> MutexGuard<'_, Stage<A>> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn land(&self, stage: Stage<A>) {
        *self.stage() = stage;
        self.landed.notify_waiters();
    }

    /// `None`: the head has not arrived yet.
    fn outcome(&self) -> Option<Outcome<A>> {
        match &*self.stage() {
            Stage::Asking => None,
            Stage::Answered(answer) => Some(Outcome::Answered(Arc::clone(answer))),
            Stage::Alone => Some(Outcome::Alone),
            Stage::Over => Some(Outcome::Over),
        }
    }
}

impl<A> Leader<A> {
    /// Holds a value as long as the leader, for instance the same right across processes.
    pub(crate) fn hold(&mut self, held: impl Send + Sync + 'static) {
        self.held = Some(Box::new(held));
    }

    /// Gives the answer to the waiters, who become readers of its body.
    pub(crate) fn answered(&self, answer: &Arc<A>) {
        self.request.land(Stage::Answered(Arc::clone(answer)));
    }

    /// Tells the others to ask for themselves.
    pub(crate) fn alone(self) {
        self.request.land(Stage::Alone);
    }
}

impl<A> Waiter<A> {
    /// Waits for the head of the answer, or for the end of the request without one.
    pub(crate) async fn answer(self, deadline: Duration) -> Outcome<A> {
        let landed = async {
            loop {
                // It gets each notification from here on.
                let notified = self.request.landed.notified();
                if let Some(outcome) = self.request.outcome() {
                    return outcome;
                }
                notified.await;
            }
        };
        tokio::time::timeout(deadline, landed).await.unwrap_or(Outcome::Late)
    }
}

impl Pages {
    /// Claims a key in the volume. No entry is stored under that key. A request that finds it claimed by another process waits on a
    /// blocking thread, one for each key. The thread ends when the request gives up. None: another process still has the claim, or
    /// the volume has no place for it.
    pub(crate) async fn claim(&self, collapse_key: &[u8], wait: Duration) -> Option<Writer> {
        let key = [collapse_key, b" fill"].concat();
        let store = Arc::clone(&self.store);
        // Lives as long as the caller waits.
        let waiting = Arc::new(());
        let wanted = Arc::downgrade(&waiting);
        let claiming = move || {
            let is_wanted = || wanted.strong_count() > 0;
            store.claim(&key, wait, &is_wanted)
        };
        // The thread has already logged its panic.
        let claimed = tokio::task::spawn_blocking(claiming).await.ok().flatten();
        drop(waiting);
        claimed
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
        // After a purge, another request may ask for the key.
        if running.get(&self.key).is_some_and(|request| Arc::ptr_eq(request, &self.request)) {
            running.remove(&self.key);
        }
        drop(running);
        if matches!(*self.request.stage(), Stage::Asking) {
            self.request.land(Stage::Over);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Longer than any step here takes.
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
    async fn a_waiting_request_gets_the_outcome() {
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
    fn a_request_after_a_purge_of_its_key_or_its_address_starts_a_new_fetch() {
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
    fn a_dropped_leader_releases_its_held_value() {
        let in_flight = Arc::default();
        let held = Arc::new(());
        let mut leader = lead(&in_flight);
        leader.hold(Arc::clone(&held));
        assert_eq!(Arc::strong_count(&held), 2);
        drop(leader);
        assert_eq!(Arc::strong_count(&held), 1);
    }
}
