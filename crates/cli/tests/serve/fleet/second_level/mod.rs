//! Nodes that share responses in a second level, on a real Redis or in a bucket.

mod latency;
mod not_shared;
mod on_s3;
mod purged;
mod reigns;
mod shared;
mod trouble;

use std::time::Instant;

use serde_json::Value;

use super::{Node, PATIENCE, patient};
use crate::common::admin::json;
use crate::common::client::Reply;

const FIELDS: &str = "Cache-Control: max-age=600\r\nETag: \"1\"\r\nXkey: post-7";

/// The table of a second level that is waited for on a slow machine, too.
const LEVEL: &str = "[fleet.second_level]\ntimeout = \"10s\"\n";

/// A node with a second level on the server of the log.
fn node(redis: &str, origin: &str) -> Node {
    Node::with(&patient(redis), origin, LEVEL)
}

/// A node with a second level on a server of its own.
fn node_beside(log: &str, level: &str, origin: &str) -> Node {
    Node::with(&patient(log), origin, &format!("{LEVEL}redis = [\"{level}\"]\n"))
}

impl Node {
    /// What the status says of the second level.
    fn level(&self) -> Value {
        let reply = self.admin.ask("GET", "/status", &[], "");
        json(&reply)["second_level"].clone()
    }

    /// Waits until it is as wanted.
    fn await_level(&self, is_so: impl Fn(&Value) -> bool) -> Value {
        let start = Instant::now();
        loop {
            let level = self.level();
            if is_so(&level) {
                return level;
            }
            assert!(start.elapsed() < PATIENCE, "still {level}");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    /// Makes a response, asks for it again, and waits until the second level has it.
    fn share(&self, target: &str) {
        let before = self.level()["stored"].as_u64().unwrap();
        self.store(target);
        self.await_level(|level| level["stored"].as_u64().unwrap() > before);
    }
}

fn is_shared(reply: &Reply) -> bool {
    reply.cache().contains("detail=second-level")
}
