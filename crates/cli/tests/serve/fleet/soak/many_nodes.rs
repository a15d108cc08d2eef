//! Fleets of several sizes on one machine: that purges reach all nodes, and what a node costs as the fleet grows.

use std::time::{Duration, Instant};

use super::super::patient;
use super::restartable::Restartable;
use super::{Dice, length, origin};
use crate::common::client::get;
use crate::common::redis::Redis;
use crate::common::relay::Relay;
use crate::common::server::anonymous_bytes;

const SIZES: [usize; 4] = [1, 5, 10, 20];
const IDLE: Duration = Duration::from_secs(5);
const PURGES: u32 = 100;

#[test]
fn purges_reach_all_nodes_of_small_and_large_fleets() {
    if length().is_none() {
        return;
    }
    let Some(redis) = Redis::start(&[]) else { return };
    let origin = origin(|_| ("Cache-Control: max-age=600".to_owned(), b"page".to_vec()));
    println!(
        "nodes, bytes a second and node without purges, bytes a purge and node, all nodes have a purge after (p50, p99), memory a node"
    );
    for size in SIZES {
        let relays: Vec<Relay> = (0..size).map(|_| Relay::to(redis.socket())).collect();
        let start = |relay: &Relay| {
            let fleet = format!("{}name = \"of-{size}\"\n", patient(&relay.url()));
            Restartable::start(&fleet, &origin.url())
        };
        let nodes: Vec<Restartable> = relays.iter().map(start).collect();
        let passed = || relays.iter().map(Relay::bytes).sum::<u64>();
        std::thread::sleep(Duration::from_secs(1));
        let before = passed();
        std::thread::sleep(IDLE);
        let idle = (passed() - before) as f64 / IDLE.as_secs_f64() / size as f64;
        let (mut dice, mut took) = (Dice(0x5eed), Vec::new());
        let (before, began) = (passed(), Instant::now());
        for _ in 0..PURGES {
            let [purger, other] = [0, 1].map(|_| &nodes[dice.below(size as u64) as usize]);
            let server = other.address().expect("it lives").1;
            while !get(server, "/a").is_hit() {}
            let start = Instant::now();
            purger.purge_and_wait(r#"{"url": "http://test/a"}"#);
            took.push(start.elapsed());
            assert!(!get(server, "/a").is_hit(), "the purge has not reached a node");
        }
        let purging = (passed() - before) as f64 / size as f64 - idle * began.elapsed().as_secs_f64();
        took.sort_unstable();
        let memory: u64 = nodes.iter().map(|node| anonymous_bytes(node.process().expect("it lives"))).sum();
        println!(
            "{size}, {idle:.0}, {:.0}, {:.1?}, {:.1?}, {:.1} MiB",
            purging / f64::from(PURGES),
            took[took.len() / 2],
            took[took.len() * 99 / 100],
            memory as f64 / size as f64 / f64::from(1 << 20),
        );
    }
}
