//! The files in the volume. If the volume fails, files are served without it.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use eyewall::{Cache, Committed, FillOptions, Filled, Filling, Hit, OwnedHit, PutOptions};

use crate::admission::{Admission, Candidate};
use crate::file_version::FileVersion;
use crate::fragment;
use crate::open_files::OpenFiles;
use crate::representation::Representation;
use crate::statistics::Counters;

/// How long to wait for a fragment that another process is reading in: longer than reading it takes.
const WAIT: Duration = Duration::from_secs(1);
/// The smallest page of any kernel that Eyewall runs on.
const PAGE_BYTES: usize = 4096;

/// It would displace much, and this is the first request for it.
const ASKED_ONCE: &str = "asked-once";

/// A volume, and the files that it may hold.
pub(crate) struct Store {
    pub(crate) cache: Cache,
    /// The length of fragments.
    pub(crate) fragment_bytes: u64,
    pub(crate) min_bytes: u64,
    pub(crate) max_bytes: u64,
    pub(crate) admission: Admission,
    pub(crate) counters: Counters,
    pub(crate) open_files: OpenFiles,
    /// Whether a failure was logged already: log once, not once per request. A race may log it twice.
    pub(crate) has_warned: AtomicBool,
}

impl Store {
    /// A fragment of a representation, if the volume has it. `Err`: telling that would wait for storage.
    pub(crate) fn find(&self, representation: &Representation, number: u64) -> Result<Option<Bytes>, WouldWait> {
        let key = fragment::key(&representation.key, number);
        if !self.cache.is_likely_resident(&key) {
            return Err(WouldWait);
        }
        Ok(self.look(representation, number, &key).and_then(|hit| self.sound(hit)))
    }

    /// The only fragment of a representation, if the volume has it, and it is likely in memory.
    pub(crate) fn find_whole(&self, representation: &Representation) -> Option<Hit<'_>> {
        if representation.version.bytes > self.fragment_bytes || !self.cache.is_likely_resident(&representation.key) {
            return None;
        }
        // The full way tells of an error.
        let found = self.cache.get_if(&representation.key, |hit| self.is_of(representation, 0, hit)).ok()?;
        found.filter(Hit::is_intact)
    }

    fn look(&self, representation: &Representation, number: u64, key: &[u8]) -> Option<OwnedHit> {
        match self.cache.get_if(key, |hit| self.is_of(representation, number, hit)) {
            Ok(hit) => hit.map(Hit::into_owned),
            Err(error) => {
                self.tell(&error);
                None
            }
        }
    }

    /// The bytes of a hit, if its volume has lost none so far. A truncated volume loses its last byte first.
    /// For bytes lost later, the kernel makes a send fail, and a copying caller must ask [`Store::has_lost`].
    fn sound(&self, hit: OwnedHit) -> Option<Bytes> {
        std::hint::black_box(hit.value().last().copied());
        match hit.check_intact() {
            Ok(()) => Some(Bytes::from_owner(hit)),
            Err(error) => {
                self.tell(&error);
                None
            }
        }
    }

    /// Whether bytes of the volume were lost: bytes taken from it may since read as zeros.
    pub(crate) fn has_lost(&self) -> bool {
        self.cache.is_failed()
    }

    /// Whether an entry is this fragment of exactly this version of a file. Other programs may write the
    /// volume, so check the length, too.
    fn is_of(&self, representation: &Representation, number: u64, hit: &Hit<'_>) -> bool {
        let range = fragment::range(number, representation.version.bytes, self.fragment_bytes);
        hit.metadata() == fragment::metadata(&representation.version, self.fragment_bytes)
            && hit.value().len() as u64 == range.end - range.start
    }

    /// Whether a fragment of a representation is in the volume and in memory. It doesn't wait, and doesn't
    /// count as use.
    pub(crate) fn has_resident(&self, representation: &Representation, number: u64) -> bool {
        self.cache.is_likely_resident(fragment::key(&representation.key, number)) && self.has(representation, number)
    }

    /// Whether a fragment of a representation is in the volume. It may wait for storage, and doesn't count as
    /// use.
    pub(crate) fn has(&self, representation: &Representation, number: u64) -> bool {
        let found = self.cache.peek(fragment::key(&representation.key, number));
        found.is_ok_and(|hit| hit.is_some_and(|hit| self.is_of(representation, number, &hit)))
    }

    /// Whether all fragments are.
    pub(crate) fn contains(&self, representation: &Representation) -> bool {
        (0..fragment::count(representation.version.bytes, self.fragment_bytes))
            .all(|number| self.has(representation, number))
    }

    /// Whether all fragments are, without waiting: false also if telling that would wait for storage.
    pub(crate) fn is_likely_resident(&self, representation: &Representation) -> bool {
        let count = fragment::count(representation.version.bytes, self.fragment_bytes);
        (0..count).all(|number| self.has_resident(representation, number))
    }

    /// Why a representation is not kept at this request, as a word for `Cache-Status`.
    pub(crate) fn why_not(&self, representation: &Representation) -> Option<&'static str> {
        let displaces_much = || self.cache.displaces_much(&representation.key, representation.version.bytes);
        self.why_never(representation).or_else(|| displaces_much().then_some(ASKED_ONCE))
    }

    /// Notes a request for a representation that was not kept, for this reason.
    pub(crate) fn note_request(&self, representation: &Representation, why_not: Option<&str>) {
        if why_not == Some(ASKED_ONCE) {
            self.cache.note_request(&representation.key);
        }
    }

    /// The same without the rule for large files: the caller wants the file kept, even if it displaces much.
    pub(crate) fn why_never(&self, representation: &Representation) -> Option<&'static str> {
        let bytes = representation.version.bytes;
        // This request isn't counted until its result is known.
        let asked = representation.counters.asked() + 1;
        if self.cache.is_failed() {
            Some("volume-failed")
        } else if self.cache.is_read_only() {
            Some("read-only")
        } else if bytes < self.min_bytes {
            Some("too-small")
        } else if bytes > self.max_bytes || bytes > self.cache.size() {
            Some("too-large")
        } else if representation.is_unsettled {
            Some("just-changed")
        } else if !(self.admission)(&Candidate { path: &representation.path, bytes, asked }) {
            Some("not-admitted")
        } else {
            None
        }
    }

    /// Reads a fragment from the volume, or else from the file, and then stores it if that is wanted. It
    /// blocks.
    ///
    /// # Errors
    /// The system's error. [`Changed`] if the file is gone, shorter or another one. If it had just changed
    /// before, no client got a validator for it, and the new bytes are returned.
    pub(crate) fn load(
        &self,
        representation: &Representation,
        number: u64,
        is_kept: bool,
        open: impl FnOnce() -> io::Result<Arc<File>>,
    ) -> io::Result<(Bytes, From)> {
        let key = fragment::key(&representation.key, number);
        if let Some(found) = self.look(representation, number, &key) {
            read_in(found.value());
            if let Some(found) = self.sound(found) {
                return Ok((found, From::Volume));
            }
        }
        let file = open()?;
        if is_kept {
            match self.keep(representation, &file, number, &key) {
                Ok(Some(kept)) => return Ok(kept),
                Ok(None) => {}
                // If the file is at fault, reading it reports the error.
                Err(error) => self.tell_io(&error),
            }
        }
        self.counters.count_read(false);
        Ok((self.read(representation, &file, number)?, From::File))
    }

    /// Reads a fragment into the volume. `None` if it isn't there afterwards; the caller finds out why.
    fn keep(
        &self,
        representation: &Representation,
        file: &File,
        number: u64,
        key: &[u8],
    ) -> io::Result<Option<(Bytes, From)>> {
        let range = fragment::range(number, representation.version.bytes, self.fragment_bytes);
        let metadata = fragment::metadata(&representation.version, self.fragment_bytes);
        let options = PutOptions::new().metadata(&metadata);
        let length = range.end - range.start;
        let mut filling = self.cache.begin_fill(key, WAIT, &FillOptions::new()).map_err(io::Error::other)?;
        if let Filling::Found(Filled::Hit(hit)) = &filling
            && !self.is_of(representation, number, hit)
        {
            // It is of an older version of the file. Remove it, so that one process reads the new
            // version for all.
            let serial = hit.serial();
            drop(filling);
            self.cache.remove_if(key, serial).map_err(io::Error::other)?;
            filling = self.cache.begin_fill(key, WAIT, &FillOptions::new()).map_err(io::Error::other)?;
        }
        let writer = match filling {
            Filling::Found(Filled::Hit(hit)) if self.is_of(representation, number, &hit) => {
                return Ok(self.sound(hit.into_owned()).map(|bytes| (bytes, From::Volume)));
            }
            // Another version again: another process uses an older look at the file.
            Filling::Found(found) => {
                drop(found);
                self.cache.writer(key, &options, Some(length))
            }
            Filling::Ours(flight) => flight.into_writer(&options, Some(length)),
        };
        let mut writer = writer.map_err(io::Error::other)?;
        let mut source = At { file, place: range.start };
        if writer.read_from(&mut source, length)? != length || Now::of(representation, file)? != Now::Same {
            return Ok(None);
        }
        let Committed::Stored(_) = writer.commit().map_err(io::Error::other)? else { return Ok(None) };
        self.counters.count_read(true);
        // Not by another look-up, which would count as use.
        let stored = self.cache.peek(key).map_err(io::Error::other)?;
        let stored = stored.filter(|hit| self.is_of(representation, number, hit));
        Ok(stored.and_then(|hit| self.sound(hit.into_owned())).map(|bytes| (bytes, From::Stored)))
    }

    /// Reads a fragment without the volume.
    fn read(&self, representation: &Representation, file: &File, number: u64) -> io::Result<Bytes> {
        let range = fragment::range(number, representation.version.bytes, self.fragment_bytes);
        let mut bytes = vec![0; (range.end - range.start) as usize];
        match file.read_exact_at(&mut bytes, range.start) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Err(io::Error::other(Changed)),
            other => other?,
        }
        // If a validator was sent, the file must have that version. A file that is being written is sent
        // as it is read.
        if !representation.is_unsettled {
            check(representation, file)?;
        }
        Ok(bytes.into())
    }

    /// Removes a file's fragments of any version. `bytes` is its present length; the rest may lack its first
    /// fragment.
    ///
    /// # Errors
    /// Those of the engine.
    pub(crate) fn remove(&self, first_key: &[u8], bytes: u64) -> eyewall::Result<bool> {
        let stored = self.cache.peek(first_key)?.and_then(|hit| fragment::of_metadata(hit.metadata()));
        // No file longer than the volume was kept.
        let count = |bytes: u64, fragment_bytes| fragment::count(bytes.min(self.cache.size()), fragment_bytes);
        // Before a resize, fragments may have been shorter.
        let of_stored = stored.map_or(0, |(version, fragment_bytes)| count(version.bytes, fragment_bytes));
        let mut is_removed = self.cache.remove(first_key)?;
        for number in 1..count(bytes, self.fragment_bytes).max(of_stored) {
            is_removed |= self.cache.remove(fragment::key(first_key, number))?;
        }
        Ok(is_removed)
    }

    fn tell_io(&self, error: &io::Error) {
        if let Some(error) = error.get_ref().and_then(|inner| inner.downcast_ref()) {
            self.tell(error);
        }
    }

    fn tell(&self, error: &eyewall::Error) {
        if is_passing(error) || self.has_warned.swap(true, Ordering::Relaxed) {
            tracing::debug!(%error, "a file was not read from the volume or not stored there");
        } else {
            tracing::warn!(%error, "the volume failed, so files are served without it; open the volume again (logged once)");
        }
    }
}

/// Reads a byte of each page, so that all pages are in memory.
fn read_in(value: &[u8]) {
    std::hint::black_box(value.iter().step_by(PAGE_BYTES).fold(0, |sum, byte| sum ^ byte));
}

/// Whether an error concerns only this file or this moment, not the volume.
fn is_passing(error: &eyewall::Error) -> bool {
    use eyewall::Error::{Busy, EntryTooLarge, Interrupted, KeyTooLong, Pinned};
    matches!(error, Busy { .. } | EntryTooLarge { .. } | Interrupted { .. } | KeyTooLong { .. } | Pinned { .. })
}

/// Looking would wait for storage, so another thread must do it.
#[derive(Debug)]
pub(crate) struct WouldWait;

/// The source of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum From {
    Volume,
    /// The file; they are in the volume now.
    Stored,
    File,
}

/// The file has another version than at the look, or is gone.
#[derive(Debug)]
pub(crate) struct Changed;

impl Changed {
    pub(crate) fn is(error: &io::Error) -> bool {
        error.get_ref().and_then(|inner| inner.downcast_ref::<Self>()).is_some()
    }
}

impl fmt::Display for Changed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the file changed while it was being sent")
    }
}

impl std::error::Error for Changed {}

/// A file from an offset on.
struct At<'a> {
    file: &'a File,
    place: u64,
}

impl io::Read for At<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(bytes, self.place)?;
        self.place += read as u64;
        Ok(read)
    }
}

/// Checks that an open file has the version of a representation still.
///
/// # Errors
/// The system's error, or [`Changed`].
pub(crate) fn check(representation: &Representation, file: &File) -> io::Result<()> {
    match Now::of(representation, file)? {
        Now::Same | Now::Unlinked => Ok(()),
        Now::Changed => Err(io::Error::other(Changed)),
    }
}

/// Whether an open file is still the one that its path names, in the version of a representation.
pub(crate) fn is_current(representation: &Representation, file: &File) -> io::Result<bool> {
    Ok(Now::of(representation, file)? == Now::Same)
}

/// The present state of an open file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Now {
    Same,
    /// It lost its last name, for instance by a rename over it, which changed its ctime; its bytes are the
    /// same.
    Unlinked,
    Changed,
}

impl Now {
    fn of(representation: &Representation, file: &File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        let version = FileVersion::of(&metadata);
        let as_found = FileVersion { changed_ns: representation.version.changed_ns, ..version };
        Ok(if version == representation.version {
            Self::Same
        } else if metadata.nlink() == 0 && as_found == representation.version {
            Self::Unlinked
        } else {
            Self::Changed
        })
    }
}
