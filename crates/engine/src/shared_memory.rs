//! Volumes in shared memory without a name, for processes that aren't forked from one that has them.

use std::os::fd::OwnedFd;
use std::path::Path;

use crate::cache::Cache;
use crate::error::{Error, Result};
use crate::options::Options;
use crate::{attach, tier};

impl Cache {
    /// A descriptor of a volume without a name ([`Options::anonymous`]). A process that gets it, for instance over a Unix socket, opens
    /// the same volume by [`Options::shared`]. `None` for a volume in a file, which has a path, and for one on the heap.
    ///
    /// # Errors
    /// [`Io`](Error::Io), if there is no descriptor left, or this process has closed the volume's own.
    pub fn share(&self) -> Result<Option<OwnedFd>> {
        let volume = self.volume();
        match volume.membership.door() {
            Some(door) if volume.membership.path().is_none() => door.descriptor().map(Some).map_err(failed),
            _ => Ok(None),
        }
    }
}

impl Options {
    /// Opens the volume without a name to which this descriptor of another process belongs ([`Cache::share`]). It is the same volume,
    /// with the entries of all processes. Never read-only.
    ///
    /// # Errors
    /// Those of [`Options::open`] for an existing file.
    pub fn shared(&self, descriptor: OwnedFd) -> Result<Cache> {
        tier::refuse(self, "an anonymous volume")?;
        let volume = attach::attach(&self.clone().read_only(false), descriptor.into(), None, None)?;
        Ok(Cache::from_volume(volume, None))
    }
}

fn failed(error: std::io::Error) -> Error {
    Error::io("duplicating the descriptor of", Path::new("an anonymous volume"), error)
}
