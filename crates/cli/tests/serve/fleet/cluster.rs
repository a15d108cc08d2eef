//! The log in a Redis Cluster, whose slots move, and whose servers die.

use super::{Node, assert_revalidated_and_purged};
use crate::common::origin::{Origin, nobody};
use crate::common::redis::Redis;

const LINES: &str = "{eyewall}:lines";

struct Member {
    redis: Redis,
    port: String,
    id: String,
}

impl Member {
    /// A server that meets another one, if there is one.
    fn start(other: Option<&Self>) -> Option<Self> {
        let [port, bus] = [(); 2].map(|()| nobody().port().to_string());
        let cluster = ["--cluster-enabled", "yes", "--bind", "127.0.0.1", "--port", &port, "--cluster-port", &bus];
        // A replica takes over whatever it lacks, and none leaves its master for another one that has none.
        let replicates = ["--cluster-replica-validity-factor", "0", "--cluster-allow-replica-migration", "no"];
        let redis = Redis::start(&[&cluster[..], &replicates, &["--repl-diskless-sync-delay", "0"]].concat())?;
        if let Some(other) = other {
            assert_eq!(other.redis.command(&format!("CLUSTER MEET 127.0.0.1 {port} {bus}")), "+OK");
        }
        let id = redis.command("CLUSTER MYID");
        Some(Self { redis, port, id })
    }

    /// The address in the nodes' status.
    fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }
}

/// Three servers, each with a third of the slots. The first one has the log.
fn cluster() -> Option<Vec<Member>> {
    let mut members: Vec<Member> = Vec::new();
    for slots in ["0 5460", "5461 10922", "10923 16383"] {
        let member = Member::start(members.last())?;
        assert_eq!(member.redis.command(&format!("CLUSTER ADDSLOTSRANGE {slots}")), "+OK");
        members.push(member);
    }
    for member in &members {
        member.redis.command_until("CLUSTER INFO", |line| line == "cluster_state:ok");
    }
    let owner = slot(&members[0]).parse::<usize>().unwrap() / 5461;
    members.rotate_left(owner.min(2));
    Some(members)
}

/// Such a cluster, and replicas of the server with the log.
fn cluster_with_replicas(count: usize) -> Option<(Vec<Member>, Vec<Member>)> {
    let members = cluster()?;
    let master = &members[0];
    let replicas: Vec<Member> = (0..count).map_while(|_| Member::start(Some(master))).collect();
    for replica in &replicas {
        replica.redis.command_until(&format!("CLUSTER REPLICATE {}", master.id), |line| line == "+OK");
    }
    master.redis.command_until("WAIT 9 100", |line| line == format!(":{count}"));
    for other in &members[1..] {
        other.redis.command_until(&format!("CLUSTER REPLICAS {}", master.id), |line| line == format!("*{count}"));
    }
    Some((members, replicas))
}

/// The slot of the log.
fn slot(member: &Member) -> String {
    member.redis.command(&format!("CLUSTER KEYSLOT {LINES}")).trim_start_matches(':').to_owned()
}

/// Settings of a node that knows two members, and isn't cut off by a slow machine.
fn fleet(members: [&Member; 2], rest: &str) -> String {
    let urls = members.map(|member| format!("redis+cluster://127.0.0.1:{}", member.port));
    format!("redis = [\"{}\", \"{}\"]\nmax_blind = \"2m\"\n{rest}", urls[0], urls[1])
}

/// From now on, these members take one for dead that is silent for a second. Before that, a slow one is no dead one.
fn notice(members: &[&Member]) {
    for member in members {
        assert_eq!(member.redis.command("CONFIG SET cluster-node-timeout 1000"), "+OK");
    }
}

#[test]
fn nodes_follow_the_log_to_the_server_that_gets_its_slot() {
    let Some(members) = cluster() else { return };
    let [from, other, to] = [0, 1, 2].map(|number| &members[number]);
    let slot = slot(from);
    let fleet = fleet([other, to], "durable = true\n");
    let origin = Origin::counting("Cache-Control: max-age=600");
    let nodes = [(); 2].map(|()| Node::start(&fleet, &origin.url()));
    let status = nodes[0].status();
    assert_eq!(status["server"], from.url(), "{status}");
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
        node.await_status(|status| status["server"] == to.url());
    }
    purge_and_check();
    for member in [to, from, other] {
        assert_eq!(member.redis.command(&format!("CLUSTER SETSLOT {slot} NODE {}", to.id)), "+OK");
    }
    purge_and_check();
}

#[test]
fn a_replica_takes_over_without_the_last_purge_and_nodes_revalidate_everything() {
    let Some((mut members, replicas)) = cluster_with_replicas(1) else { return };
    let [master, one, two] = &mut members[..] else { unreachable!() };
    let replica = &replicas[0];
    let origin = Origin::counting("Cache-Control: max-age=600\r\nETag: \"1\"");
    let nodes = [(); 2].map(|()| Node::start(&fleet([one, two], ""), &origin.url()));
    assert_eq!(nodes[0].status()["server"], master.url());
    nodes[0].purge_and_wait(r#"{"url": "http://test/b"}"#);
    replica.redis.hang();
    nodes[0].purge_and_wait(r#"{"url": "http://test/b"}"#);
    for node in &nodes {
        node.store("/a");
    }
    master.redis.kill();
    replica.redis.wake();
    notice(&[one, two, replica]);
    for node in &nodes {
        node.await_status(|status| status["server"] == replica.url());
    }
    assert_revalidated_and_purged(&nodes, "/a");
}

#[test]
fn with_a_durable_log_nodes_go_on_at_the_replica_and_a_purge_meanwhile_is_not_lost() {
    let Some((mut members, replicas)) = cluster_with_replicas(2) else { return };
    let [master, one, two] = &mut members[..] else { unreachable!() };
    let origin = Origin::counting("Cache-Control: max-age=600");
    let settings = fleet([one, two], "min_replicas = 1\ndurable = true\n");
    let nodes = [(); 2].map(|()| Node::start(&settings, &origin.url()));
    nodes[0].purge_and_wait(r#"{"url": "http://test/b"}"#);
    for target in ["/a", "/b"] {
        nodes[1].store(target);
    }
    master.redis.kill();
    notice(&[one, two, &replicas[0], &replicas[1]]);
    // It waits for the new server, or the client is told that it isn't written yet.
    nodes[0].server.ask("PURGE", "/b", &[]);
    nodes[1].await_miss("/b");
    for node in &nodes {
        let server = node.await_status(|status| status["state"] == "following")["server"].clone();
        assert!(replicas.iter().any(|replica| server == replica.url()), "{server}");
        assert_eq!(node.status()["gaps"], 0);
    }
    assert!(nodes[1].is_hit("/a"), "the log is whole");
    nodes[1].purge_and_wait(r#"{"url": "http://test/a"}"#);
}
