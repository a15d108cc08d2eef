//! Which volume a command means, and how it opens it.

use std::path::Path;

use eyewall::{Cache, Options};
use eyewall_server::warnings;

use crate::{Error, output};

/// What an entry takes beside key, metadata and value, before it is padded to a multiple of eight bytes.
pub(crate) const HEADER_BYTES: u64 = 44;

/// The volume that the command line or the environment names.
pub(crate) fn named(cache: Option<&Path>) -> Result<&Path, Error> {
    cache.filter(|path| !path.as_os_str().is_empty()).ok_or(Error::NoVolume)
}

/// Opens a volume to change it. Never makes one: a typing error in a path should not leave a file behind.
pub(crate) fn open(path: &Path) -> Result<Cache, Error> {
    Ok(Options::new().create(false).open(path)?)
}

/// Opens a volume to look at it, without the right to write. Who opens one to write joins it, which empties a volume that
/// can't be trusted, such as a copy: a look should not cost what it looks at. So looks don't count as use either.
pub(crate) fn open_to_read(path: &Path) -> Result<Cache, Error> {
    Options::new().create(false).read_only(true).open(path).map_err(|error| match error {
        eyewall::Error::ReadOnly { path, .. } => Error::Unreadable { path },
        other => other.into(),
    })
}

/// Tells a person who has just made or started to use a volume of it.
pub(crate) fn warn_of_storage(cache: &Cache) {
    if let Some(warning) = warnings::of_storage(cache) {
        output::tell(output::WARNING, "eyewall: warning", &warning);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_takes_what_we_think() {
        let cache = Options::new().heap().unwrap();
        cache.put("key", [0; 1001]).unwrap();
        assert_eq!(cache.stats().unwrap().live_bytes, HEADER_BYTES + 3 + 1001);
        assert!((HEADER_BYTES + 3 + 1001).is_multiple_of(8), "so that no padding hides a difference of four");
    }
}
