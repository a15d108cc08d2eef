//! A volume that fails under its map: somebody truncated the file, its storage failed, or its memory did.
//!
//! Without [`crate::Options::survive_sigbus`] the process dies of it. With it, lost bytes read as zeros. The call that met
//! them comes to an end, since whatever stands in a file is checked before it is followed; but what it has found out is
//! worth nothing, so it returns [`Error::Failed`], as does every later call of this process.

use std::path::Path;

use crate::cache::Cache;
use crate::error::{Error, Result};
use crate::volume::Volume;

impl Cache {
    /// Whether bytes of the volume were lost under its map. All calls return [`Error::Failed`] then, for good: drop the
    /// cache and all its hits, and open the path again once the file was replaced. Always false without
    /// [`crate::Options::survive_sigbus`].
    pub fn is_failed(&self) -> bool {
        // Nothing of the map is looked at: that could be what fails.
        self.own_volume().latest_known().has_failed()
    }

    /// Does some work on the volume, if it hasn't failed, and vouches for the answer: nothing that was read for it was lost.
    /// Where the volume was resized before the work was done, it is done in the one that took its place.
    #[inline]
    pub(crate) fn vouched<'a, T>(&'a self, mut work: impl FnMut(&'a Volume) -> Result<T>) -> Result<T> {
        loop {
            let volume = self.own_volume().present()?;
            volume.check_intact()?;
            // One variable from here to the caller: a hit isn't moved.
            let mut answer = work(volume);
            if volume.has_failed() {
                answer = Err(volume.failed());
            }
            if !matches!(answer, Err(Error::Moved { .. })) || volume.purges().moved() == 0 {
                return answer;
            }
        }
    }

    /// The same for looks without a lock: what a volume that is resized meanwhile doesn't find, the other one may have.
    pub(crate) fn looked_for<'a, T>(
        &'a self,
        mut look: impl FnMut(&'a Volume) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        self.vouched(|volume| {
            let found = look(volume)?;
            if found.is_none() {
                volume.check_present()?;
            }
            Ok(found)
        })
    }
}

impl Volume {
    #[inline]
    pub(crate) fn has_failed(&self) -> bool {
        self.region.has_failed()
    }

    /// Refuses once bytes of the volume were lost.
    #[inline]
    pub(crate) fn check_intact(&self) -> Result<()> {
        if self.has_failed() { Err(self.failed()) } else { Ok(()) }
    }

    #[cold]
    fn failed(&self) -> Error {
        Error::Failed { path: self.membership.path().unwrap_or_else(|| Path::new("an anonymous volume")).to_owned() }
    }
}
