//! A Redis that answers, but not as it should.

use std::time::Duration;

use super::{Node, patient, watchful};
use crate::common::origin::Origin;
use crate::common::redis::Redis;
use crate::common::relay::{Relay, Weather};

const FIELDS: &str = "Cache-Control: max-age=600\r\nETag: \"1\"";

#[test]
fn a_server_without_memory_is_as_one_that_is_not_there() {
    let Some(redis) = Redis::start(&[]) else { return };
    let origin = Origin::counting(FIELDS);
    let node = Node::start(&watchful(&redis.url()), &origin.url());
    node.store("/a");
    assert_eq!(redis.command("CONFIG SET maxmemory 1"), "+OK");
    let reply = node.server.ask("PURGE", "/a", &[]);
    assert!(reply.status == 503 && reply.text().contains("OOM"), "{reply:?}");
    assert!(node.server.get("/a").cache().contains("fwd=uri-miss"), "the purge counts here");
    node.await_status(|status| status["state"] == "blind");
    assert_eq!(redis.command("CONFIG SET maxmemory 0"), "+OK");
    node.await_status(|status| status["state"] == "following" && status["pending"] == 0);
    redis.command_until("XLEN {eyewall}:lines", |line| line == ":1");
}

#[test]
fn a_server_that_has_lost_its_scripts_gets_them_again() {
    let Some(redis) = Redis::start(&[]) else { return };
    let origin = Origin::counting(FIELDS);
    let nodes = [(); 2].map(|()| Node::start(&patient(&redis.url()), &origin.url()));
    for node in &nodes {
        node.store("/a");
    }
    assert_eq!(redis.command("SCRIPT FLUSH"), "+OK");
    nodes[0].purge_and_wait(r#"{"url": "http://test/a"}"#);
    nodes[1].await_miss("/a");
    redis.command_until("XLEN {eyewall}:lines", |line| line == ":1");
    for node in &nodes {
        assert_eq!(node.status()["gaps"], 0);
    }
}

#[test]
fn a_slow_server_delays_purges_and_nothing_else() {
    let Some(redis) = Redis::start(&[]) else { return };
    let origin = Origin::counting(FIELDS);
    let relay = Relay::to(redis.socket());
    let nodes = [relay.url(), redis.url()].map(|url| Node::start(&patient(&url), &origin.url()));
    relay.set(Weather { delay: Duration::from_millis(100), ..Weather::default() });
    for node in &nodes {
        node.store("/a");
    }
    for node in &nodes {
        node.purge_and_wait(r#"{"url": "http://test/b"}"#);
    }
    nodes[0].purge_and_wait(r#"{"url": "http://test/a"}"#);
    assert!(!nodes[1].is_hit("/a"));
    for node in &nodes {
        let status = node.status();
        assert_eq!((&status["state"], &status["gaps"]), (&"following".into(), &0.into()), "{status}");
    }
}
