//! `eyewall purge --server`: asks a running server to purge.

use std::io::Write as _;
use std::time::Duration;

use eyewall_server::units::counted;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::administration::{Post, ask};
use super::purge::warn_of_overflows;
use crate::args::{Purge, ServerPlace};
use crate::{Error, Outcome, output};

/// The timeout of all purge requests together: the server may have to sweep its volume.
const TIMEOUT: Duration = Duration::from_mins(2);
/// The response of the server.
#[derive(Serialize, Deserialize)]
struct Report {
    kind: String,
    purged: Vec<Value>,
    purge_overflows: u64,
    /// What the fleet's purge log says of the last request; it covers those before.
    #[serde(skip_serializing_if = "Option::is_none")]
    fleet: Option<Value>,
}

pub(crate) fn run(server: &ServerPlace, purge: &Purge) -> Result<Outcome, Error> {
    let path = if purge.wait { "/purge?wait=applied" } else { "/purge" };
    let posts: Vec<Post> = purge_requests(purge).into_iter().map(|body| Post { path, body }).collect();
    let no_report = |source: serde_json::Error| Error::NoServer { server: server.to_string(), source: source.into() };
    let mut report = Report { kind: String::new(), purged: Vec::new(), purge_overflows: 0, fleet: None };
    for body in ask(server, purge.token_file.as_deref(), &posts, TIMEOUT)? {
        let part: Report = serde_json::from_slice(&body).map_err(no_report)?;
        report.kind = part.kind;
        report.purged.extend(part.purged);
        report.purge_overflows += part.purge_overflows;
        report.fleet = part.fleet;
    }
    warn_of_overflows(report.purge_overflows);
    if purge.json {
        output::json_to_stdout(&report)?;
    } else {
        output::text_to_stdout(|stdout| {
            report.purged.iter().try_for_each(|purged| writeln!(stdout, "{}", in_words(purged, purge.soft)))?;
            match report.fleet {
                Some(_) if purge.wait => writeln!(stdout, "applied by all live nodes of the fleet"),
                _ => Ok(()),
            }
        })?;
    }
    Ok(Outcome::Done)
}

/// The result of one purge target.
fn in_words(purged: &Value, is_soft: bool) -> String {
    let text = |name: &str| purged[name].as_str().unwrap_or_default();
    let subject = match (text("what"), text("host")) {
        ("url", _) => text("name").to_owned(),
        ("everything", _) => "everything".to_owned(),
        (what, "") => format!("{what} {}", text("name")),
        (what, host) => format!("{what} {} of {host}", text("name")),
    };
    let done = if is_soft { "made stale" } else { "purged" };
    match (text("result"), purged["entries"].as_u64()) {
        ("absent", _) | (_, Some(0)) => format!("{subject}: no stored entry matches"),
        (_, Some(entries)) => format!("{subject}: {} {done}", counted(entries, "entry", "entries")),
        ("found", None) => format!("{subject}: {done}"),
        (_, None) => format!("{subject}: {done}; the volume has too many entries to count them"),
    }
}

/// The bodies of the purge requests, one for each kind of target.
fn purge_requests(purge: &Purge) -> Vec<Value> {
    let soft = purge.soft;
    let mut requests = Vec::new();
    if !purge.url.is_empty() {
        requests.push(json!({ "url": purge.url, "soft": soft, "count": true }));
    }
    if !purge.tag.is_empty() {
        // A missing host becomes null, which the server ignores.
        requests.push(json!({ "tag": purge.tag, "host": purge.host, "soft": soft, "count": true }));
    } else if let Some(host) = &purge.host {
        requests.push(json!({ "host": host, "soft": soft, "count": true }));
    }
    if !purge.prefix.is_empty() {
        // The server refuses a prefix that is not text, because it is not an address.
        let prefixes: Vec<_> = purge.prefix.iter().map(|prefix| prefix.to_string_lossy()).collect();
        requests.push(json!({ "prefix": prefixes, "soft": soft, "count": true }));
    }
    if purge.all {
        requests.push(json!({ "everything": true, "soft": soft, "count": true }));
    }
    requests
}
