//! Redis is gone for long. Each node serves alone, and catches up when Redis is back.

use std::thread;
use std::time::{Duration, Instant};

use super::super::Node;
use super::{length, origin};
use crate::common::load::{self, Counts, Load};
use crate::common::redis::Redis;

const NODES: usize = 3;
/// Requests a second to each node.
const RATE: u32 = 100;
const PURGE_EVERY: Duration = Duration::from_secs(5);

#[test]
fn no_request_fails_while_redis_is_gone() {
    let Some(length) = length() else { return };
    let Some(mut redis) = Redis::start(&["--appendonly", "yes"]) else { return };
    let origin = origin(|asked| {
        let life = if asked.target.starts_with("/page/") { "max-age=3600" } else { "no-store" };
        (format!("Cache-Control: {life}"), load::body(&asked.target))
    });
    let fleet = format!("redis = [\"{}\"]\n", redis.url());
    let nodes = [(); NODES].map(|()| Node::start(&fleet, &origin.url()));
    let loads = nodes.iter().map(|node| Load::start(4, RATE, load::clear(node.server.address)));
    let loads: Vec<Load> = loads.collect();
    nodes[0].purge_and_wait(r#"{"everything": true}"#);
    redis.kill();
    let (began, mut purges) = (Instant::now(), 0);
    while began.elapsed() < length {
        let body = format!(r#"{{"url": "http://test/page/{}"}}"#, purges % load::PAGES);
        assert_eq!(nodes[purges as usize % NODES].admin.purge(&body).status, 503);
        purges += 1;
        thread::sleep(PURGE_EVERY.min(length.saturating_sub(began.elapsed())));
    }
    let blind = nodes.iter().filter(|node| node.status()["state"] == "blind").count();
    redis.restart();
    let back = Instant::now();
    for node in &nodes {
        node.await_status(|status| {
            status["state"] == "following" && status["pending"] == 0 && status["line"].as_u64() > Some(purges)
        });
    }
    let took = back.elapsed();
    nodes[0].purge_and_wait(r#"{"everything": true}"#);
    let counts = loads.into_iter().map(Load::end).fold(Counts::default(), Counts::and);
    println!(
        "Redis gone for {:.0?}: {} requests, {} failed; {purges} purges waited at {NODES} nodes, {blind} of them blind; all nodes followed \
         and had all purges {took:.2?} after its return",
        back - began,
        counts.requests,
        counts.failures
    );
    assert_eq!(counts.failures, 0, "{:?}", counts.told);
}
