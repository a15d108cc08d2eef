//! Sentinel names the server, and replaces it when it dies.

use super::{Node, assert_revalidated_and_purged, password_file, patient};
use crate::common::origin::{Origin, nobody};
use crate::common::redis::Redis;

#[test]
fn nodes_follow_the_server_that_sentinel_names() {
    let [port, replica_port, sentinel_port] = [(); 3].map(|()| nobody().port().to_string());
    let secret = ["--requirepass", "secret", "--masterauth", "secret", "--bind", "127.0.0.1", "--port"];
    let Some(mut master) = Redis::start(&[&secret[..], &[&port]].concat()) else { return };
    let replicates = ["--replicaof", "127.0.0.1", &port, "--repl-diskless-sync-delay", "0"];
    let Some(replica) = Redis::start(&[&secret[..], &[&replica_port], &replicates].concat()) else { return };
    master.command_until("WAIT 1 100", |line| line == ":1");
    let lines = format!(
        "port {sentinel_port}\nbind 127.0.0.1\nsentinel monitor mymaster 127.0.0.1 {port} 1\nsentinel auth-pass mymaster secret\n\
         sentinel down-after-milliseconds mymaster 300\nsentinel failover-timeout mymaster 3000\n"
    );
    let sentinel = Redis::sentinel(&lines, Some("other"));
    // It asks servers for their replicas every ten seconds, and at the start.
    sentinel.command_until("SENTINEL REPLICAS mymaster", |line| line == "*1");

    let origin = Origin::counting("Cache-Control: max-age=600\r\nETag: \"1\"");
    let folder = tempfile::tempdir().unwrap();
    let fleet = format!(
        "{}password_file = \"{}\"\nsentinel_password_file = \"{}\"\n",
        patient(&format!("redis+sentinel://127.0.0.1:{sentinel_port}/mymaster")),
        password_file(folder.path(), "secret"),
        password_file(folder.path(), "other")
    );
    let nodes = [(); 2].map(|()| Node::start(&fleet, &origin.url()));
    assert_eq!(nodes[0].status()["server"], format!("redis://127.0.0.1:{port}"));
    nodes[0].purge_and_wait(r#"{"url": "http://test/b"}"#);
    for node in &nodes {
        node.store("/a");
    }
    master.kill();
    for node in &nodes {
        node.await_status(|status| status["server"] == format!("redis://127.0.0.1:{replica_port}"));
    }
    assert_revalidated_and_purged(&nodes, "/a");
    drop(replica);
}

#[test]
fn a_sentinel_that_knows_no_such_server_is_reported() {
    let port = nobody().port().to_string();
    let Some(_redis) = Redis::start(&[]) else { return };
    let _sentinel = Redis::sentinel(&format!("port {port}\nbind 127.0.0.1\n"), None);
    let origin = Origin::counting("");
    let fleet = super::watchful(&format!("redis+sentinel://127.0.0.1:{port}/other"));
    let node = Node::start(&fleet, &origin.url());
    let status = node.await_status(|status| status["trouble"].is_string());
    assert!(status["trouble"].as_str().unwrap().contains("knows no server `other`"), "{status}");
}
