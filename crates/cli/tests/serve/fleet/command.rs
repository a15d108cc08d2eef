//! `eyewall fleet` shows the nodes.

use super::{Node, patient};
use crate::common::admin::Socket;
use crate::common::command::{Ended, eyewall, run};
use crate::common::origin::Origin;
use crate::common::redis::Redis;
use crate::common::server::Server;

fn fleet(admin: &Socket, words: &[&str]) -> Ended {
    run(eyewall().args(["fleet", "--server"]).arg(admin.path()).args(words), b"")
}

#[test]
fn each_node_has_a_line() {
    let Some(redis) = Redis::start(&[]) else { return };
    let origin = Origin::counting("Cache-Control: max-age=600");
    let nodes = ["web-1", "web-2"].map(|name| {
        Node::start(&format!("{}name = \"shop\"\nnode = \"{name}\"\n", patient(&redis.url())), &origin.url())
    });
    nodes[0].purge_and_wait(r#"{"everything": true}"#);
    nodes[1].await_status(|status| status["nodes"].as_array().is_some_and(|nodes| nodes.len() == 2));
    let ended = fleet(&nodes[1].admin, &[]);
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    let lines: Vec<&str> = ended.text().lines().collect();
    let [first, second] = [&nodes[0], &nodes[1]].map(|node| node.server.child.id());
    assert_eq!(lines[0], format!("fleet shop, seen from web-2 ({second}); purge log: {}", redis.url()));
    assert_eq!(lines[1], format!("web-1 ({first}): up to date, line 1"));
    assert!(lines[2].starts_with(&format!("web-2 ({second}): up to date, line 1, last purge ")), "{lines:?}");
    let shown: serde_json::Value = serde_json::from_slice(&fleet(&nodes[0].admin, &["--json"]).stdout).unwrap();
    assert_eq!((&shown["name"], &shown["nodes"][1]["node"]), (&"shop".into(), &"web-2".into()), "{shown}");
}

#[test]
fn a_server_without_a_fleet_says_so() {
    let admin = Socket::new();
    let origin = Origin::counting("");
    let _server = Server::configured(&format!("{}[[site]]\norigins = [\"{}\"]\n", admin.table(), origin.url()));
    let ended = fleet(&admin, &[]);
    assert_eq!(ended.code, 3);
    assert!(ended.stderr.contains("this server has no fleet"), "{}", ended.stderr);
}

#[test]
fn a_node_without_its_log_shows_the_reason() {
    let Some(mut redis) = Redis::start(&[]) else { return };
    let origin = Origin::counting("");
    let node = Node::start(&patient(&redis.url()), &origin.url());
    redis.kill();
    node.await_status(|status| status["server"].is_null());
    let ended = fleet(&node.admin, &[]);
    assert!(ended.text().contains("purge log: none can be reached\ntrouble: redis+unix://"), "{}", ended.text());
}
