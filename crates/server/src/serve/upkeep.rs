//! Looking after the volume while the server runs: a thread looks at its header each second, and scrubs it.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use eyewall::{Scrub, ScrubTurn};

use crate::Error;
use eyewall_page_cache::store::Store;

/// How often the header is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How often a server asks for the turn to scrub that another process has, or tries again what couldn't be done.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// A step of a scrub is followed by so many times its duration of rest: less than 1 % of a core is used.
const REST: u32 = 100;

/// The thread that does it. Dropping this ends it.
pub(crate) struct Upkeep {
    /// Nothing is sent: its end is the thread's.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Upkeep {
    /// `scrub`: the time of a pass; zero: none is made.
    ///
    /// # Errors
    /// [`Error::Start`], where there can't be another thread.
    pub(crate) fn start(store: Arc<Store>, scrub: Duration) -> Result<Self, Error> {
        let (stop, stopped) = channel();
        let work = move || run(&store, scrub, &stopped);
        let thread = thread::Builder::new().name("upkeep".to_owned()).spawn(work).map_err(Error::Start)?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Upkeep {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // The thread has logged a panic already.
            let _ = thread.join();
        }
    }
}

fn run(store: &Store, scrub: Duration, stopped: &Receiver<()>) {
    let mut scrubber = (!scrub.is_zero()).then(|| Scrubber { period: scrub, pass: None });
    let (mut look, mut step) = (Instant::now(), Instant::now());
    // A volume that has failed isn't better later.
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
        if stopped.recv_timeout(next.saturating_duration_since(Instant::now())) != Err(RecvTimeoutError::Timeout) {
            return;
        }
    }
}

/// Holds what is in memory against its checksums, over and over.
struct Scrubber {
    /// What a pass is to take.
    period: Duration,
    pass: Option<Pass>,
}

struct Pass {
    scrub: Scrub,
    begun: Instant,
    /// Kept between two passes, so that another process doesn't make one meanwhile.
    _turn: ScrubTurn,
}

impl Scrubber {
    /// Does a little; returns when to go on.
    fn step(&mut self, store: &Store) -> Instant {
        let now = Instant::now();
        // Of a pass that is over, what it has is dropped first: the turn, above all.
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
                "the volume has damaged entries, which are dropped: look at the disk, the memory, and who else writes to the file \
                 (told once a pass; `eyewall stat` counts them)"
            );
        }
        // What it took is no less than what it used of a core.
        let rested = Instant::now() + now.elapsed() * REST;
        rested.max(pass.begun + self.period.mul_f64(pass.scrub.progress()))
    }
}
