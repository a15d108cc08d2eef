//! A node that can't reach the log goes on alone, says so, and catches up.

use super::{Node, watchful};
use crate::common::client::Reply;
use crate::common::origin::Origin;
use crate::common::redis::Redis;

const FIELDS: &str = "Cache-Control: max-age=600, stale-while-revalidate=600\r\nETag: \"1\"";

#[test]
fn a_purge_that_the_log_does_not_get_counts_here_and_is_sent_later() {
    let Some(mut redis) = Redis::start(&[]) else { return };
    let origin = Origin::counting(FIELDS);
    let nodes = [(); 2].map(|()| Node::start(&watchful(&redis.url()), &origin.url()));
    for node in &nodes {
        node.store("/a");
    }
    redis.kill();
    let reply = nodes[0].server.ask("PURGE", "/a", &[]);
    assert_eq!(reply.status, 503, "{reply:?}");
    assert!(reply.text().contains("purged at this node, but the purge log"), "{reply:?}");
    assert!(nodes[0].server.get("/a").cache().contains("fwd=uri-miss"));
    let status = nodes[0].status();
    assert_eq!((&status["nodes"], &status["pending"]), (&serde_json::Value::Null, &1.into()), "{status}");
    assert!(status["trouble"].as_str().unwrap().contains("redis.sock"), "{status}");
    redis.restart();
    nodes[0].await_status(|status| status["pending"] == 0 && status["state"] == "following");
    redis.command_until("XLEN {eyewall}:lines", |line| line == ":1");
}

#[test]
fn a_node_that_is_cut_off_for_long_revalidates_until_it_is_back() {
    let Some(redis) = Redis::start(&[]) else { return };
    let origin = Origin::counting(FIELDS);
    let node = Node::start(&watchful(&redis.url()), &origin.url());
    node.store("/a");
    redis.hang();
    for _ in 0..2 {
        let reply = node.await_miss("/a");
        assert!(reply.cache().contains("fwd=stale"), "{reply:?}");
        // It serves what it has validated, but not for long.
        node.store("/a");
    }
    assert_eq!(node.status()["state"], "blind");
    redis.wake();
    let status = node.await_status(|status| status["state"] == "following");
    assert!(status["blind_ms"].as_u64().unwrap() > 0, "{status}");
    node.purge_and_wait(r#"{"everything": true}"#);
}

#[test]
fn a_server_starts_without_the_log_and_finds_it_later() {
    let Some(mut redis) = Redis::start(&[]) else { return };
    redis.kill();
    let origin = Origin::counting(FIELDS);
    let node = Node::start(&watchful(&redis.url()), &origin.url());
    assert_eq!(node.server.get("/a").status, 200);
    assert_eq!(node.status()["state"], "blind");
    redis.restart();
    node.await_status(|status| status["state"] == "following");
    node.server.get_until("/a", Reply::is_hit);
}
