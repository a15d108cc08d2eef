//! Which volume a command means, and how it opens it.

use std::path::Path;

use eyewall::{Cache, Options};
use eyewall_server::warnings;

use crate::{Error, output};

/// The bytes of an entry beside key, metadata and value, before it is padded to a multiple of eight bytes.
pub(crate) const HEADER_BYTES: u64 = 44;

/// The volume that the command line or the environment names.
pub(crate) fn named(cache: Option<&Path>) -> Result<&Path, Error> {
    cache.filter(|path| !path.as_os_str().is_empty()).ok_or(Error::NoVolume)
}

/// Opens a volume to change it, and never creates one: a typing error in a path should not leave a file behind.
pub(crate) fn open(path: &Path) -> Result<Cache, Error> {
    Ok(Options::new().create(false).open(path)?)
}

/// Opens a volume for reading only. A process that opens a volume for writing joins it, which may drop entries of a volume
/// that can't be trusted, such as a copy; a tool that only reads must not do that. Such reads don't count as uses either.
pub(crate) fn open_to_read(path: &Path) -> Result<Cache, Error> {
    Options::new().create(false).read_only(true).open(path).map_err(|error| match error {
        eyewall::Error::ReadOnly { path, .. } => Error::Unreadable { path },
        other => other.into(),
    })
}

/// Warns an operator whose file system doesn't guarantee the space of the volume.
pub(crate) fn warn_of_storage(cache: &Cache) {
    if let Some(warning) = warnings::of_storage(cache) {
        output::tell(output::WARNING, "eyewall: warning", &warning);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_the_header_bytes_that_the_tools_count() {
        let cache = Options::new().heap().unwrap();
        cache.put("key", [0; 1001]).unwrap();
        assert_eq!(cache.stats().unwrap().live_bytes, HEADER_BYTES + 3 + 1001);
        assert!((HEADER_BYTES + 3 + 1001).is_multiple_of(8), "so that no padding hides a difference of four");
    }
}
