//! How the nodes of a fleet are doing, for operators and for each other.

use eyewall_region::clock;
use serde::{Deserialize, Serialize, Serializer};

use super::Written;
use super::redis_log::Known;

/// This node.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Seen {
    /// The fleet's name.
    pub(crate) name: String,
    #[serde(flatten)]
    pub(crate) said: Said,
    /// The server that has the log; `None` if none can be reached.
    pub(crate) server: Option<String>,
    /// Why none can be reached.
    pub(crate) trouble: Option<String>,
    /// Up to when the node is confirmed, by the time since the machine's start; `None` if it never was.
    #[serde(rename = "confirmed_ago_ms", serialize_with = "ago")]
    pub(crate) confirmed_ms: Option<u64>,
}

/// What a node says of itself to the others.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Said {
    /// Its name.
    pub(crate) node: String,
    pub(crate) process: u32,
    pub(crate) state: NodeState,
    /// The last line that it has applied.
    pub(crate) line: u64,
    pub(crate) reign: String,
    /// Purges that the log doesn't have yet.
    pub(crate) pending: usize,
    /// How often lines may have been missing.
    pub(crate) gaps: u64,
    /// For how long it has been blind, all times together.
    pub(crate) blind_ms: u64,
    /// When it last applied a purge of another node, in milliseconds since 1970.
    pub(crate) last_purge_ms: Option<u64>,
}

/// What a node does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum NodeState {
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
pub(crate) struct NodeStatus {
    #[serde(flatten)]
    pub(crate) said: Said,
    /// Whether others wait for it.
    pub(crate) is_live: bool,
}

/// The fleet as this node sees it.
#[derive(Debug, Serialize)]
pub(crate) struct FleetStatus {
    #[serde(flatten)]
    pub(crate) this: Seen,
    /// `None` if the log can't be reached.
    pub(crate) nodes: Option<Vec<NodeStatus>>,
}

impl NodeStatus {
    /// The node of an entry of the log; `None` if it can't be read.
    pub(super) fn of(known: &Known) -> Option<Self> {
        Some(Self { said: serde_json::from_str(&known.said).ok()?, is_live: known.left_ms > 0 })
    }

    /// Whether it has applied a line, or followed the log after it.
    pub(super) fn has_applied(&self, written: &Written) -> bool {
        self.said.reign == written.reign && self.said.line >= written.number
    }

    /// Its name with its process.
    pub(super) fn title(&self) -> String {
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
