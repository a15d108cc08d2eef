//! Purges at random nodes while everything fails that may fail. Nobody gets what was purged later than `max_blind` after.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::restartable::{Client, Restartable};
use super::{Dice, length, origin};
use crate::common::redis::Redis;
use crate::common::relay::{Relay, Weather};

const NODES: usize = 3;
const TAGS: usize = 20;
const PURGERS: usize = 4;
const MAX_BLIND: Duration = Duration::from_secs(4);
/// The pauses of purgers and checkers.
const PURGE_EVERY: Duration = Duration::from_millis(100);
const CHECK_EVERY: Duration = Duration::from_millis(2);

/// What a tag's pages must have.
#[derive(Default)]
struct Tag {
    version: AtomicU64,
    /// When a purge was answered that came after this version was there. Old ones are forgotten.
    answered: Mutex<VecDeque<(Instant, u64)>>,
}

#[derive(Default)]
struct Counts {
    answers: AtomicU64,
    purges: AtomicU64,
    refused: AtomicU64,
    /// The longest time after a purge was answered, in microseconds, at which a request for a page got an earlier one.
    latest_us: AtomicU64,
    violations: Mutex<Vec<String>>,
    failures: Mutex<Vec<String>>,
}

struct Storm {
    tags: Arc<Vec<Tag>>,
    nodes: Vec<Restartable>,
    has_ended: AtomicBool,
    counts: Counts,
}

impl Tag {
    fn purged(&self, version: u64) {
        let mut answered = self.answered.lock().expect("nobody panics with it");
        answered.push_back((Instant::now(), version));
        // Of those that everybody must know, one is enough.
        while answered.get(1).is_some_and(|(at, _)| at.elapsed() > 2 * MAX_BLIND) {
            answered.pop_front();
        }
    }

    /// How long before this moment the first purge was answered that an answer of this version contradicts.
    fn lateness(&self, asked: Instant, version: u64) -> Option<Duration> {
        let answered = self.answered.lock().expect("nobody panics with it");
        let (at, _) = answered.iter().find(|(_, purged)| *purged > version)?;
        asked.checked_duration_since(*at)
    }
}

impl Storm {
    fn goes_on(&self) -> bool {
        !self.has_ended.load(Ordering::Relaxed)
    }

    /// Purges the tags of its own, each at a random node.
    fn purge(&self, purger: usize) {
        let mut dice = Dice(purger as u64 + 77);
        let mut clients: Vec<Client> = self.nodes.iter().map(|_| Client::default()).collect();
        while self.goes_on() {
            let number = dice.below((TAGS / PURGERS) as u64) as usize * PURGERS + purger;
            let at = dice.below(NODES as u64) as usize;
            let version = self.tags[number].version.fetch_add(1, Ordering::SeqCst) + 1;
            let asked =
                clients[at].ask(&self.nodes[at], &format!("PURGE /{number}"), &format!("Xkey: tag-{number}\r\n"));
            match asked {
                Some(Ok((200, ..))) => {
                    self.tags[number].purged(version);
                    self.counts.purges.fetch_add(1, Ordering::Relaxed);
                }
                Some(Ok((503, ..))) => _ = self.counts.refused.fetch_add(1, Ordering::Relaxed),
                Some(other) => self.fail(format!("purge at node {at}: {other:?}")),
                None => {}
            }
            thread::sleep(PURGE_EVERY);
        }
    }

    /// Asks a node for all pages, again and again.
    fn check(&self, at: usize) {
        let mut client = Client::default();
        for number in (0..TAGS).cycle() {
            if !self.goes_on() {
                return;
            }
            let asked_at = Instant::now();
            match client.ask(&self.nodes[at], &format!("GET /{number}"), "") {
                Some(Ok((200, fields, body))) => {
                    let version = String::from_utf8(body).expect("it is text").parse().expect("it is a version");
                    self.counts.answers.fetch_add(1, Ordering::Relaxed);
                    if let Some(late) = self.tags[number].lateness(asked_at, version) {
                        self.counts.latest_us.fetch_max(late.as_micros() as u64, Ordering::Relaxed);
                        if late > MAX_BLIND {
                            let status = fields.get("cache-status");
                            let text =
                                format!("node {at}, tag {number}, version {version}: {late:?} after; {status:?}");
                            self.counts.violations.lock().expect("nobody panics with it").push(text);
                        }
                    }
                }
                Some(other) => self.fail(format!("page at node {at}: {other:?}")),
                None => {}
            }
            thread::sleep(CHECK_EVERY);
        }
    }

    fn fail(&self, what: String) {
        self.counts.failures.lock().expect("nobody panics with it").push(what);
    }
}

/// What fails next. Returns its name, once all is well again.
fn fault(dice: &mut Dice, redis: &mut Redis, relays: &[Relay], nodes: &[Restartable]) -> &'static str {
    let at = dice.below(NODES as u64) as usize;
    let most_ms = MAX_BLIND.as_millis() as u64 * 3 / 2;
    let while_ms = Duration::from_millis(dice.below(most_ms));
    let bad = |weather| {
        relays[at].set(weather);
        thread::sleep(while_ms);
        relays[at].set(Weather::default());
    };
    match dice.below(8) {
        0 => {
            relays[at].cut();
            "connections cut"
        }
        1 => {
            bad(Weather { is_closed: true, ..Weather::default() });
            "Redis not reached by one"
        }
        2 => {
            let delay = Duration::from_millis(dice.below(300));
            bad(Weather { delay, ..Weather::default() });
            "slow"
        }
        3 => {
            bad(Weather { stops_requests: true, ..Weather::default() });
            "no requests pass"
        }
        4 => {
            bad(Weather { stops_answers: true, ..Weather::default() });
            "no answers pass"
        }
        kind @ (5 | 6) => {
            redis.kill();
            thread::sleep(while_ms);
            if kind == 6 {
                redis.forget();
            }
            redis.restart();
            if kind == 5 { "Redis killed" } else { "Redis killed and emptied" }
        }
        _ => {
            nodes[at].kill();
            thread::sleep(while_ms);
            nodes[at].restart();
            "node killed"
        }
    }
}

#[test]
fn nobody_gets_what_was_purged_later_than_max_blind_after() {
    let Some(length) = length() else { return };
    let Some(mut redis) = Redis::start(&["--appendonly", "yes"]) else { return };
    // The origin lives longer than the nodes, so it has the tags alone.
    let tags: Arc<Vec<Tag>> = Arc::new((0..TAGS).map(|_| Tag::default()).collect());
    let asked = Arc::clone(&tags);
    let origin = origin(move |asked_for| {
        let number: usize = asked_for.target.trim_start_matches('/').parse().expect("it is a tag");
        let version = asked[number].version.load(Ordering::SeqCst);
        let fields = format!(
            "Cache-Control: max-age=600, stale-while-revalidate=600\r\nETag: \"{version}\"\r\nXkey: tag-{number}"
        );
        (fields, version.to_string().into_bytes())
    });
    let relays = [(); NODES].map(|()| Relay::to(redis.socket()));
    let start = |relay: &Relay| {
        let fleet = format!("redis = [\"{}\"]\nmax_blind = \"{}s\"\n", relay.url(), MAX_BLIND.as_secs());
        Restartable::start(&fleet, &origin.url())
    };
    let nodes = relays.iter().map(start).collect();
    let running = Arc::new(Storm { tags, nodes, has_ended: AtomicBool::new(false), counts: Counts::default() });
    let mut threads = Vec::new();
    for purger in 0..PURGERS {
        let running = Arc::clone(&running);
        threads.push(thread::spawn(move || running.purge(purger)));
    }
    for at in 0..NODES {
        let running = Arc::clone(&running);
        threads.push(thread::spawn(move || running.check(at)));
    }
    let (began, mut dice) = (Instant::now(), Dice(0x5eed));
    let mut faults = std::collections::BTreeMap::<_, u64>::new();
    while began.elapsed() < length {
        *faults.entry(fault(&mut dice, &mut redis, &relays, &running.nodes)).or_default() += 1;
        thread::sleep(Duration::from_millis(dice.below(2000)));
    }
    // After the last fault, all is well again.
    for node in &running.nodes {
        while node.status()["state"] != "following" {
            thread::sleep(Duration::from_millis(5));
        }
    }
    running.has_ended.store(true, Ordering::Relaxed);
    for thread in threads {
        thread.join().expect("it doesn't panic");
    }
    report(&running.counts, &faults, began.elapsed());
}

fn report(counts: &Counts, faults: &std::collections::BTreeMap<&str, u64>, length: Duration) {
    let count = |number: &AtomicU64| number.load(Ordering::Relaxed);
    let latest = Duration::from_micros(count(&counts.latest_us));
    println!(
        "{length:.0?} of faults: {} purges answered by 200, {} by 503; {} answers, an earlier version at most {latest:.2?} after a purge \
         (max_blind {MAX_BLIND:?}); faults: {faults:?}",
        count(&counts.purges),
        count(&counts.refused),
        count(&counts.answers),
    );
    for (what, list) in [("violations", &counts.violations), ("failures", &counts.failures)] {
        let list = list.lock().expect("nobody panics with it");
        assert!(list.is_empty(), "{} {what}: {:#?}", list.len(), &list[..list.len().min(20)]);
    }
}
