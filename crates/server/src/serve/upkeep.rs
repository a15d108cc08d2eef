//! The upkeep of the volume while the server runs: a thread checks its header every second, scrubs it, and sweeps it after many purges.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use eyewall::{Scrub, ScrubTurn};

use super::error::Error;
use eyewall_page_cache::store::Store;

/// How often the thread checks the header.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How often a server asks for the turn to scrub while another process has it, or retries after a failure.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// After a step of a scrub, the thread rests for this many times its duration, so it uses less than 1 % of a core.
const REST: u32 = 100;

/// After a sweep, this many times its duration passes before the next one.
const SWEEP_REST: u32 = 10;

/// The thread. Dropping this ends it.
pub(crate) struct Upkeep {
    orders: Sender<Order>,
    thread: Option<JoinHandle<()>>,
}

enum Order {
    Sweep,
    End,
}

impl Upkeep {
    /// `scrub` is the time of a pass; zero turns scrubbing off.
    ///
    /// # Errors
    /// [`Error::Start`], if the system gives no thread.
    pub(crate) fn start(store: Arc<Store>, scrub: Duration) -> Result<Self, Error> {
        let (orders, received) = channel();
        let sweeps = orders.clone();
        store.tell_of_many_purges(move || {
            // Without the thread, the server ends.
            let _ = sweeps.send(Order::Sweep);
        });
        let work = move || run(&store, scrub, &received);
        let thread = thread::Builder::new().name("upkeep".to_owned()).spawn(work).map_err(Error::Start)?;
        Ok(Self { orders, thread: Some(thread) })
    }
}

impl Drop for Upkeep {
    fn drop(&mut self) {
        // An error means that the thread has ended.
        let _ = self.orders.send(Order::End);
        if let Some(thread) = self.thread.take() {
            // The thread has logged a panic already.
            let _ = thread.join();
        }
    }
}

fn run(store: &Store, scrub: Duration, orders: &Receiver<Order>) {
    let mut scrubber = (!scrub.is_zero()).then(|| Scrubber { period: scrub, pass: None });
    let (mut look, mut step, mut sweep) = (Instant::now(), Instant::now(), Instant::now());
    let mut is_sweep_wanted = false;
    // A failed volume stays failed.
    while !store.has_failed() {
        if Instant::now() >= look {
            store.check_header();
            look = Instant::now() + LOOK_EVERY;
        }
        let mut next = look;
        if let Some(scrubber) = &mut scrubber {
            if Instant::now() >= step {
                step = scrubber.step(store);
            }
            next = look.min(step);
        }
        if is_sweep_wanted {
            let begun = Instant::now();
            if begun >= sweep {
                is_sweep_wanted = false;
                store.sweep();
                sweep = Instant::now() + begun.elapsed() * SWEEP_REST;
            } else {
                next = next.min(sweep);
            }
        }
        match orders.recv_timeout(next.saturating_duration_since(Instant::now())) {
            Ok(Order::Sweep) => is_sweep_wanted = true,
            Err(RecvTimeoutError::Timeout) => {}
            Ok(Order::End) | Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// Verifies the entries in memory against their checksums, pass after pass.
struct Scrubber {
    /// The time of a pass.
    period: Duration,
    pass: Option<Pass>,
}

struct Pass {
    scrub: Scrub,
    begun: Instant,
    /// Kept between two passes, so that no other process scrubs at the same time.
    _turn: ScrubTurn,
}

impl Scrubber {
    /// Does a step, and returns the time of the next one.
    fn step(&mut self, store: &Store) -> Instant {
        let now = Instant::now();
        // A finished pass is dropped first, because it holds the turn.
        if self.pass.as_ref().is_some_and(|pass| pass.scrub.progress() >= 1.0) {
            self.pass = None;
        }
        if self.pass.is_none() {
            let begin = |turn| Pass { scrub: Scrub::new().only_resident(true), begun: now, _turn: turn };
            self.pass = store.scrub_turn().map(begin);
        }
        let Some(pass) = &mut self.pass else { return now + ASK_EVERY };
        let before = pass.scrub.found().entries_dropped;
        let Some(_) = store.scrub(&mut pass.scrub) else { return now + ASK_EVERY };
        if before == 0 && pass.scrub.found().entries_dropped > 0 {
            tracing::warn!(
                "dropped damaged entries of the volume; check the disk, the memory, and which programs write to the file \
                 (logged once a pass; `eyewall stat` counts them)"
            );
        }
        // The elapsed time is at least the time that the step used of a core.
        let rested = Instant::now() + now.elapsed() * REST;
        rested.max(pass.begun + self.period.mul_f64(pass.scrub.progress()))
    }
}
