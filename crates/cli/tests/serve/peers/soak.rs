//! How many requests cold keys cost the origin, with peers and without.

use super::{Node, Peers};
use crate::common::origin::Origin;
use crate::common::redis::Redis;

const NODES: usize = 5;
const KEYS: usize = 10_000;
/// Several requests for each key, spread over the nodes.
const REQUESTS: usize = 70_000;
const CLIENTS: usize = 4;

/// A number that follows from another one (splitmix64).
fn mixed(word: u64) -> u64 {
    let word = word.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}

/// A key by Zipf's law with the exponent 1: the chance of key `k` is about 1 / (k + 1).
fn zipf(number: u64) -> usize {
    let share = (mixed(number) >> 11) as f64 / (1u64 << 53) as f64;
    ((KEYS as f64 + 1.0).powf(share) - 1.0) as usize
}

/// The number of requests to the origin for each key.
fn origin_requests(nodes: &[Node], origin: &Origin) -> f64 {
    let before = origin.asked().len();
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            scope.spawn(move || {
                // Every key at every node comes once at least; the rest is as popular as pages are.
                for number in (client..REQUESTS).step_by(CLIENTS) {
                    let every = number < KEYS * NODES;
                    let key = if every { number % KEYS } else { zipf(number as u64) };
                    let node = if every { number / KEYS } else { mixed(number as u64 ^ 1) as usize % NODES };
                    nodes[node].get(&format!("/{key}"));
                }
            });
        }
    });
    (origin.asked().len() - before) as f64 / KEYS as f64
}

#[test]
fn cold_keys_cost_the_origin_about_one_request_each() {
    if std::env::var_os("EYEWALL_SOAK").is_none() {
        return;
    }
    let Some(redis) = Redis::start(&[]) else { return };
    let origin = Origin::counting("Cache-Control: max-age=6000");
    let site = format!("origins = [\"{}\"]", origin.url());
    let peers = Peers::start(&redis, NODES, &site);
    let with = origin_requests(&peers.nodes, &origin);
    drop(peers);
    let fleet = format!("redis = [\"{}\"]\nname = \"other\"\nmax_blind = \"2m\"\n", redis.url());
    let nodes: Vec<Node> = (0..NODES).map(|_| Node::start(&fleet, &site)).collect();
    let without = origin_requests(&nodes, &origin);
    println!("{KEYS} cold keys at {NODES} nodes: {with:.3} origin requests a key with peers, {without:.3} without");
    assert!(with <= 1.05, "{with}");
}
