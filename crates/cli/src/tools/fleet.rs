//! `eyewall fleet`: the nodes of a running server's fleet, and what it takes from others.

use std::fmt::Write as _;
use std::io::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use eyewall_server::units::{counted, size};
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
    state: String,
    server: Option<String>,
    trouble: Option<String>,
    nodes: Option<Vec<Node>>,
    #[serde(default)]
    peers: Vec<Peer>,
    second_level: Option<SecondLevel>,
}

/// A node that the server takes responses from.
#[derive(Deserialize)]
struct Peer {
    url: String,
    state: String,
    #[serde(rename = "self")]
    is_self: bool,
    why: Option<String>,
    trouble: Option<String>,
    other_settings: Option<Vec<String>>,
}

/// The store that the nodes share.
#[derive(Deserialize)]
struct SecondLevel {
    kind: String,
    state: String,
    opened: u64,
    hits: u64,
    misses: u64,
    failures: u64,
    skipped: u64,
    outdated: u64,
    stored: u64,
    bytes: Option<u64>,
    trouble: Option<String>,
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
    peer_url: Option<String>,
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
        if !fleet.peers.is_empty() {
            if fleet.state != "following" {
                writeln!(stdout, "no peer is asked: this node doesn't follow the purge log")?;
            }
            let alone = nodes.iter().filter(|node| node.is_live && node.peer_url.is_none());
            alone.into_iter().try_for_each(|node| writeln!(stdout, "{} ({}) is no peer", node.name, node.process))?;
        }
        fleet.peers.iter().try_for_each(|peer| writeln!(stdout, "peer {}: {}", peer.url, of_peer(peer)))?;
        fleet.second_level.iter().try_for_each(|level| writeln!(stdout, "{}", of_level(level)))
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

/// The state of a peer, and why it isn't asked. What it says itself may be the words of another program.
fn of_peer(peer: &Peer) -> String {
    if peer.is_self {
        return "this node".to_owned();
    }
    let why = peer.why.as_deref().map(|why| match why {
        "key" => "wrong key",
        "clock" => "other clock",
        "blind" => "it is blind",
        why => why,
    });
    let trouble = peer.trouble.as_deref().map(|words| output::key_text(words.as_bytes()));
    let mut words = match (why, trouble) {
        (Some(why), Some(trouble)) => format!("{}, {why}: {trouble}", peer.state),
        _ => peer.state.clone(),
    };
    if let Some(sites) = &peer.other_settings {
        let sites = if sites.is_empty() { "some sites".to_owned() } else { sites.join(", ") };
        let _ = write!(words, "; not asked for {sites}: the settings there are others");
    }
    words
}

/// How the second level is doing.
fn of_level(level: &SecondLevel) -> String {
    let state = match level.state.as_str() {
        "closed" => "misses ask it",
        "failing" => "misses don't wait for it, because it fails",
        "slow" => "misses don't wait for it, because it takes more time than it saves",
        state => state,
    };
    let mut words = vec![
        state.to_owned(),
        counted(level.hits, "hit", "hits"),
        counted(level.misses, "miss", "misses"),
        counted(level.failures, "failure", "failures"),
    ];
    for (count, one, more) in [
        (level.skipped, "miss didn't wait", "misses didn't wait"),
        (level.outdated, "object was outdated", "objects were outdated"),
        (level.stored, "object offered", "objects offered"),
    ] {
        if count > 0 {
            words.push(counted(count, one, more));
        }
    }
    if level.opened > 0 {
        words.push(format!("given up {}", times(level.opened)));
    }
    words.extend(level.bytes.map(|bytes| format!("{} in all", size(bytes))));
    let trouble =
        level.trouble.as_deref().map(|trouble| format!("; last failure: {}", output::key_text(trouble.as_bytes())));
    format!("second level ({}): {}{}", level.kind, words.join(", "), trouble.unwrap_or_default())
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
            peer_url: None,
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

    #[test]
    fn a_peer_that_is_not_asked_has_a_reason() {
        let peer = |state: &str, why: Option<(&str, &str)>, sites: Option<&[&str]>| {
            let (why, trouble) = why.map(|(why, words)| (why.to_owned(), words.to_owned())).unzip();
            let other_settings = sites.map(|sites| sites.iter().map(ToString::to_string).collect());
            of_peer(&Peer { url: String::new(), state: state.to_owned(), is_self: false, why, trouble, other_settings })
        };
        assert_eq!(peer("up", None, None), "up");
        assert_eq!(peer("down", Some(("slow", "late")), None), "down, slow: late");
        assert_eq!(peer("unknown", Some(("key", "\u{1b}[2J")), None), "unknown, wrong key: \\x1b[2J");
        assert_eq!(peer("up", None, Some(&[])), "up; not asked for some sites: the settings there are others");
        assert_eq!(peer("up", None, Some(&["a", "b"])), "up; not asked for a, b: the settings there are others");
    }

    #[test]
    fn a_second_level_is_told_in_a_line() {
        let level = SecondLevel {
            kind: "redis".to_owned(),
            state: "closed".to_owned(),
            opened: 0,
            hits: 1,
            misses: 0,
            failures: 2,
            skipped: 0,
            outdated: 0,
            stored: 0,
            bytes: None,
            trouble: None,
        };
        assert_eq!(of_level(&level), "second level (redis): misses ask it, 1 hit, 0 misses, 2 failures");
        let trouble = Some("timed out".to_owned());
        let level = SecondLevel {
            state: "failing".to_owned(),
            opened: 1,
            skipped: 3,
            outdated: 1,
            stored: 4,
            bytes: Some(2048),
            trouble,
            ..level
        };
        assert_eq!(
            of_level(&level),
            "second level (redis): misses don't wait for it, because it fails, 1 hit, 0 misses, 2 failures, 3 misses didn't wait, \
             1 object was outdated, 4 objects offered, given up once, 2 KiB in all; last failure: timed out"
        );
    }
}
