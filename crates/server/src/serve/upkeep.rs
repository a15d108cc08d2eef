//! The upkeep of the volume while the server runs: a thread checks its header every second and scrubs it, and another one sweeps it after
//! many purges.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use eyewall::{Scrub, ScrubTurn};

use super::error::Error;
use super::metrics::Metrics;
use eyewall_page_cache::store::Store;

/// How often the thread checks the header.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How often a server asks for the turn to scrub while another process has it, or retries after a failure.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// After a step of a scrub, the thread rests for this many times its duration, so it uses less than 1 % of a core.
const REST: u32 = 100;

/// After a sweep, this many times its duration passes before the next one.
const SWEEP_REST: u32 = 10;

/// The threads. Dropping this ends them.
pub(crate) struct Upkeep {
    /// Nothing is sent on it: dropping it ends the thread that checks and scrubs.
    stop: Option<Sender<()>>,
    sweeps: Sender<Order>,
    /// A sweep under way ends early.
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// What the sweeping thread is told.
enum Order {
    Sweep,
    End,
}

impl Upkeep {
    /// `scrub` is the time of a pass; zero turns scrubbing off. `metrics` counts what passes do.
    ///
    /// # Errors
    /// [`Error::Start`], if the system gives no thread.
    pub(crate) fn start(store: Arc<Store>, scrub: Duration, metrics: Arc<Metrics>) -> Result<Self, Error> {
        let ((stop, stopped), (sweeps, orders)) = (channel(), channel());
        let wanted = sweeps.clone();
        store.tell_of_many_purges(move || {
            // Without the thread, the server ends.
            let _ = wanted.send(Order::Sweep);
        });
        let mut upkeep = Self { stop: Some(stop), sweeps, is_over: Arc::default(), threads: Vec::new() };
        let (swept, is_over) = (Arc::clone(&store), Arc::clone(&upkeep.is_over));
        upkeep.spawn("upkeep", move || run(&store, scrub, &metrics, &stopped))?;
        upkeep.spawn("sweep", move || sweep(&swept, &orders, &is_over))?;
        Ok(upkeep)
    }

    fn spawn(&mut self, name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Error> {
        self.threads.push(thread::Builder::new().name(name.to_owned()).spawn(work).map_err(Error::Start)?);
        Ok(())
    }
}

impl Drop for Upkeep {
    fn drop(&mut self) {
        self.stop = None;
        self.is_over.store(true, Ordering::Relaxed);
        // An error means that the thread has ended.
        let _ = self.sweeps.send(Order::End);
        for thread in self.threads.drain(..) {
            // The thread has logged a panic already.
            let _ = thread.join();
        }
    }
}

fn run(store: &Store, scrub: Duration, metrics: &Metrics, stopped: &Receiver<()>) {
    let mut scrubber = (!scrub.is_zero()).then(|| Scrubber { period: scrub, pass: None });
    let (mut look, mut step) = (Instant::now(), Instant::now());
    // A failed volume stays failed.
    while !store.has_failed() {
        if Instant::now() >= look {
            store.check_header();
            store.look_for_many_purges();
            look = Instant::now() + LOOK_EVERY;
        }
        let mut next = look;
        if let Some(scrubber) = &mut scrubber {
            if Instant::now() >= step {
                step = scrubber.step(store, metrics);
            }
            next = look.min(step);
        }
        if stopped.recv_timeout(next.saturating_duration_since(Instant::now())) != Err(RecvTimeoutError::Timeout) {
            return;
        }
    }
}

/// Sweeps when it is told to, with a pause between two sweeps.
fn sweep(store: &Store, orders: &Receiver<Order>, is_over: &AtomicBool) {
    let mut rested = Instant::now();
    while let Ok(Order::Sweep) = orders.recv() {
        match orders.recv_timeout(rested.saturating_duration_since(Instant::now())) {
            Ok(Order::Sweep) | Err(RecvTimeoutError::Timeout) => {}
            Ok(Order::End) | Err(RecvTimeoutError::Disconnected) => return,
        }
        let begun = Instant::now();
        store.sweep_while(|| !is_over.load(Ordering::Relaxed));
        rested = Instant::now() + begun.elapsed() * SWEEP_REST;
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
    fn step(&mut self, store: &Store, metrics: &Metrics) -> Instant {
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
        let before = pass.scrub.found();
        let Some(_) = store.scrub(&mut pass.scrub) else { return now + ASK_EVERY };
        let found = pass.scrub.found();
        metrics.scrubs.count(
            found.bytes_read.saturating_sub(before.bytes_read),
            found.entries_dropped.saturating_sub(before.entries_dropped),
        );
        if before.entries_dropped == 0 && found.entries_dropped > 0 {
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
