//! The log in a Redis Cluster, whose slots move.

use super::Node;
use crate::common::origin::{Origin, nobody};
use crate::common::redis::Redis;

struct Member {
    redis: Redis,
    port: String,
    id: String,
}

/// Three servers, each with a third of the slots.
fn cluster() -> Option<Vec<Member>> {
    let mut members = Vec::new();
    for slots in ["0 5460", "5461 10922", "10923 16383"] {
        let [port, bus] = [(); 2].map(|()| nobody().port().to_string());
        let words = ["--cluster-enabled", "yes", "--bind", "127.0.0.1", "--port", &port, "--cluster-port", &bus];
        let redis = Redis::start(&words)?;
        assert_eq!(redis.command(&format!("CLUSTER ADDSLOTSRANGE {slots}")), "+OK");
        let meet = format!("CLUSTER MEET 127.0.0.1 {port} {bus}");
        if let Some(Member { redis, .. }) = members.last() {
            assert_eq!(redis.command(&meet), "+OK");
        }
        let id = redis.command("CLUSTER MYID");
        members.push(Member { redis, port, id });
    }
    for member in &members {
        member.redis.command_until("CLUSTER INFO", |line| line == "cluster_state:ok");
    }
    Some(members)
}

#[test]
fn nodes_follow_the_log_to_the_server_that_gets_its_slot() {
    let Some(members) = cluster() else { return };
    let slot = members[0].redis.command("CLUSTER KEYSLOT {eyewall}:lines");
    let slot = slot.trim_start_matches(':');
    let owner = (slot.parse::<usize>().unwrap() / 5461).min(2);
    let [from, other, to] = [0, 1, 2].map(|step| &members[(owner + step) % 3]);
    let urls = [other, to].map(|member| format!("redis+cluster://127.0.0.1:{}", member.port));
    let fleet = format!("redis = [\"{}\", \"{}\"]\nmax_blind = \"2m\"\ndurable = true\n", urls[0], urls[1]);
    let origin = Origin::counting("Cache-Control: max-age=600");
    let nodes = [(); 2].map(|()| Node::start(&fleet, &origin.url()));
    let status = nodes[0].status();
    assert_eq!(status["server"], format!("redis://127.0.0.1:{}", from.port), "{status}");
    let purge_and_check = || {
        nodes[1].store("/a");
        nodes[1].store("/b");
        nodes[0].purge_and_wait(r#"{"url": "http://test/a"}"#);
        assert!(!nodes[1].is_hit("/a") && nodes[1].is_hit("/b"));
        assert_eq!((&nodes[0].status()["gaps"], &nodes[1].status()["gaps"]), (&0.into(), &0.into()));
    };
    purge_and_check();
    assert_eq!(to.redis.command(&format!("CLUSTER SETSLOT {slot} IMPORTING {}", from.id)), "+OK");
    assert_eq!(from.redis.command(&format!("CLUSTER SETSLOT {slot} MIGRATING {}", to.id)), "+OK");
    let keys = "KEYS {eyewall}:state {eyewall}:lines {eyewall}:nodes";
    assert_eq!(from.redis.command(&format!("MIGRATE 127.0.0.1 {} \"\" 0 5000 {keys}", to.port)), "+OK");
    // The old server still has the slot, and redirects by ASK.
    for node in &nodes {
        node.await_status(|status| status["server"] == format!("redis://127.0.0.1:{}", to.port));
    }
    purge_and_check();
    for member in [to, from, other] {
        assert_eq!(member.redis.command(&format!("CLUSTER SETSLOT {slot} NODE {}", to.id)), "+OK");
    }
    purge_and_check();
}
