//! The thread that talks to the store.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::frame::{Framer, Name};
use crate::gate::Outcome;
use crate::handle::{Job, Question, SecondLevel, Shared};
use crate::offers::Offer;
use crate::redis_store::RedisStore;
use crate::s3_store::S3Store;
use crate::settings::{Backend, Settings};
use crate::store::{Store, StoreError};

/// How long the start waits for the store, so that the first misses find a connection.
const START_TIMEOUT: Duration = Duration::from_secs(1);
/// How long an answer that is too late for its client is waited for: it may be the first on a new connection.
const LATE_TIMEOUT: Duration = Duration::from_secs(10);
/// So many offers are written at the same time.
const PUTS_MAX: usize = 8;

/// The thread. Dropping this ends it.
#[derive(Debug)]
pub struct SecondLevelThread {
    /// Nothing is sent on it: dropping it ends the thread.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Why there is no second level.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The settings make no sense.
    #[error("{0}")]
    Settings(String),
    /// The system gives no thread or runtime.
    #[error("{0}")]
    System(#[from] io::Error),
}

/// What every task of the thread uses.
struct Work {
    store: Store,
    framer: Framer,
    shared: Arc<Shared>,
    puts: Semaphore,
}

impl SecondLevelThread {
    /// Starts the thread, and waits a short time for the store. If the store can't be reached, the second level is empty until it can.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn start(settings: &Settings) -> Result<(SecondLevel, Self), StartError> {
        let store = match &settings.backend {
            Backend::Redis(redis) => Store::Redis(Box::new(RedisStore::new(redis))),
            Backend::S3(s3) => Store::S3(S3Store::new(s3).map_err(|error| StartError::Settings(error.to_string()))?),
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (second_level, jobs) = SecondLevel::new(settings);
        let work = Work {
            store,
            framer: Framer::new(settings.secret.as_deref()),
            shared: Arc::clone(&second_level.0),
            puts: Semaphore::new(PUTS_MAX),
        };
        let (stop, stopped) = oneshot::channel();
        let (ready, is_ready) = std::sync::mpsc::channel();
        let run = move || {
            runtime.block_on(Arc::new(work).run(jobs, stopped, ready));
            runtime.shutdown_background();
        };
        let thread = std::thread::Builder::new().name("second level".to_owned()).spawn(run)?;
        // An error means that the thread has panicked, which is logged.
        let _ = is_ready.recv();
        Ok((second_level, Self { stop: Some(stop), thread: Some(thread) }))
    }
}

impl Drop for SecondLevelThread {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // The thread has logged a panic already.
            let _ = thread.join();
        }
    }
}

impl Work {
    async fn run(
        self: Arc<Self>,
        mut jobs: mpsc::UnboundedReceiver<Job>,
        mut stopped: oneshot::Receiver<()>,
        ready: std::sync::mpsc::Sender<()>,
    ) {
        let work = Arc::clone(&self);
        let first = tokio::spawn(async move { work.store.get(&Name::of(b"")).await });
        match tokio::time::timeout(START_TIMEOUT, first).await {
            Ok(Ok(Err(error))) => {
                tracing::warn!(%error, "the second level can't be reached");
                self.shared.note(Some(&error));
            }
            Err(_) => tracing::warn!("the second level doesn't answer yet"),
            Ok(_) => {}
        }
        // The start may have been given up.
        let _ = ready.send(());
        loop {
            let job = tokio::select! {
                _ = &mut stopped => return,
                job = jobs.recv() => job,
            };
            let work = Arc::clone(&self);
            match job {
                None => return,
                Some(Job::Ask(question)) => drop(tokio::spawn(async move { work.ask(question).await })),
                Some(Job::Offer(offer)) => drop(tokio::spawn(async move { work.offer(offer).await })),
            }
        }
    }

    async fn ask(&self, question: Question) {
        let Question { key, asked, limit, is_probe, answer } = question;
        let name = Name::of(&key);
        let mut getting = Box::pin(self.store.get(&name));
        let left = limit.saturating_sub(asked.elapsed());
        let timed = tokio::time::timeout(left, &mut getting).await;
        let is_late = timed.is_err();
        let (mut value, mut outcome, mut error, mut is_useless) = (None, Outcome::Failure, None, false);
        match timed.unwrap_or(Err(StoreError::Late)) {
            Ok(object) => {
                value = object.as_ref().and_then(|object| self.framer.read(&name, object));
                outcome = if value.is_some() { Outcome::Hit } else { Outcome::Miss };
                is_useless = object.is_some() && value.is_none();
            }
            Err(failure) => error = Some(failure),
        }
        self.shared.answered((asked, is_probe), outcome, error.as_ref());
        // The client may be gone.
        let _ = answer.send(value);
        if is_late {
            let _ = tokio::time::timeout(LATE_TIMEOUT, getting).await;
        }
        if is_useless {
            self.shared.note(self.store.remove(&name).await.err().as_ref());
        }
        self.shared.question_is_over();
    }

    async fn offer(&self, offer: Offer) {
        let Offer { key, value, ttl } = offer;
        let bytes = value.len();
        // It is never closed.
        let _place = self.puts.acquire().await;
        let name = Name::of(&key);
        let object = self.framer.write(&name, &value, ttl);
        let result = self.store.put(&name, object, ttl).await;
        self.shared.offered(bytes, &result);
    }
}
