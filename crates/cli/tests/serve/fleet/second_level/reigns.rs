//! The log is another one, or the node was away: only what is surely right is taken.

use super::{FIELDS, is_shared, node_beside};
use crate::common::origin::Origin;
use crate::common::redis::Redis;

#[test]
fn after_the_log_is_gone_nothing_of_before_is_taken() {
    let (Some(mut log), Some(level)) = (Redis::start(&[]), Redis::start(&[])) else { return };
    let origin = Origin::counting(FIELDS);
    let start = || node_beside(&log.url(), &level.url(), &origin.url());
    let [maker, other] = [(); 2].map(|()| start());
    maker.share("/a");
    maker.purge_and_wait(r#"{"url": "http://test/other"}"#);
    log.kill();
    log.restart();
    for node in [&maker, &other] {
        node.await_status(|status| status["gaps"] == 1 && status["state"] == "following");
    }
    assert!(!is_shared(&other.server.get("/a")));
    assert_eq!(other.level()["outdated"], 1);
    // Responses are shared again from now on.
    maker.share("/b");
    assert!(is_shared(&other.server.get("/b")));
}

#[test]
fn a_node_that_is_cut_off_neither_asks_nor_offers() {
    let (Some(log), Some(level)) = (Redis::start(&[]), Redis::start(&[])) else { return };
    let origin = Origin::counting(FIELDS);
    let fleet = format!("redis = [\"{}\"]\nmax_blind = \"2s\"\n", log.url());
    let more = format!("{}redis = [\"{}\"]\n", super::LEVEL, level.url());
    let [maker, other] = [(); 2].map(|()| super::Node::with(&fleet, &origin.url(), &more));
    maker.share("/a");
    log.hang();
    for node in [&maker, &other] {
        node.await_status(|status| status["state"] == "blind");
    }
    let reply = other.server.get("/a");
    assert!(!is_shared(&reply) && reply.status == 200, "{reply:?}");
    assert_eq!(other.level()["hits"], 0);
    maker.store("/b");
    assert_eq!(maker.level()["stored"], 1);
    log.wake();
    // It may have become stale before the log was there again. Then the origin makes it again.
    maker.await_level(|level| {
        maker.server.get("/b");
        level["stored"] == 2
    });
}
