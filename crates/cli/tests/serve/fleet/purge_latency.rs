//! How long a purge takes to reach the last of five nodes. `make soak PARTS=fleet` runs it, and prints the figures.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::{Node, patient};
use crate::common::origin::Origin;
use crate::common::redis::Redis;

const NODES: usize = 5;
const PURGES: usize = 1000;

#[test]
fn a_purge_of_a_tag_reaches_the_last_node() {
    if std::env::var_os("EYEWALL_SOAK").is_none() {
        eprintln!("skipped: make soak PARTS=fleet measures");
        return;
    }
    let Some(redis) = Redis::start(&[]) else { return };
    let version = Arc::new(AtomicU64::new(0));
    let seen = Arc::clone(&version);
    let origin = Origin::answering(move |_| {
        let body = seen.load(Ordering::SeqCst).to_string().into_bytes();
        (200, "Cache-Control: max-age=600\r\nXkey: post-7".to_owned(), body)
    });
    let nodes = [(); NODES].map(|()| Node::start(&patient(&redis.url()), &origin.url()));
    let (mut answered, mut took) = (Vec::with_capacity(PURGES), Vec::with_capacity(PURGES));
    for number in 1..=PURGES {
        for node in &nodes {
            node.store("/a");
        }
        version.store(number as u64, Ordering::SeqCst);
        let wanted = number.to_string();
        let start = Instant::now();
        let reply = nodes[0].server.ask("PURGE", "/a", &["Xkey: post-7"]);
        answered.push(start.elapsed());
        assert_eq!(reply.status, 200, "{reply:?}");
        for node in &nodes {
            node.server.get_until("/a", |reply| reply.text() == wanted);
        }
        took.push(start.elapsed());
    }
    show("purge of a tag to its answer", &mut answered);
    show("purge of a tag to the right answer of the last of 5 nodes", &mut took);
}

fn show(what: &str, took: &mut [Duration]) {
    took.sort_unstable();
    let percentile = |percent: usize| took[(took.len() * percent / 100).min(took.len() - 1)].as_secs_f64() * 1000.0;
    let [middle, high, most] = [50, 99, 100].map(percentile);
    println!("{what}: p50 {middle:.2} ms, p99 {high:.2} ms, most {most:.2} ms, {PURGES} purges");
}
