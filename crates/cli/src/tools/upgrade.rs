//! `eyewall upgrade`: asks a running server to start its program again, and to hand over to it.

use std::io::Write as _;

use serde::{Deserialize, Serialize};

use super::administration::order;
use crate::args::RunningServer;
use crate::{Error, Outcome, output};

/// The response of the server.
#[derive(Serialize, Deserialize)]
struct Upgraded {
    process: u32,
}

pub(crate) fn run(upgrade: &RunningServer) -> Result<Outcome, Error> {
    let upgraded: Upgraded = order(upgrade, "/upgrade")?;
    if upgrade.json {
        output::json_to_stdout(&upgraded)?;
    } else {
        output::text_to_stdout(|stdout| writeln!(stdout, "process {} has taken over", upgraded.process))?;
    }
    Ok(Outcome::Done)
}
