//! Only nodes with the fleet's key may ask, and no request goes round in a circle.

use std::time::SystemTime;

use super::{Node, Peers, is_of_peer, key_file, settings};
use crate::common::admin::ask_at;
use crate::common::origin::{Asked, Origin};
use crate::common::redis::Redis;

#[test]
fn a_node_with_another_key_gets_nothing() {
    let Some(redis) = Redis::start(&[]) else { return };
    let origin = Origin::counting("Cache-Control: max-age=600");
    let site = format!("origins = [\"{}\"]", origin.url());
    let folder = tempfile::tempdir().unwrap();
    let right = Node::start(&settings(&redis, &key_file(&folder, "k"), "\"redis\""), &site);
    let wrong = Node::start(&settings(&redis, &key_file(&folder, "o"), "\"redis\""), &site);
    for node in [&right, &wrong] {
        node.await_peers(1, "unknown");
    }
    for number in 0..10 {
        for node in [&right, &wrong] {
            assert!(!is_of_peer(&node.get(&format!("/{number}"))));
        }
    }
    assert_eq!(origin.asked().len(), 20);
    let address = right.peer_url().strip_prefix("http://").unwrap().parse().unwrap();
    for (method, target, body, status) in
        [("GET", "/page0", "", 404), ("POST", "/purge", "{}", 404), ("POST", "/eyewall/peer/1", "question", 403)]
    {
        assert_eq!(ask_at(address, method, target, &["Host: x"], body).status, status, "{method} {target}");
    }
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis();
    for (signature, length, status) in [
        ("1 2 3".to_owned(), 10, 403),
        (format!("{now} 2 {}", "a".repeat(64)), 10, 403),
        (format!("{now} 2 {}", "a".repeat(64)), 20_000, 403),
        (format!("{now} 2 {}", "a".repeat(64)), 300_000, 400),
    ] {
        let fields = ["Host: x", &format!("Eyewall-Signature: {signature}")];
        let reply = ask_at(address, "POST", "/eyewall/peer/1", &fields, &"x".repeat(length));
        assert_eq!(reply.status, status, "{signature} {length}");
    }
}

#[test]
fn who_does_not_prove_that_it_has_the_key_is_asked_for_nothing() {
    let Some(redis) = Redis::start(&[]) else { return };
    let origin = Origin::counting("Cache-Control: max-age=600");
    // As a node answers that has nothing to give, but without the proof.
    let other = Origin::answering(|_| (200, String::new(), b"\x01\x02\x01\0\0\0\x03".to_vec()));
    let folder = tempfile::tempdir().unwrap();
    let fleet = settings(&redis, &key_file(&folder, "k"), &format!("[\"{}\"]", other.url()));
    let node = Node::start(&fleet, &format!("origins = [\"{}\"]", origin.url()));
    while other.asked().len() < 3 {
        node.get(&format!("/{}", other.asked().len()));
    }
    node.await_peers(1, "unknown");
    for number in 0..10 {
        assert!(!is_of_peer(&node.get(&format!("/page{number}"))));
    }
    let short = |asked: &Asked| asked.field("content-length") == "2";
    assert!(other.asked().iter().all(short), "it gets nothing of a client: {:?}", other.asked());
}

#[test]
fn a_request_that_comes_back_is_cut() {
    let Some(redis) = Redis::start(&[]) else { return };
    let origin = Origin::counting("Cache-Control: no-store");
    let peers = Peers::start(&redis, 2, &format!("origins = [\"{}\"]", origin.url()));
    let node = &peers.nodes[0];
    node.get("/a");
    let passed = origin.asked().last().unwrap().field("cdn-loop").to_owned();
    assert!(passed.starts_with("eyewall-"), "{passed}");
    let reply = node.server.ask("GET", "/b", &[&format!("CDN-Loop: other, {passed}; v=1")]);
    assert_eq!(reply.status, 508, "{reply:?}");
    assert!(origin.asked().iter().all(|asked| asked.target != "/b"));
    let reply = node.server.ask("GET", "/b", &["CDN-Loop: other"]);
    assert_eq!(reply.status, 200);
}
