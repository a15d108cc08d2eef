//! The log is gone, or some of it. Purges may be missing, so all nodes revalidate what they have.

use super::{Node, assert_revalidated_and_purged, patient};
use crate::common::origin::Origin;
use crate::common::redis::Redis;

const FIELDS: &str = "Cache-Control: max-age=600, stale-while-revalidate=600\r\nETag: \"1\"";

#[test]
fn after_a_restart_without_its_data_everything_is_revalidated_and_purges_work() {
    let Some(mut redis) = Redis::start(&[]) else { return };
    let origin = Origin::counting(FIELDS);
    let nodes = [(); 2].map(|()| Node::start(&patient(&redis.url()), &origin.url()));
    nodes[0].purge_and_wait(r#"{"url": "http://test/a"}"#);
    for node in &nodes {
        node.store("/a");
    }
    redis.kill();
    redis.restart();
    for node in &nodes {
        let reply = node.await_miss("/a");
        assert!(reply.cache().contains("fwd=stale"), "it is revalidated before it is sent: {reply:?}");
        node.await_status(|status| status["gaps"] == 1 && status["state"] == "following");
        node.store("/a");
    }
    nodes[1].purge_and_wait(r#"{"url": "http://test/a"}"#);
    assert!(!nodes[0].is_hit("/a"));
}

#[test]
fn an_emptied_server_is_noticed_though_the_connections_stay() {
    let Some(redis) = Redis::start(&[]) else { return };
    let origin = Origin::counting(FIELDS);
    let nodes = [(); 2].map(|()| Node::start(&patient(&redis.url()), &origin.url()));
    for _ in 0..3 {
        nodes[0].purge_and_wait(r#"{"url": "http://test/b"}"#);
    }
    for node in &nodes {
        node.store("/a");
    }
    assert_eq!(redis.command("FLUSHALL"), "+OK");
    assert_revalidated_and_purged(&nodes, "/a");
}

#[test]
fn lines_that_nobody_can_read_or_that_do_not_follow_are_gaps() {
    let origin = Origin::counting(FIELDS);
    for before in ["\"\"", "other"] {
        let Some(redis) = Redis::start(&[]) else { return };
        let node = Node::start(&patient(&redis.url()), &origin.url());
        node.store("/a");
        let reign = node.status()["reign"].as_str().unwrap().to_owned();
        assert_eq!(redis.command(&format!("HSET {{eyewall}}:state number 1 written_in {reign}")), ":2");
        redis.command(&format!("XADD {{eyewall}}:lines 1-0 r {reign} b {before} w later p later"));
        assert!(node.await_miss("/a").cache().contains("fwd=stale"), "{before}");
        node.await_status(|status| status["state"] == "following" && status["gaps"] == 1);
    }
}
