//! The counters of a site in one worker.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use http::header::CONTENT_LENGTH;
use http::{Request, Response, StatusCode};
use http_body::Body;

use super::{Asked, NO_SITE, ThreadCounters};
use crate::key::Scheme;
use crate::serve::follow::{Followers, Seen, SeenRequest};
use crate::serve::outcome::{CLIENT_GONE, Outcome, Verdict};
use crate::serve::proxy::fast_path::FastHit;
use crate::serve::sample::Candidate;
use crate::serve::shared::Shared;
use crate::sites::Site;

/// The statuses that are counted by themselves. Others count as `1xx` to `5xx`, so that no origin can make endless series.
const STATUSES: [u16; 37] = [
    200, 201, 202, 204, 206, 301, 302, 303, 304, 307, 308, 400, 401, 402, 403, 404, 405, 406, 408, 409, 410, 412, 413,
    415, 416, 417, 421, 422, 429, 431, 499, 500, 501, 502, 503, 504, 508,
];
/// The classes of statuses, by their first digit.
pub(super) const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];
const STATUS_PLACES: usize = STATUSES.len() + CLASSES.len();
/// The place of each status.
const PLACES: [u8; 600] = places();

/// The upper bounds of a histogram's buckets, as they are written and in nanoseconds. Hits in memory take microseconds, and origins
/// may take a minute.
pub(super) const BOUNDS: [(&str, u64); 19] = [
    ("0.00005", 50_000),
    ("0.0001", 100_000),
    ("0.00025", 250_000),
    ("0.0005", 500_000),
    ("0.001", 1_000_000),
    ("0.0025", 2_500_000),
    ("0.005", 5_000_000),
    ("0.01", 10_000_000),
    ("0.025", 25_000_000),
    ("0.05", 50_000_000),
    ("0.1", 100_000_000),
    ("0.25", 250_000_000),
    ("0.5", 500_000_000),
    ("1.0", 1_000_000_000),
    ("2.5", 2_500_000_000),
    ("5.0", 5_000_000_000),
    ("10.0", 10_000_000_000),
    ("30.0", 30_000_000_000),
    ("60.0", 60_000_000_000),
];

/// A number that one thread adds to, and any thread reads. Nothing else depends on it, so it needs no ordering, and because there
/// is one writer, adding is a load and a store. If several threads write one, all of them call [`Counter::add_shared`].
#[derive(Default)]
pub(crate) struct Counter(AtomicU64);

/// Requests and the bytes of their bodies.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) requests: Counter,
    pub(super) bytes: Counter,
}

/// How long something took, in buckets.
#[derive(Default)]
pub(super) struct Histogram {
    /// Of each bound, not of those below it; then of longer times.
    buckets: [Counter; BOUNDS.len() + 1],
    nanoseconds: Counter,
}

/// What one worker has counted for one site. Its worker writes, and the thread of a scrape reads. It fills cache lines of its own: workers
/// on other cores write the blocks beside it. (x86-64 fetches lines in pairs.)
#[repr(align(128))]
pub(crate) struct SiteCounters {
    answers: [Tally; Verdict::ALL.len() * STATUS_PLACES],
    pub(super) first_bytes: [Histogram; Verdict::ALL.len()],
    pub(super) collapsed: Counter,
    pub(super) remembered: Counter,
}

/// Where the bytes of a response are counted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place(u16);

/// A response that is counted, whose bytes are not all sent yet.
#[derive(Clone)]
pub(crate) struct Sent {
    counters: Arc<SiteCounters>,
    place: Place,
    /// If somebody follows.
    seen: Option<Arc<Seen>>,
}

/// A hit of the fast path: its first byte left after this time.
pub(crate) struct FastAnswer {
    status: StatusCode,
    time: Duration,
    /// Of its body.
    length: usize,
    /// The bytes of its body that have left.
    sent: usize,
}

/// A hit of the fast path that is counted, and followed until this is dropped.
pub(crate) struct CountedHit<'a> {
    counters: &'a Arc<SiteCounters>,
    place: Place,
    seen: Option<Arc<Seen>>,
}

/// The counters of a worker by one configuration.
pub(crate) struct Counters {
    thread: Arc<ThreadCounters>,
    /// In the order of the configuration.
    sites: Vec<Arc<SiteCounters>>,
    none: Arc<SiteCounters>,
    /// In the same order.
    labels: Vec<(Arc<str>, Arc<Site>)>,
    followers: Arc<Followers>,
    /// Whether anybody can ask for the sample and for the addresses that miss.
    has_admin: bool,
}

/// A request without a response so far. If it is dropped before it has one, its client is gone.
pub(crate) struct Unanswered<'a> {
    counters: &'a Counters,
    started: Instant,
    /// The number of its site, once that is known.
    pub(crate) site: Option<usize>,
    is_answered: bool,
    /// If somebody follows.
    seen: Option<Seen>,
    /// If it is in the sample.
    sampled: Option<Candidate>,
    /// Whether it counts for advice, if the cache has a part in it.
    is_for_advice: bool,
}

impl Counter {
    #[inline]
    pub(super) fn add(&self, count: u64) {
        self.0.store(self.get().wrapping_add(count), Ordering::Relaxed);
    }

    pub(super) fn add_shared(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Tally {
    fn add(&self, other: &Self) {
        self.requests.add(other.requests.get());
        self.bytes.add(other.bytes.get());
    }
}

impl Histogram {
    #[inline]
    fn observe(&self, time: Duration) {
        let (bucket, nanoseconds) = Self::place(time);
        self.buckets[bucket].add(1);
        self.nanoseconds.add(nanoseconds);
    }

    pub(super) fn observe_shared(&self, time: Duration) {
        let (bucket, nanoseconds) = Self::place(time);
        self.buckets[bucket].add_shared(1);
        self.nanoseconds.add_shared(nanoseconds);
    }

    #[inline]
    fn place(time: Duration) -> (usize, u64) {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        // Most times are those of hits, which are in the first bucket.
        (BOUNDS.iter().position(|(_, bound)| nanoseconds <= *bound).unwrap_or(BOUNDS.len()), nanoseconds)
    }

    fn add(&self, other: &Self) {
        self.buckets.iter().zip(&other.buckets).for_each(|(sum, one)| sum.add(one.get()));
        self.nanoseconds.add(other.nanoseconds.get());
    }

    /// How many there were up to each bound, and of all times.
    pub(super) fn cumulative(&self) -> [u64; BOUNDS.len() + 1] {
        let mut sum = 0;
        self.buckets.each_ref().map(|bucket| {
            sum += bucket.get();
            sum
        })
    }

    pub(super) fn count(&self) -> u64 {
        self.buckets.iter().map(Counter::get).sum()
    }

    pub(super) fn seconds(&self) -> f64 {
        self.nanoseconds.get() as f64 / 1e9
    }
}

impl Default for SiteCounters {
    fn default() -> Self {
        Self {
            answers: std::array::from_fn(|_| Tally::default()),
            first_bytes: std::array::from_fn(|_| Histogram::default()),
            collapsed: Counter::default(),
            remembered: Counter::default(),
        }
    }
}

impl SiteCounters {
    /// Counts a hit of the fast path whose first byte left after this time.
    #[inline]
    pub(super) fn hit(&self, status: StatusCode, time: Duration) -> Place {
        self.count(Verdict::Hit, status.as_u16(), time)
    }

    /// Counts a response whose head is ready after this time.
    fn answered<B>(&self, response: &Response<B>, outcome: &Outcome<'_>, time: Duration) -> Place {
        self.collapsed.add(outcome.is_collapsed.into());
        self.remembered.add(outcome.is_remembered.into());
        self.count(outcome.verdict, response.status().as_u16(), time)
    }

    #[inline]
    fn count(&self, verdict: Verdict, status: u16, time: Duration) -> Place {
        self.first_bytes[verdict as usize].observe(time);
        let place = place(verdict, status);
        self.answers[usize::from(place.0)].requests.add(1);
        place
    }

    /// Counts bytes of a body that the system has taken.
    #[inline]
    pub(super) fn sent(&self, Place(place): Place, bytes: usize) {
        self.answers[usize::from(place)].bytes.add(bytes as u64);
    }

    pub(super) fn add(&self, other: &Self) {
        self.answers.iter().zip(&other.answers).for_each(|(sum, one)| sum.add(one));
        self.first_bytes.iter().zip(&other.first_bytes).for_each(|(sum, one)| sum.add(one));
        self.collapsed.add(other.collapsed.get());
        self.remembered.add(other.remembered.get());
    }

    /// The responses, by verdict and status. Those that never were are left out, except for the usual status of each verdict: a series
    /// has to be there before its first request, or its first rate is missing.
    pub(super) fn answers(&self) -> impl Iterator<Item = (Verdict, Status, &Tally)> {
        let all = self.answers.iter().enumerate().map(|(place, tally)| {
            let (verdict, status) = (Verdict::ALL[place / STATUS_PLACES], Status(place % STATUS_PLACES));
            (verdict, status, tally)
        });
        all.filter(|(verdict, status, tally)| tally.requests.get() > 0 || status.is_usual_of(*verdict))
    }
}

/// A status that is counted by itself, or a class of others.
pub(super) struct Status(usize);

impl Status {
    fn is_usual_of(&self, verdict: Verdict) -> bool {
        let usual = match verdict {
            Verdict::None => None,
            Verdict::Error => Some(502),
            _ => Some(200),
        };
        usual.is_some() && STATUSES.get(self.0).copied() == usual
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match STATUSES.get(self.0) {
            Some(status) => write!(formatter, "{status}"),
            None => formatter.write_str(CLASSES[self.0 - STATUSES.len()]),
        }
    }
}

impl Sent {
    fn new(counters: &Arc<SiteCounters>, place: Place, seen: Option<Arc<Seen>>) -> Self {
        Self { counters: Arc::clone(counters), place, seen }
    }

    /// Counts bytes of the body that the system has taken.
    pub(crate) fn sent(&self, bytes: usize) {
        self.counters.sent(self.place, bytes);
        if let Some(seen) = &self.seen {
            seen.sent(bytes);
        }
    }
}

impl FastAnswer {
    /// The answer by this hit, of whose body so many bytes have left.
    #[inline]
    pub(crate) fn of(hit: &FastHit<'_>, sent: usize) -> Self {
        let time = hit.looked_up.elapsed().unwrap_or_default();
        Self { status: hit.status, time, length: hit.hit.len(), sent }
    }
}

impl CountedHit<'_> {
    /// To count the bytes that have not left yet.
    pub(crate) fn into_sent(self) -> Sent {
        Sent::new(self.counters, self.place, self.seen)
    }
}

impl Counters {
    /// Counters of a worker, which begin with zero.
    pub(crate) fn new(shared: &Shared) -> Self {
        Self::with(shared.metrics.thread(), shared)
    }

    /// The same ones by another configuration.
    pub(crate) fn renewed(&self, shared: &Shared) -> Self {
        Self::with(Arc::clone(&self.thread), shared)
    }

    fn with(thread: Arc<ThreadCounters>, shared: &Shared) -> Self {
        let named = shared.sites.iter().map(|shared| (shared.site.label().into(), Arc::clone(&shared.site)));
        let labels: Vec<(Arc<str>, Arc<Site>)> = named.collect();
        let sites = labels.iter().map(|(label, _)| thread.site(label)).collect();
        let (followers, has_admin) = (Arc::clone(&shared.metrics.followers), shared.config.server.admin.is_some());
        let none = thread.site(NO_SITE);
        Self { thread, sites, none, labels, followers, has_admin }
    }

    /// The counters of the site of this number.
    #[inline]
    pub(crate) fn site(&self, number: Option<usize>) -> &Arc<SiteCounters> {
        number.and_then(|number| self.sites.get(number)).unwrap_or(&self.none)
    }

    /// Begins to count a request of this client.
    pub(crate) fn begin<'r>(&self, request: impl FnOnce() -> SeenRequest<'r>, client: IpAddr) -> Unanswered<'_> {
        let (started, followers, request) = (Instant::now(), &self.followers, request());
        let seen = followers.are_there().then(|| Seen::new(followers, request, client, started));
        let is_read = matches!(request.method, "GET" | "HEAD");
        let sampled = if is_read { self.sampled(request) } else { None };
        let is_for_advice = is_read && self.has_admin;
        Unanswered { counters: self, started, site: None, is_answered: false, seen, sampled, is_for_advice }
    }

    /// Counts a hit of the fast path.
    #[inline]
    pub(crate) fn hit<'r>(
        &self,
        request: impl FnOnce() -> SeenRequest<'r>,
        (client, site): (IpAddr, Option<usize>),
        FastAnswer { status, time, length, sent }: FastAnswer,
    ) -> CountedHit<'_> {
        let (counters, request) = (self.site(site), request());
        if let Some((label, site)) = site.and_then(|site| self.labels.get(site)).filter(|_| self.has_admin) {
            self.thread.sample.count();
            if let Some(candidate) = self.sampled(request) {
                self.thread.sample.hit(&candidate, (label, &site.key), length, time);
            }
        }
        let place = counters.hit(status, time);
        counters.sent(place, sent);
        let seen = self.followers.are_there().then(|| {
            let now = Instant::now();
            let mut seen = Seen::new(&self.followers, request, client, now.checked_sub(time).unwrap_or(now));
            self.name_site(&mut seen, site);
            seen.answered_by_hit(status, time);
            seen.sent(sent);
            Arc::new(seen)
        });
        CountedHit { counters, place, seen }
    }

    /// The request, if it is in the sample.
    #[inline]
    fn sampled(&self, request: SeenRequest<'_>) -> Option<Candidate> {
        let unit = self.has_admin.then(|| self.thread.sample.sampled(request.host, request.target))??;
        Some(Candidate::new(unit, request.host, request.target))
    }

    fn name_site(&self, seen: &mut Seen, site: Option<usize>) {
        if let Some((label, _)) = site.and_then(|site| self.labels.get(site)) {
            seen.belongs_to(label);
        }
    }

    /// The address of a request, if it is to be noted in case that it misses.
    pub(crate) fn asked<B>(&self, request: &Request<B>, scheme: Scheme) -> Option<Asked> {
        self.has_admin.then(|| Asked::of(request, scheme))
    }

    /// Notes an address for which an origin was asked, if the outcome says so.
    pub(crate) fn note_missed(&self, asked: Option<&Asked>, outcome: &Outcome<'_>) {
        let has_missed =
            matches!(outcome.verdict, Verdict::Miss | Verdict::Pass | Verdict::Revalidated | Verdict::Error);
        if let Some(asked) = asked.filter(|_| has_missed && !outcome.is_collapsed) {
            self.thread.missed.count(asked);
        }
    }

    /// Counts bytes that were not a request, and were refused with this status.
    pub(crate) fn refused(&self, status: StatusCode) {
        self.none.count(Verdict::None, status.as_u16(), Duration::ZERO);
    }
}

impl Unanswered<'_> {
    /// Whether somebody follows it.
    pub(crate) fn is_followed(&self) -> bool {
        self.seen.is_some()
    }

    /// `origin` is the time that it waited for its origin, if that is known.
    pub(crate) fn answered<B: Body>(
        mut self,
        response: &Response<B>,
        outcome: &Outcome<'_>,
        origin: Option<Duration>,
    ) -> Sent {
        self.is_answered = true;
        let counters = self.counters.site(self.site);
        let time = self.started.elapsed();
        let place = counters.answered(response, outcome, time);
        let site = self.site.and_then(|site| self.counters.labels.get(site));
        let is_of_cache = self.is_for_advice && outcome.verdict != Verdict::None;
        if let Some((label, site)) = site.filter(|_| is_of_cache) {
            let sample = &self.counters.thread.sample;
            sample.count();
            if let Some(candidate) = self.sampled.take() {
                let answer = (response.headers(), whole_length(response));
                sample.answered(&candidate, (label, &site.key), answer, outcome, time);
            }
        }
        let seen = self.seen.take().map(|mut seen| {
            self.counters.name_site(&mut seen, self.site);
            seen.answered(response.status(), outcome, origin);
            Arc::new(seen)
        });
        Sent::new(counters, place, seen)
    }
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        if !self.is_answered {
            self.counters.site(self.site).count(Verdict::None, CLIENT_GONE, self.started.elapsed());
            if let Some(seen) = &mut self.seen {
                self.counters.name_site(seen, self.site);
            }
        }
    }
}

/// The length of the whole body of which this response may have a part, if it says it.
fn whole_length<B: Body>(response: &Response<B>) -> Option<u64> {
    if matches!(response.status(), StatusCode::NOT_MODIFIED | StatusCode::PARTIAL_CONTENT) {
        return None;
    }
    let told = response.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    told.or_else(|| response.body().size_hint().exact())
}

#[inline]
fn place(verdict: Verdict, status: u16) -> Place {
    let status = PLACES.get(usize::from(status)).copied().unwrap_or(STATUS_PLACES as u8 - 1);
    Place((verdict as usize * STATUS_PLACES) as u16 + u16::from(status))
}

const fn places() -> [u8; 600] {
    let mut places = [0; 600];
    let mut status = 0;
    while status < places.len() {
        // There is no status below 100.
        let class = if status < 100 { 0 } else { status / 100 - 1 };
        places[status] = (STATUSES.len() + class) as u8;
        status += 1;
    }
    let mut place = 0;
    while place < STATUSES.len() {
        places[STATUSES[place] as usize] = place as u8;
        place += 1;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_status_has_its_place_and_others_their_class() {
        for (status, label) in [(200, "200"), (508, "508"), (103, "1xx"), (299, "2xx"), (418, "4xx"), (999, "5xx")] {
            let Place(place) = place(Verdict::None, status);
            assert_eq!(Status(usize::from(place) % STATUS_PLACES).to_string(), label);
            assert_eq!(Verdict::ALL[usize::from(place) / STATUS_PLACES], Verdict::None);
        }
    }

    #[test]
    fn verdicts_are_numbered_in_their_order() {
        assert!(Verdict::ALL.iter().enumerate().all(|(number, verdict)| *verdict as usize == number));
    }

    #[test]
    fn a_time_is_in_the_first_bucket_that_holds_it() {
        let histogram = Histogram::default();
        for micros in [0, 50, 51, 2_500_000, 61_000_000] {
            histogram.observe(Duration::from_micros(micros));
        }
        let cumulative = histogram.cumulative();
        assert_eq!((cumulative[0], cumulative[1], cumulative[13], cumulative[14]), (2, 3, 3, 4));
        assert_eq!((cumulative[BOUNDS.len() - 1], cumulative[BOUNDS.len()]), (4, 5));
        assert!((histogram.seconds() - 63.500_101).abs() < 1e-9);
    }
}
