//! Several servers that purge together, through a real Redis.

mod agent;
mod cluster;
mod command;
mod cut_off;
mod failover;
mod late_fill;
mod lost_log;
mod of_programs;
mod password;
mod purge_latency;
mod reached;
mod restarted;
mod second_level;
mod sentinel;
mod soak;
mod tls;
mod troubled;

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::admin::{Socket, json, token_file};
use crate::common::client::Reply;
use crate::common::server::Server;

/// The timeout of all waits.
const PATIENCE: Duration = Duration::from_mins(1);

/// A node, and its administration.
struct Node {
    server: Server,
    admin: Socket,
}

impl Node {
    /// A node of the fleet with this table of settings, in front of an origin.
    fn start(fleet: &str, origin: &str) -> Self {
        Self::with(fleet, origin, "")
    }

    /// The same with more settings before the site.
    fn with(fleet: &str, origin: &str, more: &str) -> Self {
        let admin = Socket::new();
        let site = format!("[[site]]\norigins = [\"{origin}\"]\nkey = {{ cookies = [\"lang\"] }}\n");
        let server = Server::configured(&format!("{}[fleet]\n{fleet}\n{more}{site}", admin.table()));
        Self { server, admin }
    }

    /// Repeats a request until its response is stored.
    fn store(&self, target: &str) {
        self.server.get_until(target, Reply::is_hit);
    }

    fn is_hit(&self, target: &str) -> bool {
        self.server.get(target).is_hit()
    }

    /// Waits until a stored response isn't used any more. Returns the first response after that.
    fn await_miss(&self, target: &str) -> Reply {
        self.server.get_until(target, |reply| !reply.is_hit())
    }

    /// Purges, and waits until all nodes have applied it.
    fn purge_and_wait(&self, body: &str) {
        let reply = self.admin.ask("POST", "/purge?wait=applied", &[], body);
        assert_eq!(reply.status, 200, "{body}: {reply:?}");
        assert_eq!(json(&reply)["fleet"]["applied"], true, "{body}: {reply:?}");
    }

    fn status(&self) -> Value {
        let reply = self.admin.ask("GET", "/fleet", &[], "");
        assert_eq!(reply.status, 200, "{reply:?}");
        json(&reply)
    }

    /// Waits until the node's state is as wanted.
    fn await_status(&self, is_so: impl Fn(&Value) -> bool) -> Value {
        let start = Instant::now();
        loop {
            let status = self.status();
            if is_so(&status) {
                return status;
            }
            assert!(start.elapsed() < PATIENCE, "still {status}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Waits until each node has revalidated what it had stored, and then purges at the second one for both.
fn assert_revalidated_and_purged(nodes: &[Node; 2], target: &str) {
    for node in nodes {
        let reply = node.await_miss(target);
        assert!(reply.cache().contains("fwd=stale"), "it is revalidated before it is sent: {reply:?}");
        node.store(target);
    }
    nodes[1].purge_and_wait(&format!(r#"{{"url": "http://test{target}"}}"#));
    assert!(!nodes[0].is_hit(target));
}

/// A file with a password, which is its name, too.
fn password_file(folder: &Path, password: &str) -> String {
    let file = folder.join(password);
    token_file(&file, &format!("{password}\n"));
    file.display().to_string()
}

/// Settings of a node that isn't cut off by a slow machine.
fn patient(redis: &str) -> String {
    format!("redis = [\"{redis}\"]\nmax_blind = \"2m\"\n")
}

/// Settings of a node that soon notices that it is cut off.
fn watchful(redis: &str) -> String {
    format!("redis = [\"{redis}\"]\nmax_blind = \"2s\"\n")
}
