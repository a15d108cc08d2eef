//! Moving to the volume that has replaced this one.

use std::io;
use std::path::Path;
use std::sync::Arc;

use eyewall_region::file;

use super::moved_path;
use crate::attach;
use crate::error::{Error, Result};
use crate::protocol;
use crate::thread;
use crate::volume::Volume;

/// Puts the volume with that id in its place, if the process that created it died before doing so. Any process may do
/// this at any time.
pub(crate) fn complete_rename(path: &Path, id: u64) -> Result<()> {
    match std::fs::rename(moved_path(path, id), path) {
        Ok(()) => {}
        // It is in its place already.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Error::io("replacing", path, error)),
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    // Makes the new name survive a power loss. If the folder can't be synced, the rename still holds.
    let _ = std::fs::File::open(folder).and_then(|folder| folder.sync_all());
    Ok(())
}

/// Whether the volume's path leads to its own file.
pub(super) fn is_shown(volume: &Volume, path: &Path) -> Result<bool> {
    let Some(door) = volume.membership.door() else { return Ok(false) };
    match std::fs::File::open(path).and_then(|file| file::identity(&file)) {
        Ok(identity) => Ok(identity == door.identity()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Error::io("opening", path, error)),
    }
}

impl Volume {
    /// The volume that stands in place of this one now: itself, unless it was resized.
    ///
    /// # Errors
    /// [`Failed`](Error::Failed) if that volume has failed.
    #[inline]
    pub(crate) fn present(&self) -> Result<&Self> {
        match self.purges().moved() {
            0 if self.has_failed() => self.after_failure(),
            0 => Ok(self),
            _ => self.moved_to()?.present(),
        }
    }

    /// A failed volume can no longer say that it was resized. Its successor has not failed with it.
    #[cold]
    fn after_failure(&self) -> Result<&Self> {
        match self.successor.get() {
            Some(next) => next.present(),
            None => Err(self.failed()),
        }
    }

    /// The last volume in the chain of those that replaced this one, as far as this process knows.
    pub(crate) fn latest_known(&self) -> &Self {
        self.successor.get().map_or(self, |next| next.latest_known())
    }

    /// This volume and those that replaced it, as far as this process knows.
    pub(crate) fn known_chain(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |volume| volume.successor.get().map(|next| &**next))
    }

    #[cold]
    fn moved_to(&self) -> Result<&Self> {
        if let Some(next) = self.successor.get() {
            return Ok(next);
        }
        let next = self.open_successor()?;
        // Another thread may have been faster; its volume is as good.
        let next = self.successor.get_or_init(|| next);
        give_back(self);
        Ok(next)
    }

    fn open_successor(&self) -> Result<Arc<Self>> {
        let Some(path) = self.membership.path() else { return Err(Error::Nameless) };
        complete_rename(path, self.purges().moved())?;
        if is_shown(self, path)? {
            return Err(Error::Moved { path: path.to_owned() });
        }
        let mut options = self.options.clone().create(false);
        options.forget_shape();
        options.lineage = Some(self.lineage);
        attach::open(&options, path)
    }

    /// For an operation that has locked a stripe of a resized volume. It must be done again in the new one.
    #[inline]
    pub(crate) fn check_present(&self) -> Result<()> {
        if self.purges().moved() == 0 { Ok(()) } else { Err(self.moved_error()) }
    }

    #[cold]
    fn moved_error(&self) -> Error {
        Error::Moved { path: self.membership.path().unwrap_or_else(|| Path::new("the volume")).to_owned() }
    }
}

/// Gives the blocks of the old volume's data back if nobody holds bytes there. Its slots are cleared, so nobody can
/// start to hold any. Otherwise the next process that moves over tries again. At the latest, the blocks go with the
/// last map of the file.
pub(super) fn give_back(volume: &Volume) {
    // Before the scan: a reader that pinned something before the slots were cleared is then seen by it.
    if volume.read_only || !volume.purges().is_emptied() {
        return;
    }
    let mut held = false;
    protocol::collect_pins(thread::pins(volume).map(|(_, pin)| pin), |_| held = true);
    if !held {
        let start = volume.layout.data_at as usize;
        // Some file systems can't do this; the blocks stay a little longer there.
        let _ = volume.region.give_back(start, volume.region.len() - start);
    }
}
