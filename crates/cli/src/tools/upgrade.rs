//! `eyewall upgrade`: asks a running server to start its program again, and to hand over to it.

use std::io::Write as _;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::administration::{Post, ask};
use crate::args::Upgrade;
use crate::{Error, Outcome, output};

/// The timeout: longer than the server gives its successor.
const TIMEOUT: Duration = Duration::from_mins(2);

/// The response of the server.
#[derive(Serialize, Deserialize)]
struct Upgraded {
    process: u32,
}

pub(crate) fn run(upgrade: &Upgrade) -> Result<Outcome, Error> {
    let post = Post { path: "/upgrade", body: json!({}) };
    let bodies = ask(&upgrade.server, upgrade.token_file.as_deref(), &[post], TIMEOUT)?;
    let malformed =
        |source: serde_json::Error| Error::NoServer { server: upgrade.server.to_string(), source: source.into() };
    let upgraded: Upgraded = serde_json::from_slice(bodies.concat().as_slice()).map_err(malformed)?;
    if upgrade.json {
        output::json_to_stdout(&upgraded)?;
    } else {
        output::text_to_stdout(|stdout| writeln!(stdout, "process {} has taken over", upgraded.process))?;
    }
    Ok(Outcome::Done)
}
