//! Which volume a command means, and how it opens it.

use std::io;
use std::path::Path;

use eyewall::{Cache, Options};

use crate::Error;

/// The volume that the command line or the environment names.
pub(crate) fn named(cache: Option<&Path>) -> Result<&Path, Error> {
    cache.filter(|path| !path.as_os_str().is_empty()).ok_or(Error::NoVolume)
}

/// Opens a volume to change it. Never makes one: a typing error in a path should not leave a file behind.
pub(crate) fn open(path: &Path) -> Result<Cache, Error> {
    Options::new().create(false).open(path).map_err(in_words)
}

/// Opens a volume to look at it: read-only where the file may not be written.
pub(crate) fn open_to_read(path: &Path) -> Result<Cache, Error> {
    match Options::new().create(false).open(path) {
        Err(error) if is_write_refused(&error) => {
            Options::new().create(false).read_only(true).open(path).map_err(in_words)
        }
        other => other.map_err(in_words),
    }
}

/// The engine's advice is for programmers where this command has better.
fn in_words(error: eyewall::Error) -> Error {
    match error {
        eyewall::Error::NotFound { path } => Error::NoSuchVolume { path },
        other => other.into(),
    }
}

fn is_write_refused(error: &eyewall::Error) -> bool {
    match error {
        eyewall::Error::ReadOnly { .. } => true,
        eyewall::Error::Io { source, .. } => {
            matches!(source.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
        }
        _ => false,
    }
}
