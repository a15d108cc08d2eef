//! A home that is dead, slow or cut off costs each other node at most one request to the origin.

use rustix::process::Signal;

use super::{Node, Peers, is_of_peer, key_file, settings};
use crate::common::origin::Origin;
use crate::common::redis::Redis;

fn asked(origin: &Origin, target: &str) -> usize {
    origin.asked().iter().filter(|asked| asked.target == target).count()
}

#[test]
fn the_others_stand_in_for_a_home_that_was_killed() {
    let Some(redis) = Redis::start(&[]) else { return };
    let origin = Origin::counting("Cache-Control: max-age=600");
    let mut peers = Peers::start(&redis, 3, &format!("origins = [\"{}\"]", origin.url()));
    let killed = &mut peers.nodes[0].server.child;
    killed.kill().unwrap();
    killed.wait().unwrap();
    for number in 0..30 {
        let target = format!("/dead{number}");
        for node in &peers.nodes[1..] {
            node.get(&target);
        }
        assert!(asked(&origin, &target) <= 2, "{target}");
    }
    for node in &peers.nodes[1..] {
        node.await_peers(1, "down");
    }
    // The two that are left share the keys.
    for number in 0..30 {
        let target = format!("/after{number}");
        for node in &peers.nodes[1..] {
            node.get(&target);
        }
        assert_eq!(asked(&origin, &target), 1, "{target}");
    }
}

#[test]
fn a_home_that_hangs_is_not_waited_for() {
    let Some(redis) = Redis::start(&[]) else { return };
    let origin = Origin::counting("Cache-Control: max-age=600");
    let peers = Peers::start(&redis, 2, &format!("origins = [\"{}\"]", origin.url()));
    let targets: Vec<String> = (0..3).map(|number| peers.cold(0, &format!("hang{number}-"))).collect();
    let before = origin.asked().len();
    peers.nodes[0].signal(Signal::STOP);
    for target in &targets {
        assert!(!is_of_peer(&peers.nodes[1].get(target)));
    }
    assert_eq!(origin.asked().len(), before + targets.len());
    peers.nodes[0].signal(Signal::CONT);
    peers.nodes[1].await_peers(2, "up");
}

#[test]
fn without_the_purge_log_each_node_is_a_single_server() {
    let Some(mut redis) = Redis::start(&[]) else { return };
    let origin = Origin::counting("Cache-Control: max-age=600");
    let folder = tempfile::tempdir().unwrap();
    let fleet = settings(&redis, &key_file(&folder, "k"), "\"redis\"").replace("2m", "2s");
    let nodes = [(); 2].map(|()| Node::start(&fleet, &format!("origins = [\"{}\"]", origin.url())));
    for node in &nodes {
        node.await_peers(2, "up");
    }
    redis.kill();
    for node in &nodes {
        node.await_peers(1, "down");
    }
    for number in 0..10 {
        assert!(nodes.iter().all(|node| !is_of_peer(&node.get(&format!("/{number}")))));
    }
    assert_eq!(origin.asked().len(), 20);
    redis.restart();
    for node in &nodes {
        node.await_peers(2, "up");
    }
}
