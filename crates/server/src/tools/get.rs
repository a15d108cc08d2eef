//! `eyewall get`: writes a value to standard output, and nothing else.

use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use crate::args::Get;
use crate::{Error, Outcome, output, volume};

pub(crate) fn run(path: &Path, get: &Get) -> Result<Outcome, Error> {
    let cache = volume::open_to_read(path)?;
    let Some(hit) = cache.get(get.key.as_bytes())? else {
        return Ok(Outcome::Absent);
    };
    let bytes = if get.metadata { hit.metadata() } else { hit.value() };
    output::to_stdout(|stdout| stdout.write_all(bytes))?;
    Ok(Outcome::Done)
}
