//! How long a purge takes to reach the last of five nodes. `make soak PARTS=fleet` runs it, and prints the figures.

use std::io::{BufReader, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::{Node, patient};
use crate::common::load;
use crate::common::origin::{self, Origin};
use crate::common::redis::Redis;

const NODES: usize = 5;
const PURGES: usize = 1000;

/// An origin that answers the present version, on connections that stay open.
fn versioned(version: Arc<AtomicU64>) -> Origin {
    Origin::silent(move |stream| {
        let Ok(mut requests) = stream.try_clone().map(BufReader::new) else { return };
        while origin::read(&mut requests).is_some() {
            let body = version.load(Ordering::SeqCst).to_string();
            let fields = format!("Cache-Control: max-age=600\r\nXkey: post-7\r\nContent-Length: {}", body.len());
            // Eyewall may have closed it, and then asks again.
            let _ = stream.write_all(format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n{body}").as_bytes());
        }
    })
}

#[test]
fn a_purge_of_a_tag_reaches_the_last_node() {
    if std::env::var_os("EYEWALL_SOAK").is_none() {
        eprintln!("skipped: make soak PARTS=fleet measures");
        return;
    }
    let Some(redis) = Redis::start(&[]) else { return };
    let version = Arc::new(AtomicU64::new(0));
    let origin = versioned(Arc::clone(&version));
    let nodes = [(); NODES].map(|()| Node::start(&patient(&redis.url()), &origin.url()));
    let mut clients = nodes.each_ref().map(|node| {
        node.store("/a");
        BufReader::new(load::clear(node.server.address)().expect("the server listens"))
    });
    let (mut answered, mut took) = (Vec::with_capacity(PURGES), Vec::with_capacity(PURGES));
    for number in 1..=PURGES {
        version.store(number as u64, Ordering::SeqCst);
        let wanted = number.to_string().into_bytes();
        let start = Instant::now();
        let (status, _, body) = load::ask(&mut clients[0], "PURGE /a", "Xkey: post-7\r\n").expect("it answers");
        answered.push(start.elapsed());
        assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
        for client in &mut clients {
            while load::ask(client, "GET /a", "").expect("it answers").2 != wanted {}
        }
        took.push(start.elapsed());
        for client in &mut clients {
            let (_, fields, _) = load::ask(client, "GET /a", "").expect("it answers");
            assert!(fields["cache-status"].starts_with("Eyewall; hit"), "{fields:?}");
        }
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
