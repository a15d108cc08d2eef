//! A second level that is slow or gone holds up no client for long.

use std::time::Duration;

use super::{FIELDS, is_shared, node_beside};
use crate::common::origin::Origin;
use crate::common::redis::Redis;

#[test]
fn a_second_level_that_hangs_is_skipped_until_it_answers_again() {
    let (Some(log), Some(level)) = (Redis::start(&[]), Redis::start(&[])) else { return };
    let origin = Origin::counting(FIELDS);
    let [maker, other] = [(); 2].map(|()| node_beside(&log.url(), &level.url(), &origin.url()));
    maker.share("/a");
    other.server.get("/known/time/of/the/origin");
    level.hang();
    for number in 0..20 {
        let reply = other.server.get(&format!("/slow/{number}"));
        assert_eq!(reply.status, 200, "{reply:?}");
    }
    let state = other.level();
    assert_eq!(state["state"], "failing", "{state}");
    assert!(state["skipped"].as_u64() > Some(0) && state["failures"].as_u64() >= Some(3), "{state}");
    level.wake();
    // Misses of clients show that it answers again.
    let mut number = 0;
    while other.level()["state"] != "closed" {
        other.server.get(&format!("/probe/{number}"));
        number += 1;
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(is_shared(&other.server.get("/a")));
}

#[test]
fn without_a_second_level_the_server_starts_and_answers() {
    let (Some(log), Some(mut level)) = (Redis::start(&[]), Redis::start(&[])) else { return };
    let origin = Origin::counting(FIELDS);
    level.kill();
    let node = node_beside(&log.url(), &level.url(), &origin.url());
    node.store("/a");
    let state = node.level();
    assert!(state["trouble"].is_string() && state["hits"] == 0, "{state}");
}
