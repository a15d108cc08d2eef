//! The second level, as caches use it.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};

use crate::gate::{Gate, Outcome, Turn, Why};
use crate::offers::{Offer, Offers};
use crate::settings::{Backend, Settings};
use crate::status::{GateState, Status};
use crate::store::{Kept, StoreError};

/// So many questions may be under way.
const QUESTIONS_MAX: usize = 256;

/// The second level. Clones are the same one.
#[derive(Debug, Clone)]
pub struct SecondLevel(pub(crate) Arc<Shared>);

/// What became of an offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offered {
    /// It waits for the store.
    Queued,
    /// It is dropped: it is too long, too many wait, or the store takes none at present.
    Dropped,
}

/// What the caches and the thread share.
#[derive(Debug)]
pub(crate) struct Shared {
    kind: &'static str,
    object_bytes_max: u64,
    started: Instant,
    jobs: mpsc::UnboundedSender<Job>,
    gate: Mutex<Gate>,
    offers: Mutex<Offers>,
    questions: AtomicUsize,
    counts: Counts,
    /// What all objects have together, once the store has told.
    bytes: Mutex<Option<u64>>,
    trouble: Mutex<Option<String>>,
}

#[derive(Debug, Default)]
struct Counts {
    hits: AtomicU64,
    misses: AtomicU64,
    failures: AtomicU64,
    skipped: AtomicU64,
    outdated: AtomicU64,
    stored: AtomicU64,
    refused: AtomicU64,
    dropped: AtomicU64,
    offers_failed: AtomicU64,
}

/// Work for the thread.
#[derive(Debug)]
pub(crate) enum Job {
    Ask(Question),
    Offer(Offer),
}

/// A question on its way.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) key: Vec<u8>,
    pub(crate) asked: Instant,
    pub(crate) limit: Duration,
    pub(crate) is_probe: bool,
    pub(crate) answer: oneshot::Sender<Option<Bytes>>,
}

impl SecondLevel {
    pub(crate) fn new(settings: &Settings) -> (Self, mpsc::UnboundedReceiver<Job>) {
        let (jobs, receiver) = mpsc::unbounded_channel();
        let kind = match &settings.backend {
            Backend::Redis(_) => "redis",
            Backend::S3(_) => "s3",
        };
        let shared = Shared {
            kind,
            object_bytes_max: settings.object_bytes_max,
            started: Instant::now(),
            jobs,
            gate: Mutex::new(Gate::new(settings.timeout)),
            offers: Mutex::default(),
            questions: AtomicUsize::new(0),
            counts: Counts::default(),
            bytes: Mutex::default(),
            trouble: Mutex::default(),
        };
        (Self(Arc::new(shared)), receiver)
    }

    /// The value of a key. `None`: the store has none, or isn't asked at present, or doesn't answer in time.
    pub async fn ask(&self, key: &[u8]) -> Option<Bytes> {
        let (answer, limit) = self.question(key)?;
        tokio::time::timeout(limit, answer).await.ok()?.ok()?
    }

    /// The same for a thread that has no runtime.
    ///
    /// # Panics
    /// On a thread that runs asynchronous tasks.
    pub fn ask_blocking(&self, key: &[u8]) -> Option<Bytes> {
        let (answer, _) = self.question(key)?;
        // The thread answers within the limit.
        answer.blocking_recv().ok()?
    }

    /// Sends a question, and returns the receiver of its answer, with the time to wait for it.
    fn question(&self, key: &[u8]) -> Option<(oneshot::Receiver<Option<Bytes>>, Duration)> {
        let shared = &self.0;
        let (limit, is_probe) = match locked(&shared.gate).turn(shared.now_ms()) {
            Turn::Ask(limit) => (limit, false),
            Turn::Probe(limit) => (limit, true),
            Turn::Skip => {
                count(&shared.counts.skipped);
                return None;
            }
        };
        // A probe is the only one.
        let has_place = |questions: usize| (is_probe || questions < QUESTIONS_MAX).then_some(questions + 1);
        if shared.questions.fetch_update(Ordering::Relaxed, Ordering::Relaxed, has_place).is_err() {
            count(&shared.counts.skipped);
            return None;
        }
        let (answer, answered) = oneshot::channel();
        let question = Question { key: key.to_vec(), asked: Instant::now(), limit, is_probe, answer };
        shared.jobs.send(Job::Ask(question)).ok()?;
        if is_probe {
            count(&shared.counts.skipped);
            return None;
        }
        Some((answered, limit))
    }

    /// Whether an offer with a value of this length would be queued.
    pub fn takes(&self, bytes: usize) -> bool {
        bytes as u64 <= self.0.object_bytes_max && locked(&self.0.offers).takes(self.0.now_ms(), bytes)
    }

    /// Offers a value that is usable for `ttl` from now on. It never waits.
    pub fn offer(&self, key: &[u8], value: Bytes, ttl: Duration) -> Offered {
        let (shared, bytes) = (&self.0, value.len());
        let mut offers = locked(&shared.offers);
        if bytes as u64 > shared.object_bytes_max || ttl.is_zero() || !offers.takes(shared.now_ms(), bytes) {
            count(&shared.counts.dropped);
            return Offered::Dropped;
        }
        let offer = Offer { key: key.to_vec(), value, ttl };
        if shared.jobs.send(Job::Offer(offer)).is_err() {
            return Offered::Dropped;
        }
        offers.add(bytes);
        Offered::Queued
    }

    /// How long it took to make an object without the second level: more than a question may take.
    pub fn origin_took(&self, took: Duration) {
        locked(&self.0.gate).origin_took(took);
    }

    /// Counts a value that its reader found to be no longer right.
    pub fn was_outdated(&self) {
        count(&self.0.counts.outdated);
    }

    /// How it is doing.
    pub fn status(&self) -> Status {
        let shared = &self.0;
        let gate = locked(&shared.gate);
        let (state, opened) = (GateState::of(gate.why_open()), gate.opened());
        drop(gate);
        let counts = &shared.counts;
        let counted = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Status {
            kind: shared.kind,
            state,
            opened,
            hits: counted(&counts.hits),
            misses: counted(&counts.misses),
            failures: counted(&counts.failures),
            skipped: counted(&counts.skipped),
            outdated: counted(&counts.outdated),
            waiting: locked(&shared.offers).waiting(),
            stored: counted(&counts.stored),
            refused: counted(&counts.refused),
            dropped: counted(&counts.dropped),
            offers_failed: counted(&counts.offers_failed),
            bytes: *locked(&shared.bytes),
            trouble: locked(&shared.trouble).clone(),
        }
    }
}

impl Shared {
    /// What came of a question.
    pub(crate) fn answered(&self, question: (Instant, bool), outcome: Outcome, error: Option<&StoreError>) {
        let (asked, is_probe) = question;
        let counts = &self.counts;
        count(match outcome {
            Outcome::Hit => &counts.hits,
            Outcome::Miss => &counts.misses,
            Outcome::Failure => &counts.failures,
        });
        let mut gate = locked(&self.gate);
        let before = gate.why_open();
        gate.record(self.now_ms(), is_probe, outcome, asked.elapsed());
        let now = gate.why_open();
        drop(gate);
        self.note(error);
        match (before, now) {
            (None, Some(Why::Failures)) => {
                let trouble = locked(&self.trouble).clone().unwrap_or_default();
                tracing::warn!(
                    error = trouble,
                    "the second level fails; misses don't wait for it until it answers again"
                );
            }
            (None, Some(Why::Slow)) => {
                tracing::warn!("the second level takes more time than it saves; misses don't wait for it at present");
            }
            (Some(_), None) => tracing::info!("the second level answers in time; misses ask it again"),
            (None, None) | (Some(_), Some(_)) => {}
        }
    }

    /// The question has left the thread.
    pub(crate) fn question_is_over(&self) {
        self.questions.fetch_sub(1, Ordering::Relaxed);
    }

    /// What came of an offer of this length.
    pub(crate) fn offered(&self, bytes: usize, result: &Result<Kept, StoreError>) {
        let counts = &self.counts;
        count(match result {
            Ok(Kept::Stored(_)) => &counts.stored,
            Ok(Kept::Refused) => &counts.refused,
            Err(_) => &counts.offers_failed,
        });
        if let Ok(Kept::Stored(Some(bytes))) = result {
            *locked(&self.bytes) = Some(*bytes);
        }
        self.note(result.as_ref().err());
        locked(&self.offers).done(self.now_ms(), bytes, result.is_err());
    }

    pub(crate) fn note(&self, error: Option<&StoreError>) {
        if let Some(error) = error {
            tracing::debug!(%error, "the second level");
            *locked(&self.trouble) = Some(error.to_string());
        }
    }

    fn now_ms(&self) -> u64 {
        self.started.elapsed().as_millis() as u64
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
