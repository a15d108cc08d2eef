//! `eyewall reload`: asks a running server to put its configuration file in force.

use std::io::Write as _;

use serde::{Deserialize, Serialize};

use super::administration::order;
use crate::args::RunningServer;
use crate::{Error, Outcome, output};

/// The response of the server.
#[derive(Serialize, Deserialize)]
struct Report {
    addresses: Vec<String>,
    tls_addresses: Vec<String>,
    /// A server of an earlier version doesn't name these.
    #[serde(default)]
    unix_sockets: Vec<String>,
    #[serde(default)]
    closed: Vec<String>,
    not_reloaded: Vec<String>,
}

pub(crate) fn run(reload: &RunningServer) -> Result<Outcome, Error> {
    let reloaded: Report = order(reload, "/reload")?;
    if reload.json {
        output::json_to_stdout(&reloaded)?;
        return Ok(Outcome::Done);
    }
    output::text_to_stdout(|stdout| {
        for address in &reloaded.addresses {
            writeln!(stdout, "listening on http://{address}/")?;
        }
        for address in &reloaded.tls_addresses {
            writeln!(stdout, "listening on https://{address}/")?;
        }
        for path in &reloaded.unix_sockets {
            writeln!(stdout, "listening on unix:{path}")?;
        }
        for address in &reloaded.closed {
            writeln!(stdout, "closed {address}")?;
        }
        Ok(())
    })?;
    if !reloaded.not_reloaded.is_empty() {
        let settings = reloaded.not_reloaded.join(", ");
        // The process after an upgrade is in the same sandbox.
        let is_sandbox = reloaded.not_reloaded.iter().any(|setting| setting == "server.sandbox");
        let upgrade = if is_sandbox { "" } else { ", or run `eyewall upgrade`" };
        let words = format!("only a new process takes over {settings}: restart the server{upgrade}");
        output::tell(output::WARNING, "note", &words);
    }
    Ok(Outcome::Done)
}
