//! A volume that fails under its map: somebody truncated the file or overwrote its header, its storage failed, or its memory
//! did.
//!
//! Without [`crate::Options::survive_sigbus`] the process dies of lost bytes. With it, they read as zeros. The call that met
//! them comes to an end, since whatever stands in a file is checked before it is followed; but what it has found out is
//! worth nothing, so it returns [`Error::Failed`], as does every later call of this process.
//!
//! An overwritten header costs no process its life. It is found by looking: a put looks if a second has passed since the last
//! look, every 64th miss of a thread looks, and [`Cache::check_header`] looks at once. Hits don't look: they pay nothing.

use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

use crate::cache::Cache;
use crate::error::{Error, Result};
use crate::format::superblock::Attachment;
use crate::volume::Volume;

/// The volume's time that may pass between two looks of puts at the header.
const LOOK_EVERY_MS: u64 = 1000;

impl Cache {
    /// Whether the volume failed: bytes of it were lost under its map ([`crate::Options::survive_sigbus`]), or its header was
    /// overwritten ([`Cache::check_header`]). All calls return [`Error::Failed`] then, for good: drop the cache and all its
    /// hits, and open the path again once the file was replaced.
    pub fn is_failed(&self) -> bool {
        // Nothing of the map is looked at: that could be what fails.
        self.own_volume().latest_known().has_failed()
    }

    /// Looks whether the volume's header is still what it was when this process opened it. If somebody overwrote it, the volume
    /// has failed in this process: this call and all later ones return [`Error::Failed`], and nothing is written to storage any more.
    ///
    /// Puts look by themselves, at most once a second; so does every 64th miss of a thread. A program that puts rarely calls
    /// this once a second. It costs less than a microsecond, and takes no lock.
    ///
    /// Compared are the bytes that never change (0 to 151) and the number of the attachment. Damage elsewhere isn't found here:
    /// see [`Cache::verify_with`].
    ///
    /// ```
    /// use eyewall::Options;
    ///
    /// let cache = Options::new().heap()?;
    /// cache.check_header()?;
    /// # Ok::<(), eyewall::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Failed`](Error::Failed), [`Moved`](Error::Moved).
    pub fn check_header(&self) -> Result<()> {
        // First: a header that was overwritten can name another volume that took its place.
        self.own_volume().latest_known().check_header()?;
        self.vouched(Volume::check_header)
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

    fn check_header(&self) -> Result<()> {
        self.look_at_header();
        self.check_intact()
    }

    /// Whether the superblock is what it was, as far as it never changes while this process is attached. If not, the volume has
    /// failed.
    #[cold]
    pub(crate) fn look_at_header(&self) {
        let attachment = Attachment(&self.region);
        if !attachment.has(&self.header) || !attachment.is_numbered(&self.secret) {
            self.region.mark_failed();
        }
    }

    /// Looks if none of this process's puts has done so in the last second; `now` is the volume's time.
    #[inline]
    pub(crate) fn look_in_time(&self, now: u64) -> Result<()> {
        if now.wrapping_sub(self.looked_ms.load(Relaxed)) < LOOK_EVERY_MS {
            return Ok(());
        }
        self.looked_ms.store(now, Relaxed);
        self.check_header()
    }

    /// Refuses once the volume has failed.
    #[inline]
    pub(crate) fn check_intact(&self) -> Result<()> {
        if self.has_failed() { Err(self.failed()) } else { Ok(()) }
    }

    #[cold]
    fn failed(&self) -> Error {
        Error::Failed { path: self.membership.path().unwrap_or_else(|| Path::new("an anonymous volume")).to_owned() }
    }
}
