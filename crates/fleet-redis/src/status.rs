//! How the nodes of a fleet are doing, for operators and for each other.

use eyewall_region::clock;
use serde::{Deserialize, Serialize, Serializer};

use crate::handle::Written;
use crate::redis_log::Known;

/// This node.
#[derive(Debug, Clone, Serialize)]
pub struct Seen {
    /// The fleet's name.
    pub name: String,
    /// What it says to the others.
    #[serde(flatten)]
    pub said: Said,
    /// The server that has the log; `None` if none can be reached.
    pub server: Option<String>,
    /// Why none can be reached.
    pub trouble: Option<String>,
    /// Up to when the node is confirmed, by the time since the machine's start; `None` if it never was.
    #[serde(rename = "confirmed_ago_ms", serialize_with = "ago")]
    pub confirmed_ms: Option<u64>,
}

/// What a node says of itself to the others.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Said {
    /// Its name.
    pub node: String,
    /// The number of its process on its machine.
    pub process: u32,
    /// What it does.
    pub state: NodeState,
    /// The last line that it has applied.
    pub line: u64,
    /// The reign that it follows.
    pub reign: String,
    /// Purges that the log doesn't have yet.
    pub pending: usize,
    /// How often lines may have been missing.
    pub gaps: u64,
    /// For how long it has been blind, all times together.
    pub blind_ms: u64,
    /// When it last applied a purge of another node, in milliseconds since 1970.
    pub last_purge_ms: Option<u64>,
    /// The address by which others ask it for responses.
    pub peer_url: Option<String>,
}

/// What a node does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NodeState {
    /// It has not reached the log yet.
    #[default]
    Starting,
    /// It follows the log.
    Following,
    /// It can't follow the log, and revalidates everything.
    Blind,
}

/// A node as the log knows it.
#[derive(Debug, Clone, Serialize)]
pub struct NodeStatus {
    /// What it says of itself.
    #[serde(flatten)]
    pub said: Said,
    /// Whether others wait for it.
    pub is_live: bool,
}

/// The fleet as this node sees it.
#[derive(Debug, Serialize)]
pub struct FleetStatus {
    /// This node.
    #[serde(flatten)]
    pub this: Seen,
    /// `None` if the log can't be reached.
    pub nodes: Option<Vec<NodeStatus>>,
}

impl NodeStatus {
    /// The node of an entry of the log; `None` if it can't be read.
    pub(crate) fn of(known: &Known) -> Option<Self> {
        Some(Self { said: serde_json::from_str(&known.said).ok()?, is_live: known.left_ms > 0 })
    }

    /// Whether it has applied a line, or followed the log after it.
    pub(crate) fn has_applied(&self, written: &Written) -> bool {
        self.said.reign == written.reign && self.said.line >= written.number
    }

    /// Its name with its process.
    pub(crate) fn title(&self) -> String {
        format!("{} ({})", self.said.node, self.said.process)
    }
}

impl Default for Seen {
    fn default() -> Self {
        Self {
            name: String::new(),
            said: Said::default(),
            server: None,
            trouble: Some("it has not been reached yet".to_owned()),
            confirmed_ms: None,
        }
    }
}

/// A time as milliseconds before now.
#[expect(clippy::ref_option, reason = "serde calls it so")]
fn ago<S: Serializer>(since_ms: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
    since_ms.map(|since_ms| clock::since_boot_ms().saturating_sub(since_ms)).serialize(serializer)
}
