//! Very many purges over the log while clients read: what becomes of hits, and how far nodes lag behind.

use std::io::BufReader;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::super::patient;
use super::restartable::Restartable;
use super::{length, origin};
use crate::common::client::get;
use crate::common::load;
use crate::common::redis::Redis;

const PURGES_A_MINUTE: u32 = 100_000;
const PURGERS: u32 = 8;
const READERS: u32 = 4;
/// Of all readers together, at each node.
const READS_A_SECOND: u32 = 400;
const ROUND: Duration = Duration::from_secs(5);
/// Pages that are read. No purge names them.
const PAGES: u64 = 50;
/// Pages that are stored before each round with purges, and purged in it.
const PURGED: std::ops::Range<u64> = 1..TAG_EACH;
/// One purge of so many is of a tag.
const TAG_EACH: u64 = 50;

/// What the threads of a round share.
#[derive(Default)]
struct Round {
    has_ended: AtomicBool,
    /// The last line that was answered.
    line: AtomicU64,
    purges: AtomicU64,
    took: Mutex<Vec<Duration>>,
    lost_hits: AtomicU64,
}

impl Round {
    fn goes_on(&self) -> bool {
        !self.has_ended.load(Ordering::Relaxed)
    }

    /// Calls at a pace until the end.
    fn at(&self, pace: Duration, first: Duration, mut call: impl FnMut()) {
        let mut due = Instant::now() + first;
        while self.goes_on() {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            call();
            due += pace;
        }
    }

    /// Purges addresses, and a tag from time to time.
    fn purge(&self, server: SocketAddr, purger: u32) {
        let mut connection = BufReader::new(load::clear(server)().expect("the server listens"));
        let pace = Duration::from_mins(1) * PURGERS / PURGES_A_MINUTE;
        let mut number = u64::from(purger);
        self.at(pace, pace * purger / PURGERS, || {
            number += u64::from(PURGERS);
            let is_tag = number.is_multiple_of(TAG_EACH);
            let fields = if is_tag { format!("Xkey: tag-{}\r\n", number % 5000) } else { String::new() };
            let asked = load::ask(&mut connection, &format!("PURGE /cold/{}", number % 1000), &fields);
            let (status, _, body) = asked.expect("purges go on");
            assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
            let report: serde_json::Value = serde_json::from_slice(&body).expect("it is JSON");
            self.line.fetch_max(report["fleet"]["line"].as_u64().expect("it has a line"), Ordering::Relaxed);
            self.purges.fetch_add(1, Ordering::Relaxed);
        });
    }

    fn read(&self, server: SocketAddr, reader: u32) {
        let mut connection = BufReader::new(load::clear(server)().expect("the server listens"));
        let pace = Duration::from_secs(1) * READERS / READS_A_SECOND;
        let (mut number, mut took) = (u64::from(reader), Vec::new());
        self.at(pace, pace * reader / READERS, || {
            number += 1;
            let start = Instant::now();
            let asked = load::ask(&mut connection, &format!("GET /page/{}", number % PAGES), "");
            took.push(start.elapsed());
            let (status, fields, _) = asked.expect("reads go on");
            assert_eq!(status, 200);
            let is_hit = fields.get("cache-status").is_some_and(|field| field.starts_with("Eyewall; hit"));
            self.lost_hits.fetch_add(u64::from(!is_hit), Ordering::Relaxed);
        });
        self.took.lock().expect("nobody panics with it").append(&mut took);
    }
}

/// The results of a round.
#[derive(Debug, Clone, Copy)]
struct Outcome {
    middle: Duration,
    high: Duration,
    lag: Duration,
    purges: u64,
}

/// One round. The first node is purged at, both are read from.
fn round(nodes: &[Restartable; 2], has_purges: bool) -> Outcome {
    let round = Arc::new(Round::default());
    let mut threads = Vec::new();
    for node in nodes {
        for reader in 0..READERS {
            let (round, server) = (Arc::clone(&round), server(node));
            threads.push(thread::spawn(move || round.read(server, reader)));
        }
    }
    for purger in 0..if has_purges { PURGERS } else { 0 } {
        let (round, server) = (Arc::clone(&round), server(&nodes[0]));
        threads.push(thread::spawn(move || round.purge(server, purger)));
    }
    let (began, mut lag) = (Instant::now(), Duration::ZERO);
    while began.elapsed() < ROUND {
        let (line, answered) = (round.line.load(Ordering::Relaxed), Instant::now());
        if has_purges {
            await_line(&nodes[1], line);
            lag = lag.max(answered.elapsed());
        }
        thread::sleep(Duration::from_millis(50));
    }
    round.has_ended.store(true, Ordering::Relaxed);
    for thread in threads {
        thread.join().expect("it doesn't panic");
    }
    assert_eq!(round.lost_hits.load(Ordering::Relaxed), 0, "no purge covers these pages");
    let mut took = std::mem::take(&mut *round.took.lock().expect("nobody panics with it"));
    took.sort_unstable();
    let percentile = |percent: usize| took[took.len() * percent / 100];
    let purges = round.purges.load(Ordering::Relaxed);
    Outcome { middle: percentile(50), high: percentile(99), lag, purges }
}

fn server(node: &Restartable) -> SocketAddr {
    node.address().expect("it lives").1
}

fn store(node: &Restartable, target: &str) {
    while !get(server(node), target).is_hit() {}
}

fn await_line(node: &Restartable, line: u64) {
    while node.status()["line"].as_u64() < Some(line) {
        thread::sleep(Duration::from_millis(5));
    }
}

fn median(outcomes: &[Outcome], of: impl Fn(&Outcome) -> Duration) -> Duration {
    let mut all: Vec<Duration> = outcomes.iter().map(of).collect();
    all.sort_unstable();
    all[all.len() / 2]
}

#[test]
fn very_many_purges_are_all_applied_beside_hits() {
    let Some(length) = length() else { return };
    let Some(redis) = Redis::start(&[]) else { return };
    let origin = origin(|asked| ("Cache-Control: max-age=3600".to_owned(), load::body(&asked.target)));
    let nodes = [(); 2].map(|()| Restartable::start(&patient(&redis.url()), &origin.url()));
    for node in &nodes {
        for page in 0..PAGES {
            store(node, &format!("/page/{page}"));
        }
    }
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for _ in 0..(length.as_secs() / (2 * ROUND.as_secs())).max(1) {
        without.push(round(&nodes, false));
        for page in PURGED {
            store(&nodes[1], &format!("/cold/{page}"));
        }
        with.push(round(&nodes, true));
        await_line(&nodes[1], nodes[0].status()["line"].as_u64().expect("it has a line"));
        for page in PURGED {
            assert!(!get(server(&nodes[1]), &format!("/cold/{page}")).is_hit(), "the purge of page {page} was lost");
        }
        let (one, other) = (without.last(), with.last());
        println!("without purges {one:?}; with {other:?}");
    }
    let purges: u64 = with.iter().map(|outcome| outcome.purges).sum();
    assert_eq!((nodes[1].status()["line"].as_u64(), &nodes[1].status()["gaps"]), (Some(purges), &0.into()));
    let rate = purges as f64 / (with.len() as f64 * ROUND.as_secs_f64()) * 60.0;
    let factor =
        median(&with, |outcome| outcome.high).as_secs_f64() / median(&without, |outcome| outcome.high).as_secs_f64();
    println!(
        "{rate:.0} purges a minute, {purges} in all; lag at most {:.1?} (medians of {} rounds each: hits p50 {:.2?} without, {:.2?} with; \
         p99 {:.2?} without, {:.2?} with, factor {factor:.2})",
        with.iter().map(|outcome| outcome.lag).max().unwrap_or_default(),
        with.len(),
        median(&without, |outcome| outcome.middle),
        median(&with, |outcome| outcome.middle),
        median(&without, |outcome| outcome.high),
        median(&with, |outcome| outcome.high),
    );
}
