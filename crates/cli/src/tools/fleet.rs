//! `eyewall fleet`: the nodes of a running server's fleet.

use std::io::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use eyewall_server::units::counted;
use serde::Deserialize;
use serde_json::Value;

use super::administration::look;
use crate::args::RunningServer;
use crate::{Error, Outcome, output};

/// The server's response, as far as it is shown.
#[derive(Deserialize)]
struct Fleet {
    name: String,
    node: String,
    process: u32,
    server: Option<String>,
    trouble: Option<String>,
    nodes: Option<Vec<Node>>,
    #[serde(default)]
    peers: Vec<Peer>,
}

/// A node that the server takes responses from.
#[derive(Deserialize)]
struct Peer {
    url: String,
    state: String,
    #[serde(rename = "self")]
    is_self: bool,
}

#[derive(Deserialize)]
struct Node {
    #[serde(rename = "node")]
    name: String,
    process: u32,
    state: String,
    is_live: bool,
    line: u64,
    pending: u64,
    gaps: u64,
    blind_ms: u64,
    last_purge_ms: Option<u64>,
}

pub(crate) fn run(asked: &RunningServer) -> Result<Outcome, Error> {
    let status: Value = look(asked, "/fleet")?;
    if asked.json {
        output::json_to_stdout(&status)?;
        return Ok(Outcome::Done);
    }
    let malformed =
        |source: serde_json::Error| Error::NoServer { server: asked.server.to_string(), source: source.into() };
    let fleet: Fleet = serde_json::from_value(status).map_err(malformed)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    output::text_to_stdout(|stdout| {
        let log = fleet.server.as_deref().unwrap_or("none can be reached");
        writeln!(stdout, "fleet {}, seen from {} ({}); purge log: {log}", fleet.name, fleet.node, fleet.process)?;
        if let Some(trouble) = &fleet.trouble {
            writeln!(stdout, "trouble: {trouble}")?;
        }
        let nodes = fleet.nodes.as_deref().unwrap_or_default();
        let head = nodes.iter().map(|node| node.line).max().unwrap_or_default();
        nodes.iter().try_for_each(|node| writeln!(stdout, "{}", in_words(node, head, now)))?;
        fleet.peers.iter().try_for_each(|peer| {
            let state = if peer.is_self { "this node" } else { &peer.state };
            writeln!(stdout, "peer {}: {state}", peer.url)
        })
    })?;
    Ok(Outcome::Done)
}

/// A node's line. `head` is the last line that any node has applied.
fn in_words(node: &Node, head: u64, now: Duration) -> String {
    let mut words = vec![match (node.is_live, node.state.as_str()) {
        (false, _) => "gone".to_owned(),
        (true, "following") if node.line == head => "up to date".to_owned(),
        (true, "following") => format!("{} behind", counted(head - node.line, "purge", "purges")),
        (true, state) => state.to_owned(),
    }];
    words.push(format!("line {}", node.line));
    if let Some(at) = node.last_purge_ms {
        let ago = now.saturating_sub(Duration::from_millis(at)).as_secs();
        words.push(format!("last purge {ago} s ago"));
    }
    if node.pending > 0 {
        words.push(format!("{} not in the log yet", counted(node.pending, "purge", "purges")));
    }
    if node.blind_ms > 0 {
        words.push(format!("blind for {:.1} s in all", node.blind_ms as f64 / 1000.0));
    }
    if node.gaps > 0 {
        words.push(format!("revalidated everything {}", times(node.gaps)));
    }
    format!("{} ({}): {}", node.name, node.process, words.join(", "))
}

fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node() -> Node {
        Node {
            name: "web-1".to_owned(),
            process: 7,
            state: "following".to_owned(),
            is_live: true,
            line: 5,
            pending: 0,
            gaps: 0,
            blind_ms: 0,
            last_purge_ms: None,
        }
    }

    #[test]
    fn a_node_is_told_in_a_line() {
        let line = |node: &Node| in_words(node, 7, Duration::from_secs(100));
        assert_eq!(line(&Node { line: 7, ..node() }), "web-1 (7): up to date, line 7");
        let behind = Node { last_purge_ms: Some(40_000), gaps: 1, ..node() };
        assert_eq!(
            line(&behind),
            "web-1 (7): 2 purges behind, line 5, last purge 60 s ago, revalidated everything once"
        );
        let blind = Node { state: "blind".to_owned(), blind_ms: 1500, pending: 1, gaps: 2, ..node() };
        assert_eq!(
            line(&blind),
            "web-1 (7): blind, line 5, 1 purge not in the log yet, blind for 1.5 s in all, revalidated everything 2 times"
        );
        assert_eq!(line(&Node { is_live: false, ..node() }), "web-1 (7): gone, line 5");
    }
}
