//! Only nodes with the fleet's key may ask, and no request goes round in a circle.

use std::time::SystemTime;

use super::{Node, Peers, is_of_peer, key_file, settings};
use crate::common::admin::ask_at;
use crate::common::origin::{Asked, Origin, read, respond};
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
        let peer = node.await_peer(|peer| peer["why"] == "key");
        assert!(peer["trouble"].as_str().unwrap().contains("different keys"), "{peer}");
    }
    let (shown, other) = (right.fleet(), wrong.peer_url());
    assert!(
        shown.contains(&format!("peer {other}: unknown, wrong key: it refused the question (403 Forbidden): ")),
        "{shown}"
    );
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
    node.await_peer(|peer| peer["why"] == "key");
    for number in 0..10 {
        assert!(!is_of_peer(&node.get(&format!("/page{number}"))));
    }
    let short = |asked: &Asked| asked.field("content-length") == "34";
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

#[test]
fn another_program_at_the_address_of_a_dead_node_is_no_node() {
    let Some(redis) = Redis::start(&[]) else { return };
    let origin = Origin::counting("Cache-Control: max-age=600");
    let site = format!("origins = [\"{}\"]", origin.url());
    let folder = tempfile::tempdir().unwrap();
    let key = key_file(&folder, "k");
    let mut dead = Node::start(&settings(&redis, &key, "[]"), &site);
    let url = dead.peer_url();
    let node = Node::start(&settings(&redis, &key, &format!("[\"{url}\"]")), &site);
    node.await_peers(2, "up");
    dead.server.child.kill().unwrap();
    dead.server.child.wait().unwrap();
    // It says that it is busy, as a node does that has too many questions.
    let address = url.strip_prefix("http://").unwrap().parse().unwrap();
    let _other = Origin::silent_at(address, |stream| {
        let _ = read(stream);
        respond(stream, 503, "Eyewall-Refused: busy", 4, b"busy");
    });
    let peer = node.await_peer(|peer| peer["state"] == "down" && peer["why"] == "refused");
    assert!(peer["trouble"].as_str().unwrap().contains("503"), "{peer}");
    assert!((0..10).all(|number| !is_of_peer(&node.get(&format!("/{number}")))));
}

#[test]
fn a_node_with_other_settings_of_a_site_is_named() {
    let Some(redis) = Redis::start(&[]) else { return };
    let origin = Origin::counting("Cache-Control: max-age=600");
    let folder = tempfile::tempdir().unwrap();
    let fleet = settings(&redis, &key_file(&folder, "k"), "\"redis\"");
    let site = |more: &str| format!("hosts = [\"test\"]\norigins = [\"{}\"]\n{more}", origin.url());
    let (node, other) = (Node::start(&fleet, &site("")), Node::start(&fleet, &site("key = { cookies = [\"lang\"] }")));
    let url = other.peer_url();
    node.await_peer(|peer| peer["state"] == "up" && peer["other_settings"].is_array());
    // Each page has one of the two as its home.
    assert!((0..20).all(|number| !is_of_peer(&node.get(&format!("/{number}")))));
    let peer = node.await_peer(|peer| peer["other_settings"][0] == "test");
    assert_eq!(peer["state"], "up", "{peer}");
    let shown = node.fleet();
    assert!(shown.contains(&format!("peer {url}: up; not asked for test: the settings there are others\n")), "{shown}");
}
