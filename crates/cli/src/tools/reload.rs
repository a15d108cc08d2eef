//! `eyewall reload`: asks a running server to put its configuration file in force.

use std::io::Write as _;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::administration::{Post, ask};
use crate::args::Reload;
use crate::{Error, Outcome, output};

/// The timeout: the server opens folders and files.
const TIMEOUT: Duration = Duration::from_mins(2);

/// The response of the server.
#[derive(Serialize, Deserialize)]
struct Reloaded {
    addresses: Vec<String>,
    not_reloaded: Vec<String>,
}

pub(crate) fn run(reload: &Reload) -> Result<Outcome, Error> {
    let post = Post { path: "/reload", body: json!({}) };
    let bodies = ask(&reload.server, reload.token_file.as_deref(), &[post], TIMEOUT)?;
    let malformed =
        |source: serde_json::Error| Error::NoServer { server: reload.server.to_string(), source: source.into() };
    let reloaded: Reloaded = serde_json::from_slice(bodies.concat().as_slice()).map_err(malformed)?;
    if reload.json {
        output::json_to_stdout(&reloaded)?;
        return Ok(Outcome::Done);
    }
    output::text_to_stdout(|stdout| {
        for address in &reloaded.addresses {
            writeln!(stdout, "listening on http://{address}/")?;
        }
        Ok(())
    })?;
    if !reloaded.not_reloaded.is_empty() {
        let settings = reloaded.not_reloaded.join(", ");
        let words = format!("only a new process takes over {settings}: restart the server, or run `eyewall upgrade`");
        output::tell(output::WARNING, "note", &words);
    }
    Ok(Outcome::Done)
}
