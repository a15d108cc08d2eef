//! `eyewall create`: creates a volume, and never overwrites a file.

use std::path::Path;

use eyewall::Options;

use crate::args::Create;
use crate::{Error, Outcome, volume};

pub(crate) fn run(path: &Path, create: &Create) -> Result<Outcome, Error> {
    // A dangling link counts: following it would create a file somewhere else.
    if path.symlink_metadata().is_ok() {
        return Err(Error::Exists { path: path.to_owned() });
    }
    volume::warn_of_storage(&options(create).open(path)?);
    Ok(Outcome::Done)
}

fn options(create: &Create) -> Options {
    let mut options = Options::new().size(create.size);
    if let Some(bytes) = create.entry_size_hint {
        options = options.entry_size_hint(bytes);
    }
    if let Some(bytes) = create.entry_bytes_max {
        options = options.entry_bytes_max(bytes);
    }
    if let Some(mode) = create.mode {
        options = options.mode(mode);
    }
    if let Some(group) = create.group {
        options = options.group(group);
    }
    options
}
