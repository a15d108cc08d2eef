//! A replica takes over.

use super::{Node, assert_revalidated_and_purged, patient};
use crate::common::origin::Origin;
use crate::common::redis::Redis;

const FIELDS: &str = "Cache-Control: max-age=600\r\nETag: \"1\"";

/// A server that listens at a free port, and a replica of it.
fn pair() -> Option<(Redis, Redis)> {
    // Redis itself has no port 0 that means any.
    for _ in 0..20 {
        let port = crate::common::origin::nobody().port();
        let master = Redis::start(&["--port", &port.to_string(), "--bind", "127.0.0.1"])?;
        let replica =
            Redis::start(&["--replicaof", "127.0.0.1", &port.to_string(), "--repl-diskless-sync-delay", "0"])?;
        if master.command("CONFIG GET port").starts_with('*') {
            replica.command_until("ROLE", |line| line.starts_with('*'));
            master.command_until("WAIT 1 100", |line| line == ":1");
            return Some((master, replica));
        }
    }
    None
}

fn fleet(master: &Redis, replica: &Redis, rest: &str) -> String {
    format!("redis = [\"{}\", \"{}\"]\nmax_blind = \"1m\"\n{rest}", replica.url(), master.url())
}

#[test]
fn with_a_durable_log_nodes_go_on_at_the_replica_as_if_nothing_had_happened() {
    let Some((mut master, replica)) = pair() else { return };
    let origin = Origin::counting(FIELDS);
    let settings = fleet(&master, &replica, "min_replicas = 1\ndurable = true\n");
    let nodes = [(); 2].map(|()| Node::start(&settings, &origin.url()));
    nodes[0].purge_and_wait(r#"{"url": "http://test/b"}"#);
    for node in &nodes {
        node.store("/a");
    }
    master.kill();
    assert_eq!(replica.command("REPLICAOF NO ONE"), "+OK");
    for node in &nodes {
        node.await_status(|status| status["server"].as_str() == Some(&replica.url()));
        assert!(node.is_hit("/a"));
        assert_eq!(node.status()["gaps"], 0);
    }
}

#[test]
fn without_one_nodes_revalidate_everything_after_a_failover() {
    let Some((mut master, replica)) = pair() else { return };
    let origin = Origin::counting(FIELDS);
    let nodes = [(); 2].map(|()| Node::start(&fleet(&master, &replica, ""), &origin.url()));
    nodes[0].purge_and_wait(r#"{"url": "http://test/b"}"#);
    for node in &nodes {
        node.store("/a");
    }
    master.kill();
    assert_eq!(replica.command("REPLICAOF NO ONE"), "+OK");
    assert_revalidated_and_purged(&nodes, "/a");
}

#[test]
fn a_purge_that_too_few_replicas_have_is_not_called_written() {
    let Some(redis) = Redis::start(&[]) else { return };
    let origin = Origin::counting(FIELDS);
    let settings = format!("{}min_replicas = 1\n", super::watchful(&redis.url()));
    let node = Node::start(&settings, &origin.url());
    let reply = node.server.ask("PURGE", "/a", &[]);
    assert!(reply.status == 503 && reply.text().contains("too few replicas"), "{reply:?}");
    assert_eq!(node.status()["state"], "blind");
}

#[test]
fn a_single_server_is_enough_for_a_patient_fleet() {
    let Some(redis) = Redis::start(&["--appendonly", "yes", "--appendfsync", "always"]) else { return };
    let mut redis = redis;
    let origin = Origin::counting(FIELDS);
    let node = Node::start(&format!("{}durable = true\n", patient(&redis.url())), &origin.url());
    node.purge_and_wait(r#"{"url": "http://test/b"}"#);
    node.store("/a");
    redis.kill();
    redis.restart();
    node.await_status(|status| status["server"].is_string());
    node.purge_and_wait(r#"{"url": "http://test/b"}"#);
    assert!(node.is_hit("/a"), "its log is whole after a restart");
}
