//! `eyewall rm`: removes an entry.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use crate::args::Remove;
use crate::{Error, Outcome, volume};

pub(crate) fn run(path: &Path, remove: &Remove) -> Result<Outcome, Error> {
    let was_there = volume::open(path)?.remove(remove.key.as_bytes())?;
    Ok(if was_there { Outcome::Done } else { Outcome::Absent })
}
