//! The nodes that this one may ask, and how they are doing.
//!
//! ```text
//! unknown ──alive──> up ──a failure──> suspect ──another one──> down ──alive──> up
//!                     ^                   │ alive
//!                     └───────────────────┘
//! ```
//! A node that is down or unknown is the home of no key. It is asked for a sign of life all the time, so it comes back by itself.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use eyewall_fleet::home::{Candidate, Name, choose};
use serde::Serialize;
use tokio::sync::Notify;

use super::ask::PeerError;

/// After this many failures in a row, a node is down.
const FAILURES_MAX: usize = 2;
/// So many sites with other settings are named.
const SITES_MAX: usize = 16;
/// The state of a node that has not answered yet, as a number of failures.
const UNKNOWN: usize = usize::MAX;

/// A node.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) url: String,
    name: Name,
    /// This node itself.
    pub(crate) is_self: bool,
    /// Failures in a row.
    failures: AtomicUsize,
    load: AtomicUsize,
    /// Notified when it goes down.
    fell: Notify,
    last: Mutex<Last>,
}

/// What the last answers of a node tell, for operators.
#[derive(Debug, Default)]
struct Last {
    /// The last failure since it was alive.
    trouble: Option<(Why, String)>,
    /// Whether some settings of sites are others there.
    has_other_settings: bool,
    /// Sites that are known to be among them, by their names.
    other_sites: BTreeSet<String>,
}

/// Why a node isn't asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Why {
    /// No connection, or no TLS, to its address.
    Unreachable,
    /// It doesn't answer in time.
    Slow,
    /// It doesn't have the fleet's key, or knows itself by another address.
    Key,
    /// Its clock differs.
    Clock,
    /// It doesn't follow the purge log.
    Blind,
    /// It has too many questions.
    Busy,
    /// It refused, for another reason.
    Refused,
    /// This version can't read its answers.
    Unreadable,
}

impl Why {
    /// The reason for which a node refused a question, by its word for it (`sign::Refused::word`).
    pub(super) fn of_refusal(word: Option<&str>) -> Self {
        match word {
            Some("key") => Self::Key,
            Some("clock") => Self::Clock,
            _ => Self::Refused,
        }
    }
}

/// The state of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum MemberState {
    Unknown,
    Up,
    Suspect,
    Down,
}

/// A request that is under way to a node.
#[derive(Debug)]
pub(crate) struct UnderWay(Arc<Member>);

impl Member {
    pub(super) fn new(url: &str, is_self: bool) -> Arc<Self> {
        let failures = AtomicUsize::new(if is_self { 0 } else { UNKNOWN });
        let (url, name, load) = (url.to_owned(), Name::new(url), AtomicUsize::new(0));
        Arc::new(Self { url, name, is_self, failures, load, fell: Notify::new(), last: Mutex::default() })
    }

    pub(crate) fn state(&self) -> MemberState {
        match self.failures.load(Ordering::Relaxed) {
            0 => MemberState::Up,
            UNKNOWN => MemberState::Unknown,
            failures if failures < FAILURES_MAX => MemberState::Suspect,
            _ => MemberState::Down,
        }
    }

    /// It has answered.
    pub(super) fn is_alive(&self) {
        self.last().trouble = None;
        let before = self.failures.swap(0, Ordering::Relaxed);
        if before >= FAILURES_MAX && before != UNKNOWN {
            tracing::warn!(peer = self.url, "a node of the fleet answers again");
        }
    }

    /// It has not answered in time, or refused to.
    pub(super) fn fails(&self, error: &PeerError) {
        self.tells(error);
        let add = |failures: usize| if failures == UNKNOWN { None } else { Some((failures + 1).min(UNKNOWN - 1)) };
        if self.failures.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add) == Ok(FAILURES_MAX - 1) {
            tracing::warn!(peer = self.url, %error, "a node of the fleet does not answer; others stand in for it");
            self.fell.notify_waiters();
        }
    }

    /// Keeps an error for operators.
    pub(super) fn tells(&self, error: &PeerError) {
        self.last().trouble = Some((error.why(), error.to_string()));
    }

    /// Whether its settings of a site are those of this node.
    pub(crate) fn has_settings(&self, site: &str, are_same: bool) {
        let mut last = self.last();
        if are_same {
            last.other_sites.remove(site);
        } else if last.other_sites.len() < SITES_MAX {
            last.has_other_settings = true;
            last.other_sites.insert(site.to_owned());
        }
    }

    /// The same for all sites together.
    pub(super) fn has_all_settings(&self, are_same: bool) {
        let mut last = self.last();
        last.has_other_settings = !are_same;
        if are_same {
            last.other_sites.clear();
        }
    }

    /// Its last failure since it was alive.
    pub(super) fn trouble(&self) -> Option<(Why, String)> {
        self.last().trouble.clone()
    }

    /// The known sites whose settings are others there. `None`: all sites have the same.
    pub(super) fn other_settings(&self) -> Option<Vec<String>> {
        let last = self.last();
        last.has_other_settings.then(|| last.other_sites.iter().cloned().collect())
    }

    fn last(&self) -> MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until it is down.
    pub(super) async fn down(&self) {
        loop {
            // Registers before the look at the state, so no change is missed.
            let mut fell = pin!(self.fell.notified());
            fell.as_mut().enable();
            if self.state() == MemberState::Down {
                return;
            }
            fell.await;
        }
    }

    /// Counts a request.
    pub(crate) fn enter(self: &Arc<Self>) -> UnderWay {
        self.load.fetch_add(1, Ordering::Relaxed);
        UnderWay(Arc::clone(self))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.load.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The home of a key among the nodes that answer.
pub(super) fn home(members: &[Arc<Member>], key: &[u8]) -> Option<Arc<Member>> {
    let usable = |member: &&Arc<Member>| matches!(member.state(), MemberState::Up | MemberState::Suspect);
    let usable: Vec<&Arc<Member>> = members.iter().filter(usable).collect();
    let candidate = |member: &&Arc<Member>| (member.load.load(Ordering::Relaxed), Arc::clone(member));
    let loads: Vec<_> = usable.iter().map(candidate).collect();
    let mut candidates = Vec::with_capacity(loads.len());
    for (load, member) in &loads {
        candidates.push(Candidate { name: &member.name, load: *load, is_self: member.is_self });
    }
    choose(key, &candidates).map(|place| Arc::clone(&loads[place].1))
}

/// How long nodes took to give a sign of life, as far back as some requests.
#[derive(Debug)]
pub(super) struct Delays {
    last: Mutex<(usize, [u32; Self::COUNT])>,
    /// In milliseconds.
    hedge: AtomicU64,
}

impl Delays {
    const COUNT: usize = 128;
    /// After this time without a sign of life, the origin is asked, too: at least and at most.
    const HEDGE: (u64, u64) = (20, 1000);

    pub(super) fn new() -> Self {
        // Before anything is known.
        Self { last: Mutex::new((0, [100; Self::COUNT])), hedge: AtomicU64::new(100) }
    }

    pub(super) fn note(&self, delay: Duration) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let (count, delays) = &mut *last;
        delays[*count % Self::COUNT] = u32::try_from(delay.as_millis()).unwrap_or(u32::MAX);
        *count += 1;
        if count.is_multiple_of(16) {
            let mut sorted = *delays;
            sorted.sort_unstable();
            let p95 = u64::from(sorted[Self::COUNT * 95 / 100]);
            self.hedge.store(p95.clamp(Self::HEDGE.0, Self::HEDGE.1), Ordering::Relaxed);
        }
    }

    /// Begins to wait for a sign of life.
    pub(super) fn wait(&self) -> Wait<'_> {
        Wait { delays: self, begun: Instant::now(), is_over: false }
    }

    /// How long to wait for a sign of life.
    pub(super) fn hedge(&self, member: &Member) -> Duration {
        let is_up = member.state() == MemberState::Up;
        Duration::from_millis(if is_up { self.hedge.load(Ordering::Relaxed) } else { Self::HEDGE.0 })
    }
}

/// The wait for a sign of life. If the origin answers first, it is dropped, and the sign of life would have taken longer than that. If only
/// those that came in time counted, a hedge that is too short would never grow.
#[derive(Debug)]
pub(super) struct Wait<'a> {
    delays: &'a Delays,
    begun: Instant,
    is_over: bool,
}

impl Wait<'_> {
    /// The sign of life has come.
    pub(super) fn answered(mut self) {
        self.is_over = true;
        self.delays.note(self.begun.elapsed());
    }

    /// There will be none.
    pub(super) fn failed(mut self) {
        self.is_over = true;
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        let waited = self.begun.elapsed();
        // Before the hedge, only the client can have given up.
        if !self.is_over && waited >= Duration::from_millis(self.delays.hedge.load(Ordering::Relaxed)) {
            self.delays.note(waited);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_goes_down_after_two_failures_and_comes_back() {
        let (own, other) = (Member::new("http://a", true), Member::new("http://b", false));
        let members = [Arc::clone(&own), Arc::clone(&other)];
        let homes = || (0..50u8).filter(|key| home(&members, &[*key]).unwrap().url == "http://b").count();
        assert_eq!((other.state(), homes()), (MemberState::Unknown, 0));
        other.fails(&PeerError::Late);
        assert_eq!(other.state(), MemberState::Unknown, "it has not been there yet");
        other.is_alive();
        assert!(other.state() == MemberState::Up && homes() > 10);
        other.fails(&PeerError::Late);
        assert!(other.state() == MemberState::Suspect && homes() > 10);
        other.fails(&PeerError::Late);
        assert_eq!((other.state(), homes()), (MemberState::Down, 0));
        other.is_alive();
        assert_eq!(other.state(), MemberState::Up);
    }

    #[test]
    fn a_busy_home_is_passed_over() {
        let members = ["http://a", "http://b"].map(|url| Member::new(url, false));
        for member in &members {
            member.is_alive();
        }
        let first = home(&members, b"key").unwrap();
        let under_way: Vec<_> = (0..20).map(|_| first.enter()).collect();
        assert_ne!(home(&members, b"key").unwrap().url, first.url);
        let own = members.clone().map(|member| Member::new(&member.url, member.url == first.url));
        for other in own.iter().filter(|member| !member.is_self) {
            other.is_alive();
        }
        let own_home = home(&own, b"key").unwrap();
        let _own_under_way: Vec<_> = (0..20).map(|_| own_home.enter()).collect();
        assert_eq!(home(&own, b"key").unwrap().url, first.url, "no node passes itself over");
        drop(under_way);
        assert_eq!(home(&members, b"key").unwrap().url, first.url);
    }

    #[tokio::test]
    async fn who_waits_for_a_node_hears_that_it_is_down() {
        let member = Member::new("http://a", false);
        member.is_alive();
        let waits = tokio::spawn({
            let member = Arc::clone(&member);
            async move { member.down().await }
        });
        tokio::task::yield_now().await;
        member.fails(&PeerError::Late);
        assert!(!waits.is_finished());
        member.fails(&PeerError::Late);
        waits.await.unwrap();
        member.down().await;
    }

    #[test]
    fn the_wait_follows_what_was_seen() {
        let (delays, member) = (Delays::new(), Member::new("http://a", true));
        assert_eq!(delays.hedge(&member), Duration::from_millis(100));
        for _ in 0..256 {
            delays.note(Duration::from_millis(1));
        }
        assert_eq!(delays.hedge(&member), Duration::from_millis(20));
        for _ in 0..256 {
            delays.note(Duration::from_secs(7));
        }
        assert_eq!(delays.hedge(&member), Duration::from_secs(1));
    }

    #[test]
    fn a_wait_that_was_given_up_counts_as_at_least_the_hedge() {
        let (delays, member) = (Delays::new(), Member::new("http://a", true));
        for _ in 0..256 {
            delays.note(Duration::from_millis(1));
        }
        for _ in 0..256 {
            drop(delays.wait());
        }
        assert_eq!(delays.hedge(&member), Duration::from_millis(20), "a client that goes away at once tells nothing");
        let origin_wins = Duration::from_millis(30);
        for _ in 0..256 {
            let wait =
                Wait { delays: &delays, begun: Instant::now().checked_sub(origin_wins).unwrap(), is_over: false };
            drop(wait);
        }
        assert!(delays.hedge(&member) >= origin_wins, "the next ones wait longer for the sign of life");
    }
}
