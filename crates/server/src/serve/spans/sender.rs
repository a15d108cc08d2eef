//! The thread that sends spans to a collector, many at a time (OTLP/HTTP).

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use prost::Message as _;
use tokio::time::{Instant, sleep, timeout};

use super::collector::{Answer, BoxError, Collector};
use super::exporters::{BATCH, Counts, Destination};
use super::message::{self, Origin};
use super::span::Span;
use crate::config::collector::CollectorUrl;
use crate::serve::batching::{Pace, Queue};
use crate::serve::error::Error;
use crate::serve::random;

/// The longest time that a span waits for others.
const DELAY: Duration = Duration::from_secs(5);
/// The timeout of an attempt.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The first wait before another attempt. Each further one is twice as long.
const BACKOFF_MIN: Duration = Duration::from_millis(500);
const BACKOFF_MAX: Duration = Duration::from_secs(15);
/// After this time, a batch is dropped.
const GIVE_UP: Duration = Duration::from_mins(1);
/// The time for the rest at the end of the server.
const GRACE: Duration = Duration::from_secs(5);

/// Sends spans until no more come.
struct Sender {
    queue: Arc<Queue<Span>>,
    collector: Collector,
    url: CollectorUrl,
    counts: Arc<Counts>,
    origin: Origin,
    /// The number of spans that were taken from the queue, and are on their way.
    unsent: Cell<u64>,
    /// Whether the last batch failed.
    is_failing: bool,
}

/// What to do after an attempt.
enum Next {
    /// The collector has taken all spans but this many.
    Done(u64),
    /// It may take them later, after this time at least.
    Again(String, Option<Duration>),
    /// It will never take them.
    Never(String),
}

/// # Errors
/// [`Error::Tls`]; [`Error::Start`], if the system gives no thread.
pub(super) fn start(
    queue: Arc<Queue<Span>>,
    destination: &Destination,
    counts: Arc<Counts>,
) -> Result<JoinHandle<()>, Error> {
    let collector = Collector::new(destination).map_err(Error::Tls)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::Start)?;
    let (url, origin) = (destination.url.clone(), Origin::of_this_process());
    let sender = Sender { queue, collector, url, counts, origin, unsent: Cell::new(0), is_failing: false };
    let work = move || {
        runtime.block_on(sender.run());
        // The resolver may still wait for a name.
        runtime.shutdown_background();
    };
    std::thread::Builder::new().name("spans".to_owned()).spawn(work).map_err(Error::Start)
}

impl Sender {
    async fn run(mut self) {
        let queue = Arc::clone(&self.queue);
        let late = async {
            queue.ended().await;
            sleep(GRACE).await;
        };
        let is_whole = tokio::select! {
            () = self.send_all() => true,
            () = late => false,
        };
        if !is_whole {
            let lost = self.unsent.get() + self.queue.take(Vec::new()).items.len() as u64;
            self.queue.lose(lost);
            tracing::warn!(collector = %self.url, spans = lost, "the collector did not take the last spans in time");
        }
    }

    async fn send_all(&mut self) {
        let mut pace = Pace::new(DELAY);
        loop {
            pace.batch(&self.queue).await;
            let batch = self.queue.take(Vec::new());
            if batch.dropped > 0 {
                let spans = batch.dropped;
                tracing::warn!(collector = %self.url, spans, "spans are sent too slowly: dropped some");
            }
            self.unsent.set(batch.items.len() as u64);
            let mut spans = batch.items.into_iter();
            while spans.len() > 0 {
                self.send(spans.by_ref().take(BATCH)).await;
            }
            if batch.is_last {
                break;
            }
        }
    }

    /// Sends a batch, or drops it.
    async fn send(&mut self, spans: impl ExactSizeIterator<Item = Span>) {
        let count = spans.len() as u64;
        let message = Bytes::from(message::encode(spans, &self.origin));
        let lost = match self.deliver(message).await {
            Ok(rejected) => {
                if self.is_failing {
                    self.is_failing = false;
                    tracing::warn!(collector = %self.url, "the collector takes spans again");
                }
                rejected.min(count)
            }
            Err(reason) => {
                if !self.is_failing {
                    self.is_failing = true;
                    tracing::warn!(
                        collector = %self.url, reason,
                        "can't send spans to the collector; they are dropped (logged once, until it works again)"
                    );
                }
                count
            }
        };
        self.counts.exported.fetch_add(count - lost, Ordering::Relaxed);
        self.queue.lose(lost);
        self.unsent.set(self.unsent.get() - count);
    }

    /// Returns how many spans the collector has rejected.
    ///
    /// # Errors
    /// The reason for which it has none of them.
    async fn deliver(&mut self, message: Bytes) -> Result<u64, String> {
        let begun = Instant::now();
        let mut backoff = BACKOFF_MIN;
        loop {
            // At the end of the server there is no more than one attempt.
            let is_last = self.queue.has_ended();
            let attempt = timeout(TIMEOUT, self.collector.post(message.clone())).await;
            let (reason, wait) = match next(attempt.unwrap_or_else(|_| Err("timeout".into()))) {
                Next::Done(rejected) => return Ok(rejected),
                Next::Never(reason) => return Err(reason),
                Next::Again(reason, wait) => (reason, wait),
            };
            tracing::debug!(collector = %self.url, reason, "the collector did not take spans");
            // Servers that began to wait together don't come back together.
            let jitter = (random::number() >> 11) as f64 / (1_u64 << 53) as f64;
            let wait = wait.unwrap_or_default().max(backoff.mul_f64(0.5 + jitter / 2.0));
            backoff = (backoff * 2).min(BACKOFF_MAX);
            let left = GIVE_UP.saturating_sub(begun.elapsed());
            if is_last {
                return Err(reason);
            }
            tokio::select! {
                () = sleep(wait.min(left)) => if wait >= left { return Err(reason) },
                () = self.queue.ended() => {}
            }
        }
    }
}

/// What the answer means (OTLP/HTTP, "Failures").
fn next(answer: Result<Answer, BoxError>) -> Next {
    let Answer { status, retry_after, body } = match answer {
        Ok(answer) => answer,
        Err(error) => return Next::Again(error.to_string(), None),
    };
    match status {
        StatusCode::TOO_MANY_REQUESTS
        | StatusCode::BAD_GATEWAY
        | StatusCode::SERVICE_UNAVAILABLE
        | StatusCode::GATEWAY_TIMEOUT => Next::Again(status.to_string(), retry_after),
        status if status.is_success() => Next::Done(rejected(&body)),
        status => Next::Never(status.to_string()),
    }
}

/// How many spans the collector has rejected, by its answer.
fn rejected(body: &[u8]) -> u64 {
    let answer = message::Response::decode(body).unwrap_or_default();
    let Some(partial) = answer.partial_success else { return 0 };
    if partial.rejected_spans > 0 {
        let (spans, reason) = (partial.rejected_spans, partial.error_message);
        tracing::warn!(spans, reason, "the collector has rejected spans");
    }
    u64::try_from(partial.rejected_spans).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, body: &'static [u8]) -> Next {
        let (status, retry_after) = (StatusCode::from_u16(status).unwrap(), Some(Duration::from_secs(3)));
        next(Ok(Answer { status, retry_after, body: Bytes::from_static(body) }))
    }

    #[test]
    fn an_answer_says_whether_to_try_again() {
        for status in [429, 502, 503, 504] {
            assert!(matches!(answer(status, b""), Next::Again(_, Some(_))), "{status}");
        }
        for status in [301, 400, 401, 404, 413, 500, 501] {
            assert!(matches!(answer(status, b""), Next::Never(_)), "{status}");
        }
        assert!(matches!(answer(200, b""), Next::Done(0)));
        // A partial success with two rejected spans; a body that is none.
        assert!(matches!(answer(200, b"\x0a\x02\x08\x02"), Next::Done(2)));
        assert!(matches!(answer(202, b"\xff"), Next::Done(0)));
        assert!(matches!(next(Err("refused".into())), Next::Again(_, None)));
    }
}
