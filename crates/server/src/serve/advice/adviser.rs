//! The last advice, which is made again when somebody asks for it and it has become old.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::task::spawn_blocking;

use super::{Report, advise};
use crate::serve::shared::Shared;

/// Advice stays new for this many times as long as it took. So clients that ask often take a tenth of a processor at most.
const REST: u32 = 10;

/// Makes advice for all who ask, on a thread that may block.
#[derive(Default)]
pub(crate) struct Adviser {
    /// Held while advice is made, so that there is one at a time.
    making: tokio::sync::Mutex<()>,
    /// The lock is held for moments.
    last: Mutex<Option<Last>>,
}

struct Last {
    /// Until when it is new enough.
    until: Instant,
    report: Arc<Report>,
}

/// Why there is no advice.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoAdvice {
    #[error("{0}")]
    Engine(#[from] eyewall::Error),
    #[error("the thread that replays the sample has panicked; the server's log says where")]
    Panicked,
}

impl Adviser {
    /// Advice that is new enough. It is made to its end even if the client leaves, or clients that leave could have it made all the time.
    ///
    /// # Errors
    /// [`NoAdvice`].
    pub(crate) async fn advice(self: &Arc<Self>, shared: Arc<Shared>) -> Result<Arc<Report>, NoAdvice> {
        let adviser = Arc::clone(self);
        let made = tokio::spawn(async move { adviser.make(shared).await });
        made.await.unwrap_or(Err(NoAdvice::Panicked))
    }

    /// The last advice, however old. If it isn't new enough, the next one is begun, and nobody waits for it.
    pub(crate) fn last(self: &Arc<Self>, shared: Arc<Shared>) -> Option<Arc<Report>> {
        let (report, is_new) = match &*self.lock() {
            Some(last) => (Some(Arc::clone(&last.report)), Instant::now() < last.until),
            None => (None, false),
        };
        if !is_new && self.making.try_lock().is_ok() {
            let adviser = Arc::clone(self);
            tokio::spawn(async move {
                if let Err(error) = adviser.make(shared).await {
                    tracing::warn!("no advice for the dashboard: {error}");
                }
            });
        }
        report
    }

    async fn make(&self, shared: Arc<Shared>) -> Result<Arc<Report>, NoAdvice> {
        let _making = self.making.lock().await;
        let begun = Instant::now();
        if let Some(last) = &*self.lock()
            && begun < last.until
        {
            return Ok(Arc::clone(&last.report));
        }
        let report = Arc::new(spawn_blocking(move || advise(&shared)).await.map_err(|_| NoAdvice::Panicked)??);
        let took: Duration = begun.elapsed();
        *self.lock() = Some(Last { until: Instant::now() + took * REST, report: Arc::clone(&report) });
        Ok(report)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Last>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
