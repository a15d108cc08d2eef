//! Ranges of responses that a node doesn't have: it asks the home for the fragments around them.

use std::ops::Range;

use super::{Node, Peers, is_of_peer};
use crate::common::client::Reply;
use crate::common::film::{Film, MIB, bytes};
use crate::common::redis::Redis;

const LENGTH: u64 = 5 * MIB + 1;

fn ask(node: &Node, target: &str, range: Range<u64>) -> Reply {
    let reply = node.server.ask("GET", target, &[&format!("Range: bytes={}-{}", range.start, range.end - 1)]);
    assert_eq!(reply.status, 206, "{reply:?}");
    let told = format!("bytes {}-{}/", range.start, range.end - 1);
    assert!(reply.field("content-range").starts_with(&told), "{:?}", reply.fields);
    assert!(reply.body == bytes(1, range), "other bytes, {} of them", reply.body.len());
    reply
}

/// A target with a home at the first of two nodes, which is stored nowhere.
fn cold(peers: &Peers) -> String {
    let mut targets = (0..).map(|number| format!("/film{number}"));
    let target = targets.find(|target| is_of_peer(&ask(&peers.nodes[1], target, 0..10))).unwrap();
    peers.nodes[0].purge_and_wait(r#"{"everything": true}"#);
    target
}

#[test]
fn a_range_is_fetched_once_for_all_nodes() {
    let Some(redis) = Redis::start(&[]) else { return };
    let film = Film::of(LENGTH).run();
    let peers = Peers::start(&redis, 2, &format!("origins = [\"{}\"]", film.origin.url()));
    let (home, other) = (&peers.nodes[0], &peers.nodes[1]);
    let target = cold(&peers);
    let before = film.ranges().len();
    // It was asked for before, so it is kept.
    ask(other, &target, 3_000_000..3_000_010);
    for node in [home, other] {
        assert!(ask(node, &target, 3_000_000..3_000_010).is_hit());
    }
    assert_eq!(film.ranges()[before..], ["bytes=2097152-3145727"]);
    // The rest of what is stored in part comes from the home, too.
    let whole = other.get(&target);
    assert!(whole.body == bytes(1, 0..LENGTH));
    assert_eq!(film.ranges()[before + 1..], ["bytes=0-2097151", "bytes=3145728-5242880"]);
    assert!(home.get(&target).is_hit());
    // Beyond the end, the origin has to say so.
    let reply = other.server.ask("GET", &target, &["Range: bytes=90000000-"]);
    assert_eq!(reply.status, 416, "{reply:?}");
}

#[test]
fn the_end_of_what_is_stored_nowhere_costs_one_request() {
    let Some(redis) = Redis::start(&[]) else { return };
    let film = Film::of(LENGTH).run();
    let peers = Peers::start(&redis, 2, &format!("origins = [\"{}\"]", film.origin.url()));
    let target = cold(&peers);
    let before = film.ranges().len();
    let ask_for_end = || {
        let reply = peers.nodes[1].server.ask("GET", &target, &["Range: bytes=-500"]);
        assert!(reply.status == 206 && reply.body == bytes(1, LENGTH - 500..LENGTH), "{reply:?}");
    };
    ask_for_end();
    assert_eq!(film.ranges()[before..], ["bytes=-500"]);
    // Once the home has it, it gives the end, too.
    peers.nodes[0].get(&target);
    let before = film.ranges().len();
    ask_for_end();
    assert_eq!(film.ranges().len(), before);
}

#[test]
fn a_home_with_another_version_gives_no_rest() {
    let Some(redis) = Redis::start(&[]) else { return };
    let film = Film::of(LENGTH).run();
    let peers = Peers::start(&redis, 2, &format!("origins = [\"{}\"]", film.origin.url()));
    let (home, other) = (&peers.nodes[0], &peers.nodes[1]);
    let target = cold(&peers);
    home.get(&target);
    film.change();
    // This client gets the origin's own.
    let reply = other.server.ask("GET", &target, &["Range: bytes=0-9", "Cache-Control: no-cache"]);
    assert_eq!(reply.body, bytes(2, 0..10));
    let before = film.ranges().len();
    let reply = other.server.ask("GET", &target, &["Range: bytes=3000000-3000009"]);
    assert!(reply.status == 206 && reply.body == bytes(2, 3_000_000..3_000_010), "{reply:?}");
    assert_eq!(film.ranges()[before..], ["bytes=2097152-3145727"]);
}
