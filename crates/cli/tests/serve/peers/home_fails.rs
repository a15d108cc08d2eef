//! A home that is dead, slow or cut off costs each other node at most one request to the origin.

use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use super::{Node, Peers, is_of_peer, key_file, settings};
use crate::common::origin::{Asked, Origin};
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

/// The nodes that a request has passed.
fn passed(asked: &Asked) -> Vec<String> {
    let fields = asked.fields.iter().filter(|(name, _)| name == "cdn-loop");
    fields.flat_map(|(_, value)| value.split(',')).map(|node| node.trim().to_owned()).collect()
}

/// Waits until the origin has been asked more often than before.
fn await_asked(origin: &Origin, before: usize) {
    while origin.asked().len() == before {
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_home_that_hangs_after_its_sign_of_life_is_given_up() {
    let Some(redis) = Redis::start(&[]) else { return };
    let (open, gate) = mpsc::channel::<()>();
    // The first request of a home for another node waits.
    let gate = Mutex::new(Some(gate));
    let origin = Origin::answering(move |asked| {
        if passed(asked).len() < 2 {
            return (200, "Cache-Control: max-age=600".to_owned(), b"own".to_vec());
        }
        let gate = gate.lock().unwrap().take();
        gate.map(|gate| gate.recv());
        (200, "Cache-Control: max-age=600".to_owned(), b"home".to_vec())
    });
    let site = format!("origins = [\"{}\"]\norigin = {{ timeout = \"1h\" }}", origin.url());
    let peers = Peers::start(&redis, 2, &site);
    let (home, other) = (&peers.nodes[0], &peers.nodes[1]);
    let target = (0..100).map(|number| format!("/{number}")).find(|target| {
        thread::scope(|scope| {
            let before = origin.asked().len();
            let asking = scope.spawn(|| other.server.get(target));
            await_asked(&origin, before);
            if passed(origin.asked().last().unwrap()).len() < 2 {
                asking.join().unwrap();
                return false;
            }
            // The home asks the origin, and hangs.
            home.signal(Signal::STOP);
            let reply = asking.join().unwrap();
            assert!(reply.text() == "own" && !is_of_peer(&reply), "{reply:?}");
            true
        })
    });
    assert!(target.is_some());
    home.signal(Signal::CONT);
    drop(open);
}

#[test]
fn an_answer_of_a_slow_home_counts_more_than_an_error_of_the_origin() {
    let Some(redis) = Redis::start(&[]) else { return };
    // The origin is well for all nodes but this one.
    let unlucky = Arc::new(Mutex::new(String::new()));
    let fails = Arc::clone(&unlucky);
    let origin = Origin::answering(move |asked| {
        let status = if passed(asked) == [fails.lock().unwrap().clone()] { 503 } else { 200 };
        (status, "Cache-Control: max-age=600".to_owned(), b"page".to_vec())
    });
    let peers = Peers::start(&redis, 2, &format!("origins = [\"{}\"]", origin.url()));
    let (home, other) = (&peers.nodes[0], &peers.nodes[1]);
    let targets: Vec<String> = (0..5).map(|number| peers.cold(0, &format!("slow{number}-"))).collect();
    other.get(&peers.cold(1, "own"));
    *unlucky.lock().unwrap() = passed(origin.asked().last().unwrap()).pop().unwrap();
    // On a busy machine, the home may be down meanwhile.
    let has_waited = targets.iter().any(|target| {
        let before = origin.asked().len();
        home.signal(Signal::STOP);
        thread::scope(|scope| {
            let asking = scope.spawn(|| other.server.get(target));
            await_asked(&origin, before);
            home.signal(Signal::CONT);
            let reply = asking.join().unwrap();
            other.await_peers(2, "up");
            reply.status == 200 && is_of_peer(&reply)
        })
    });
    assert!(has_waited);
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
