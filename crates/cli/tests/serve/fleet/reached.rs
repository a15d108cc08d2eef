//! A purge at one node reaches all, whatever it is and however it was asked for.

use super::{Node, patient};
use crate::common::admin::json;
use crate::common::command::{eyewall, run};
use crate::common::origin::Origin;
use crate::common::redis::Redis;

const FIELDS: &str = "Cache-Control: max-age=600\r\nETag: \"1\"\r\nXkey: post-7";

#[test]
fn each_kind_of_purge_reaches_all_nodes() {
    let Some(redis) = Redis::start(&[]) else { return };
    let origin = Origin::counting(FIELDS);
    let nodes = [(); 3].map(|()| Node::start(&patient(&redis.url()), &origin.url()));
    let purger = &nodes[0];
    for (subject, spares) in [
        (r#""url": "http://test/shop/a""#, Some("/b")),
        (r#""tag": "post-7""#, None),
        (r#""tag": "post-7", "host": "test""#, None),
        (r#""prefix": "http://test/shop/""#, Some("/b")),
        (r#""host": "test""#, None),
        (r#""everything": true"#, None),
    ] {
        for (soft, why) in [("", "fwd=uri-miss"), (r#", "soft": true"#, "fwd=stale")] {
            for node in &nodes {
                node.store("/shop/a");
                node.store("/b");
            }
            purger.purge_and_wait(&format!("{{{subject}{soft}}}"));
            for node in &nodes {
                assert!(spares.is_none_or(|spared| node.is_hit(spared)), "{subject}");
                let reply = node.server.get("/shop/a");
                assert!(reply.cache().contains(why), "{subject}{soft}: {reply:?}");
            }
        }
    }
}

#[test]
fn a_client_and_the_command_reach_all_nodes_too() {
    let Some(redis) = Redis::start(&[]) else { return };
    let origin = Origin::counting(FIELDS);
    let nodes = [(); 2].map(|()| Node::start(&patient(&redis.url()), &origin.url()));
    nodes[1].store("/a");
    let reply = nodes[0].server.ask("PURGE", "/a", &["X-Purge-Wait: applied"]);
    assert_eq!((reply.status, json(&reply)["fleet"]["applied"].as_bool()), (200, Some(true)), "{reply:?}");
    assert!(!nodes[1].is_hit("/a"));
    nodes[1].store("/a");
    let line = json(&nodes[0].server.ask("PURGE", "/a", &[]))["fleet"]["line"].as_u64().unwrap();
    assert_eq!(line, 2);
    nodes[1].await_miss("/a");
    nodes[1].store("/a");
    let mut command = eyewall();
    command.args(["purge", "--wait", "--tag", "post-7", "--server"]).arg(nodes[0].admin.path());
    let ended = run(&mut command, b"");
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    assert!(ended.text().ends_with("applied by all live nodes of the fleet\n"), "{}", ended.text());
    assert!(!nodes[1].is_hit("/a"));
}

#[test]
fn a_wrong_purge_reaches_nobody() {
    let Some(redis) = Redis::start(&[]) else { return };
    let origin = Origin::counting(FIELDS);
    let node = Node::start(&patient(&redis.url()), &origin.url());
    assert_eq!(node.admin.purge(r#"{"url": "nowhere"}"#).status, 400);
    assert_eq!(node.admin.ask("POST", "/purge?wait=long", &[], r#"{"host": "test"}"#).status, 400);
    assert_eq!(node.server.ask("PURGE", "/a", &["X-Purge-Wait: long"]).status, 400);
    assert_eq!(redis.command("EXISTS {eyewall}:lines"), ":0");
}

#[test]
fn fleets_of_different_names_share_nothing_but_the_server() {
    let Some(redis) = Redis::start(&[]) else { return };
    let origin = Origin::counting(FIELDS);
    let [one, other] =
        ["one", "other"].map(|name| Node::start(&format!("{}name = \"{name}\"", patient(&redis.url())), &origin.url()));
    other.store("/a");
    one.purge_and_wait(r#"{"everything": true}"#);
    // Once the node's own purge is there, an earlier one would be, too.
    other.purge_and_wait(r#"{"url": "http://test/b"}"#);
    assert!(other.is_hit("/a"));
}
