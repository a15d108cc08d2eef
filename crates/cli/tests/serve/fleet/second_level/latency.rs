//! What misses cost with a second level that answers, that is slow, that is dead, and without one. `make soak PARTS=fleet` runs it, and
//! prints the figures.

use std::time::{Duration, Instant};

use super::{FIELDS, Node, node_beside, patient};
use crate::common::origin::{Origin, respond};
use crate::common::redis::Redis;
use crate::common::relay::{Relay, Weather};

/// How long the origin takes.
const ORIGIN: Duration = Duration::from_millis(20);
const SLOW: Duration = Duration::from_millis(100);
const ROUNDS: usize = 7;
/// Misses of a round. The second level has every second one.
const MISSES: usize = 200;

#[test]
fn misses_with_each_kind_of_second_level() {
    if std::env::var_os("EYEWALL_SOAK").is_none() {
        eprintln!("skipped: make soak PARTS=fleet measures");
        return;
    }
    let (Some(log), Some(level), Some(mut dead)) = (Redis::start(&[]), Redis::start(&[]), Redis::start(&[])) else {
        return;
    };
    let origin = Origin::raw(|_, stream| {
        std::thread::sleep(ORIGIN);
        respond(stream, 200, FIELDS, 10_000, &[b'x'; 10_000]);
    });
    let relay = Relay::to(level.socket());
    let maker = node_beside(&log.url(), &level.url(), &origin.url());
    let beside = |level: &str| {
        let more = format!("[fleet.second_level]\nredis = [\"{level}\"]\n");
        Node::with(&patient(&log.url()), &origin.url(), &more)
    };
    let nodes = [
        ("none", Node::start(&patient(&log.url()), &origin.url())),
        ("answers", beside(&level.url())),
        ("slow", beside(&relay.url())),
        ("dead", beside(&dead.url())),
    ];
    relay.set(Weather { delay: SLOW, ..Weather::default() });
    dead.kill();
    let mut rounds = nodes.each_ref().map(|_| Vec::new());
    for round in 0..ROUNDS {
        let before = maker.level()["stored"].as_u64().unwrap();
        for number in (0..MISSES).step_by(2) {
            maker.store(&format!("/{round}/{number}"));
        }
        maker.await_level(|level| level["stored"].as_u64().unwrap() >= before + MISSES as u64 / 2);
        for ((_, node), rounds) in nodes.iter().zip(&mut rounds) {
            rounds.push(misses(node, round));
        }
    }
    for ((name, node), rounds) in nodes.iter().zip(&mut rounds) {
        let mut median = |of: fn(&Figures) -> f64| {
            rounds.sort_by(|one, other| of(one).total_cmp(&of(other)));
            of(&rounds[ROUNDS / 2])
        };
        let (rate, middle, high) =
            (median(|round| round.rate), median(|round| round.p50_ms), median(|round| round.p99_ms));
        println!("second level {name}: {rate:.1} misses/s, p50 {middle:.2} ms, p99 {high:.2} ms; {}", node.level());
    }
}

struct Figures {
    rate: f64,
    p50_ms: f64,
    p99_ms: f64,
}

fn misses(node: &Node, round: usize) -> Figures {
    let start = Instant::now();
    let mut took: Vec<f64> = (0..MISSES)
        .map(|number| {
            let asked = Instant::now();
            let reply = node.server.get(&format!("/{round}/{number}"));
            assert!(reply.status == 200 && !reply.is_hit(), "{reply:?}");
            asked.elapsed().as_secs_f64() * 1000.0
        })
        .collect();
    let rate = MISSES as f64 / start.elapsed().as_secs_f64();
    took.sort_by(f64::total_cmp);
    Figures { rate, p50_ms: took[MISSES / 2], p99_ms: took[MISSES * 99 / 100] }
}
