//! Failure of a volume under its map: somebody truncated the file or overwrote its header, or its storage or memory
//! failed.
//!
//! Without [`crate::Options::survive_sigbus`], a process that reads lost bytes dies. With it, the bytes read as
//! zeros. The call that met them still ends, since the engine checks what it reads from a file before it follows it.
//! But its result is worth nothing, so it returns [`Error::Failed`], as does every later call of this process.
//!
//! An overwritten header kills no process. The engine has to look for it: a put looks if the last look was more than
//! a second ago, and so does every 64th miss of a thread. [`Cache::check_header`] looks at once. Hits don't look, so
//! they pay nothing.

use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

use crate::cache::Cache;
use crate::error::{Error, Result};
use crate::format::superblock::Attachment;
use crate::volume::Volume;

/// How much of the volume's time may pass between two looks of puts at the header.
const LOOK_EVERY_MS: u64 = 1000;

impl Cache {
    /// Whether the volume has failed: bytes were lost under its map ([`crate::Options::survive_sigbus`]), or its
    /// header was overwritten ([`Cache::check_header`]). From then on, all calls return [`Error::Failed`]. To
    /// recover, drop the cache and all its hits, replace the file, and open the path again.
    pub fn is_failed(&self) -> bool {
        // Reads nothing of the map, since the map may be what fails.
        self.own_volume().latest_known().has_failed()
    }

    /// How many volumes of this cache have failed so far. A resize replaces the volume, but hits keep the old one. The count
    /// includes old volumes, so it grows whenever bytes of a held hit are lost.
    ///
    /// A reader that can't ask each hit ([`crate::Hit::is_intact`]) asks for the count before and after it reads. If the
    /// count is the same, the bytes are those that were put.
    pub fn failures(&self) -> usize {
        self.own_volume().known_chain().filter(|volume| volume.has_failed()).count()
    }

    /// Checks that the volume's header is what it was when this process opened it. If somebody overwrote it, the
    /// volume fails in this process: this call and all later ones return [`Error::Failed`], and nothing is written to
    /// storage any more.
    ///
    /// Puts check the header by themselves, at most once a second, and so does every 64th miss of a thread. A program
    /// that rarely puts should call this once a second. The call takes less than a microsecond, and no lock.
    ///
    /// It compares the bytes that never change (0 to 151) and the number of the attachment. It doesn't find damage
    /// elsewhere: see [`Cache::verify_with`].
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
        // The latest volume first: an overwritten header could name another volume as its successor.
        self.own_volume().latest_known().check_header()?;
        self.vouched(Volume::check_header)
    }

    /// Runs `work` on the volume if it hasn't failed, and returns its result only if none of the bytes it read were
    /// lost. If the volume was resized before the work was done, runs it again in the new volume.
    #[inline]
    pub(crate) fn vouched<'a, T>(&'a self, mut work: impl FnMut(&'a Volume) -> Result<T>) -> Result<T> {
        loop {
            let volume = self.own_volume().present()?;
            // One variable from here to the caller, so that a hit isn't moved.
            let mut answer = work(volume);
            if volume.has_failed() {
                answer = Err(volume.failed());
            }
            if !matches!(answer, Err(Error::Moved { .. })) || volume.purges().moved() == 0 {
                return answer;
            }
        }
    }

    /// Does the same for look-ups without a lock. What they don't find in a volume that is being resized, the new one
    /// may have.
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

    /// Fails the volume if the part of the superblock that never changes while this process is attached has changed.
    #[cold]
    pub(crate) fn look_at_header(&self) {
        let attachment = Attachment(&self.region);
        if !attachment.has(&self.header) || !attachment.is_numbered(&self.secret) {
            self.region.mark_failed();
        }
    }

    /// Checks the header if no put of this process has done so in the last second. `now` is the volume's time.
    #[inline]
    pub(crate) fn look_in_time(&self, now: u64) -> Result<()> {
        if now.wrapping_sub(self.looked_ms.load(Relaxed)) < LOOK_EVERY_MS {
            return Ok(());
        }
        self.looked_ms.store(now, Relaxed);
        self.check_header()
    }

    /// An error once the volume has failed.
    #[inline]
    pub(crate) fn check_intact(&self) -> Result<()> {
        if self.has_failed() { Err(self.failed()) } else { Ok(()) }
    }

    #[cold]
    pub(crate) fn failed(&self) -> Error {
        Error::Failed { path: self.membership.path().unwrap_or_else(|| Path::new("an anonymous volume")).to_owned() }
    }
}
