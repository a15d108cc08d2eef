//! Several servers that take responses from each other: each response is made once, and none comes back after its purge.

mod home_fails;
mod made_once;
mod over_tls;
mod parts;
mod purged;
mod refused;
mod soak;
mod stopped;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::common::admin::{Socket, json};
use crate::common::client::Reply;
use crate::common::command::{eyewall, run};
use crate::common::redis::Redis;
use crate::common::server::Server;

/// The timeout of all waits.
const PATIENCE: Duration = Duration::from_mins(1);

/// A node, and its administration.
struct Node {
    server: Server,
    admin: Socket,
    /// The folder of its volume.
    folder: TempDir,
}

/// Nodes that know each other by the purge log.
struct Peers {
    nodes: Vec<Node>,
    _folder: TempDir,
}

impl Node {
    /// A node with these settings of `[fleet]`, and a site with these.
    fn start(fleet: &str, site: &str) -> Self {
        let (admin, folder) = (Socket::new(), tempfile::tempdir().unwrap());
        let cache = format!("[cache]\npath = \"{}\"\nsize = \"32M\"\n", volume_in(&folder).display());
        let text = format!("{}{cache}[fleet]\n{fleet}\n[[site]]\n{site}\n", admin.table());
        Self { server: Server::configured(&text), admin, folder }
    }

    /// The path of its volume.
    fn volume(&self) -> PathBuf {
        volume_in(&self.folder)
    }

    /// Waits until it has as many peers in this state, itself included.
    fn await_peers(&self, count: usize, state: &str) {
        let start = Instant::now();
        loop {
            let status = json(&self.admin.ask("GET", "/fleet", &[], ""));
            let peers = status["peers"].as_array().unwrap();
            if peers.iter().filter(|peer| peer["state"] == state).count() == count {
                return;
            }
            assert!(start.elapsed() < PATIENCE, "still {status}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until it knows the state of another node. There are two nodes.
    fn await_peer(&self, is_so: impl Fn(&Value) -> bool) -> Value {
        let start = Instant::now();
        loop {
            let status = json(&self.admin.ask("GET", "/fleet", &[], ""));
            let others = status["peers"].as_array().unwrap().iter().filter(|peer| peer["self"] == false);
            if let Some(peer) = others.into_iter().find(|peer| is_so(peer)) {
                return peer.clone();
            }
            assert!(start.elapsed() < PATIENCE, "still {status}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// What `eyewall fleet` shows.
    fn fleet(&self) -> String {
        run(eyewall().args(["fleet", "--server"]).arg(self.admin.path()), b"").text().to_owned()
    }

    /// Its address for other nodes.
    fn peer_url(&self) -> String {
        let status = json(&self.admin.ask("GET", "/fleet", &[], ""));
        let own = status["peers"].as_array().unwrap().iter().find(|peer| peer["self"] == true).cloned();
        own.unwrap()["url"].as_str().unwrap().to_owned()
    }

    fn get(&self, target: &str) -> Reply {
        let reply = self.server.get(target);
        assert_eq!(reply.status, 200, "{reply:?}");
        reply
    }

    fn purge_and_wait(&self, body: &str) {
        let reply = self.admin.ask("POST", "/purge?wait=applied", &[], body);
        assert_eq!(reply.status, 200, "{body}: {reply:?}");
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.server.child), signal).unwrap();
    }
}

fn volume_in(folder: &TempDir) -> PathBuf {
    folder.path().join("volume")
}

/// Whether another node had the response.
fn is_of_peer(reply: &Reply) -> bool {
    reply.cache().contains("detail=peer")
}

/// A file with a key.
fn key_file(folder: &TempDir, letter: &str) -> PathBuf {
    let path = folder.path().join(format!("{letter}.key"));
    std::fs::write(&path, letter.repeat(40)).unwrap();
    path
}

/// `[fleet]` of a node.
fn settings(redis: &Redis, key: &std::path::Path, peers: &str) -> String {
    let key = key.display();
    format!(
        "redis = [\"{}\"]\nmax_blind = \"2m\"\npeers = {peers}\npeer_listen = \"127.0.0.1:0\"\nkey_file = \"{key}\"\n",
        redis.url()
    )
}

impl Peers {
    fn start(redis: &Redis, count: usize, site: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let fleet = settings(redis, &key_file(&folder, "k"), "\"redis\"");
        let nodes: Vec<Node> = (0..count).map(|_| Node::start(&fleet, site)).collect();
        for node in &nodes {
            node.await_peers(count, "up");
        }
        Self { nodes, _folder: folder }
    }

    /// The place of the home of a target. Asks each node once, until one has the response itself.
    fn home(&self, target: &str) -> usize {
        self.nodes.iter().position(|node| !is_of_peer(&node.get(target))).unwrap()
    }

    /// A target with a home at this place, which is stored nowhere.
    fn cold(&self, home: usize, prefix: &str) -> String {
        let mut targets = (0..).map(|number| format!("/{prefix}{number}"));
        let target = targets.find(|target| self.home(target) == home).unwrap();
        self.nodes[home].purge_and_wait(&format!(r#"{{"url": "http://test{target}"}}"#));
        target
    }
}
