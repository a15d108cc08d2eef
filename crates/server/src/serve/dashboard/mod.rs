//! The dashboard: one page on the administration, which shows live what the cache does.
//!
//! ```text
//!                                     ┌──> history: an hour of points
//! counters, volume, purges ──> sampler┤
//!                                     └──> events, as text ──> one bounded queue for each viewer ──> `GET /dashboard/events`
//! page/: HTML, style and scripts, which are part of the program ────────────────────────────> `GET /dashboard`
//! ```
//! There is one sampler for all viewers. It looks each second while there are viewers, and otherwise every ten seconds, for the history.
//! A viewer that doesn't take its events is dropped. All of it ends with the administration, at a stop and at an upgrade; then the page
//! connects again, to the process that has taken over.
//!
//! # What is absent
//! Anything that the administration doesn't have in another way: the page asks `GET /advice`, `POST /explain` and `POST /purge` as others
//! do.

mod advised;
mod history;
mod page;
mod sample;
mod window;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use eyewall::Cache;
use serde::Serialize;
use tokio::sync::{Notify, mpsc, watch};

use super::advice::Adviser;
use super::body::Body;
use super::purge::Feed;
use super::reload::Reloader;
use history::{History, Point};
pub(crate) use page::Page;
use sample::{Sample, Slow};

/// How often the sampler looks while somebody watches, and otherwise.
const EVERY: Duration = Duration::from_secs(1);
const EVERY_UNSEEN: Duration = Duration::from_secs(10);
/// For how long a look counts as the present.
const FRESH: Duration = Duration::from_millis(500);
/// How often the figures are found that cost more.
const EVERY_SLOW: Duration = Duration::from_secs(5);
/// How often the weight of earlier misses is halved.
const AGE_EVERY: Duration = Duration::from_mins(10);
/// The most viewers.
const VIEWERS_MAX: usize = 16;
/// The most events that wait for a viewer.
const EVENTS_MAX: usize = 16;

/// The dashboard of a server.
pub(crate) struct Dashboard {
    reloader: Arc<Reloader>,
    cache: Cache,
    adviser: Arc<Adviser>,
    state: Mutex<State>,
    /// Wakes the sampler for a new viewer.
    joined: Notify,
}

/// What sampler and requests share. The lock is held for moments, never while somebody waits.
struct State {
    history: History,
    viewers: Vec<Viewer>,
    last: Option<Last>,
    has_ended: bool,
}

/// The last look.
struct Last {
    at: Instant,
    sample: Arc<Sample>,
}

struct Viewer {
    events: mpsc::Sender<Bytes>,
    /// Whether it has the history and the purges before it came.
    is_introduced: bool,
}

/// The reason for which nobody else may look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Full {
    Viewers,
    Ended,
}

impl Dashboard {
    pub(crate) fn new(reloader: Arc<Reloader>, cache: Cache, adviser: Arc<Adviser>) -> Self {
        let history = History::new(reloader.shared().metrics.started);
        let state = State { history, viewers: Vec::new(), last: None, has_ended: false };
        Self { reloader, cache, adviser, state: Mutex::new(state), joined: Notify::new() }
    }

    /// Samples until `ending` says true.
    pub(crate) async fn run(self: Arc<Self>, mut ending: watch::Receiver<bool>) {
        tokio::select! {
            // An error means that the server is gone.
            _ = ending.wait_for(|ends| *ends) => {}
            () = self.sample() => {}
        }
        let mut state = self.lock();
        state.has_ended = true;
        state.viewers.clear();
    }

    /// The events for one more viewer.
    ///
    /// # Errors
    /// [`Full`].
    fn join(&self) -> Result<Body, Full> {
        let mut state = self.lock();
        state.viewers.retain(|viewer| !viewer.events.is_closed());
        if state.has_ended || state.viewers.len() >= VIEWERS_MAX {
            return Err(if state.has_ended { Full::Ended } else { Full::Viewers });
        }
        let (events, receiver) = mpsc::channel(EVENTS_MAX);
        state.viewers.push(Viewer { events, is_introduced: false });
        self.joined.notify_one();
        Ok(Body::pieces(receiver))
    }

    /// What there is to see now; `None` if the thread that looks has panicked, and logged it.
    async fn look(&self) -> Option<Arc<Sample>> {
        let (shared, cache) = (self.reloader.shared(), self.cache.clone());
        let last = self.lock().last.as_ref().map(|last| (last.at, Arc::clone(&last.sample)));
        let slow = match last {
            Some((at, sample)) if at.elapsed() < FRESH => return Some(sample),
            last => last.map(|(_, sample)| Arc::clone(&sample.slow)),
        };
        let slow = slow.filter(|slow| slow.at.elapsed() < EVERY_SLOW);
        let looking = tokio::task::spawn_blocking(move || {
            let slow = slow.unwrap_or_else(|| Arc::new(Slow::of(&shared, &cache)));
            Sample::of(&shared, &cache, slow)
        });
        let mut sample = looking.await.ok()?;
        let mut state = self.lock();
        sample.windows = state.history.windows(&sample.point);
        state.history.push(sample.point.clone());
        let sample = Arc::new(sample);
        state.last = Some(Last { at: Instant::now(), sample: Arc::clone(&sample) });
        Some(sample)
    }

    async fn sample(&self) {
        let (mut aged, mut purge) = (Instant::now(), 0);
        // Kept over purges, however many there are.
        let mut next = Instant::now() + EVERY_UNSEEN;
        // Not the configuration, which a reload replaces.
        let metrics = Arc::clone(&self.reloader.shared().metrics);
        let feed = &metrics.purges;
        loop {
            tokio::select! {
                () = tokio::time::sleep_until(next.into()) => {
                    next = Instant::now() + self.tick(feed).await;
                }
                () = self.joined.notified() => {
                    if let Some(sample) = self.look().await {
                        self.introduce(&sample, feed);
                    }
                    next = next.min(Instant::now() + EVERY);
                }
                () = feed.news.notified() => {}
            }
            purge = self.tell_purges(feed, purge);
            if aged.elapsed() >= AGE_EVERY {
                metrics.age_missed();
                aged = Instant::now();
            }
        }
    }

    /// Looks, and tells all viewers. Returns the time until the next look.
    async fn tick(&self, feed: &Feed) -> Duration {
        if self.lock().viewers.is_empty() {
            // The history needs no more.
            let metrics = &self.reloader.shared().metrics;
            let point = Point::now(metrics, &metrics.totals());
            self.lock().history.push(point);
            return EVERY_UNSEEN;
        }
        let Some(sample) = self.look().await else { return EVERY };
        self.introduce(&sample, feed);
        let event = event("sample", &*sample);
        self.lock().viewers.retain(|viewer| viewer.events.try_send(event.clone()).is_ok());
        EVERY
    }

    /// Tells new viewers what was before them.
    fn introduce(&self, sample: &Sample, feed: &Feed) {
        let mut state = self.lock();
        let State { viewers, history, .. } = &mut *state;
        if viewers.iter().all(|viewer| viewer.is_introduced) {
            return;
        }
        let before =
            [event("history", &history.points()), event("purges", &feed.since(0)), event("sample", sample)].concat();
        let before = Bytes::from(before);
        for viewer in viewers.iter_mut().filter(|viewer| !viewer.is_introduced) {
            viewer.is_introduced = true;
            // It has room: this is its first event.
            let _ = viewer.events.try_send(before.clone());
        }
    }

    /// Tells the viewers of the purges behind the one with this number. Returns the last number.
    fn tell_purges(&self, feed: &Feed, last: u64) -> u64 {
        let news = feed.since(last);
        let Some(number) = news.last().map(|noted| noted.number) else { return last };
        let event = event("purges", &news);
        self.lock().viewers.retain(|viewer| !viewer.is_introduced || viewer.events.try_send(event.clone()).is_ok());
        number
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An event of a stream (HTML, section 9.2.6). JSON has no line ends.
fn event(name: &str, data: &impl Serialize) -> Bytes {
    // Numbers and strings always have a JSON form.
    format!("event: {name}\ndata: {}\n\n", serde_json::to_string(data).unwrap_or_default()).into()
}
