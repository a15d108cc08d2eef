//! `eyewall get`: writes a value to standard output, and nothing else.

use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use eyewall::{Hit, Lookup};

use super::entry::Entry;
use crate::args::Get;
use crate::{Error, Outcome, output, volume};

pub(crate) fn run(path: &Path, get: &Get) -> Result<Outcome, Error> {
    let cache = volume::open_to_read(path)?;
    let (hit, outcome) = match cache.lookup(get.key.as_bytes())? {
        Lookup::Fresh(hit) => (hit, Outcome::Done),
        Lookup::Stale(hit) if get.stale => (hit, Outcome::Done),
        Lookup::Stale(hit) => (hit, Outcome::Stale),
        Lookup::Negative(hit) => (hit, Outcome::Negative),
        Lookup::Miss => return Ok(Outcome::Absent),
    };
    if get.json {
        if let Some(entry) = Entry::new(&hit) {
            output::json_to_stdout(&entry.line())?;
        }
    } else if outcome == Outcome::Done {
        let bytes = if get.metadata { hit.metadata() } else { hit.value() };
        output::to_stdout(|stdout| stdout.write_all(bytes))?;
    } else {
        output::tell(output::WARNING, "eyewall", &why_nothing(&hit));
    }
    Ok(outcome)
}

fn why_nothing(hit: &Hit<'_>) -> String {
    match hit.reason() {
        Some(reason) => format!("the key has a negative entry, for reason {reason}"),
        None => "the value is stale; give --stale to write it".to_owned(),
    }
}
