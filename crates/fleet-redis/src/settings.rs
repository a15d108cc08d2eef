//! The settings of a node.

use std::time::Duration;

use crate::redis_url::RedisUrl;

/// The settings of a node.
#[derive(Clone)]
pub struct Settings {
    /// Servers that may have the log. The first that can be written to is used.
    pub servers: Vec<RedisUrl>,
    /// The name of the fleet.
    pub name: String,
    /// The name of this node. `None`: that of the machine.
    pub node: Option<String>,
    /// The password of Redis.
    pub password: Option<String>,
    /// The password of Sentinels.
    pub sentinel_password: Option<String>,
    /// Certificates to trust, in PEM. `None`: those of the system.
    pub authority: Option<Vec<u8>>,
    /// Replicas that must have a purge before it counts as written.
    pub min_replicas: u64,
    /// Whether a server that takes over has every acknowledged line.
    pub durable: bool,
    /// How long a node may be cut off from the log.
    pub max_blind: Duration,
    /// How many lines the log keeps.
    pub lines: u64,
    /// The volume also takes responses that others have made. Then lines are noted, and this process's own lines are applied again (N9,
    /// N10).
    pub takes_foreign: bool,
    /// The address by which other nodes ask this one for responses.
    pub peer_url: Option<String>,
    /// A soft purge of everything, as a line has it.
    pub everything: Vec<u8>,
}
