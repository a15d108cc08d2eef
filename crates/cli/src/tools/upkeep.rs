//! `eyewall sweep` and `eyewall sync`: upkeep that happens by itself over time, done now.

use std::io::Write as _;
use std::path::Path;

use eyewall_server::units::counted;
use serde_json::json;

use crate::args::Upkeep;
use crate::{Error, Outcome, output, volume};

pub(crate) fn sweep(path: &Path, upkeep: &Upkeep) -> Result<Outcome, Error> {
    let dropped = volume::open(path)?.sweep()?;
    if upkeep.json {
        output::json_to_stdout(&json!({ "dropped": dropped }))?;
    } else {
        output::text_to_stdout(|stdout| writeln!(stdout, "{} dropped", counted(dropped, "entry", "entries")))?;
    }
    Ok(Outcome::Done)
}

pub(crate) fn sync(path: &Path, upkeep: &Upkeep) -> Result<Outcome, Error> {
    volume::open(path)?.sync()?;
    if upkeep.json {
        output::json_to_stdout(&json!({ "synced": true }))?;
    }
    Ok(Outcome::Done)
}
