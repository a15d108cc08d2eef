//! A file for each entry, as most web caches on disk do it.
//!
//! - Each key has a file, named by the key in hexadecimal. The hash of the key picks one of 256 directories.
//! - get: open, read, close. The reader keeps its buffer, so that a value takes one `read`.
//! - The store itself sets access times, since mounts are `relatime` or `noatime`. After the read it calls `futimens`
//!   on the open file, at most once a second for each file. A table in the process remembers which files are due, which
//!   is cheaper than a `stat`.
//! - put: writes a temporary file in the same directory and renames it. No `fsync`. Refuses values above the cap.
//! - delete: `unlink`. The janitor notices the freed bytes when it counts again.
//! - Every second, a janitor thread compares the bytes put, in whole blocks, with the cap. If they exceed the cap, it
//!   walks the directories and counts again. If the count still exceeds the cap, it sorts the files by access time, and
//!   unlinks the oldest until 75 % of the cap remain. It does not walk below the cap, though a store shared by
//!   processes would have to.

mod janitor;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

use rustix::fs::{Mode, OFlags, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT};

use self::janitor::{Janitor, Tally};
use super::touched::Touched;
use crate::error::{Error, Result};
use crate::footprint;
use crate::random;
use crate::store::{Handle, Store, check_size};

/// The first size of a reader's buffer. It doubles until a value fits.
const BUFFER_BYTES_FIRST: usize = 64 << 10;

/// Longest key: its hexadecimal name must be a file name.
const KEY_BYTES_MAX: usize = 120;

/// A directory of files and the janitor that keeps it near its cap.
#[derive(Debug)]
pub struct Files {
    root: PathBuf,
    /// `root` as the start of a path.
    prefix: String,
    started: Instant,
    touched: Touched,
    temporary: AtomicU64,
    tally: Arc<Tally>,
    janitor: Option<JoinHandle<()>>,
}

impl Files {
    /// The name in records.
    pub const NAME: &'static str = "file-per-entry";

    /// Makes the directories and starts the janitor.
    pub fn create(root: &Path, cap_bytes: u64) -> Result<Self> {
        let mut files = Self::attach(root, cap_bytes)?;
        for directory in 0..=u8::MAX {
            let path = root.join(format!("{directory:02x}"));
            fs::create_dir_all(&path).map_err(Error::path("create", &path))?;
        }
        let janitor = Janitor::new(root.to_owned(), Arc::clone(&files.tally));
        let janitor = std::thread::Builder::new()
            .name("janitor".to_owned())
            .spawn(move || janitor.run())
            .map_err(Error::io("start the janitor"))?;
        files.janitor = Some(janitor);
        Ok(files)
    }

    /// Opens an existing store. The process that created it keeps the cap. Only one process at a time may put.
    pub fn attach(root: &Path, cap_bytes: u64) -> Result<Self> {
        let prefix = root.to_str().ok_or_else(|| Error::Store {
            store: Self::NAME,
            what: format!("the directory's name is not UTF-8: {}", root.display()),
        })?;
        Ok(Self {
            root: root.to_owned(),
            prefix: prefix.to_owned(),
            started: Instant::now(),
            touched: Touched::new(),
            temporary: AtomicU64::new(0),
            tally: Arc::new(Tally::new(cap_bytes)),
            janitor: None,
        })
    }

    /// If the cap is exceeded, cleans now, as the janitor does every second. Returns the bytes that remain.
    pub fn clean(&self) -> Result<u64> {
        Janitor::new(self.root.clone(), Arc::clone(&self.tally)).check()
    }

    /// Writes `root/xx/name` into `path` and returns the key's hash.
    fn locate(&self, key: &[u8], path: &mut String) -> Result<u64> {
        if key.is_empty() || key.len() > KEY_BYTES_MAX {
            return Err(Error::Store {
                store: Self::NAME,
                what: format!("a key has 1 to {KEY_BYTES_MAX} bytes, not {}", key.len()),
            });
        }
        let hash = hash(key);
        path.clear();
        path.push_str(&self.prefix);
        let _ = write!(path, "/{:02x}/", hash >> 56);
        for byte in key {
            path.push(char::from(b"0123456789abcdef"[usize::from(byte >> 4)]));
            path.push(char::from(b"0123456789abcdef"[usize::from(byte & 15)]));
        }
        Ok(hash)
    }
}

/// FNV-1a with a final mix: cheap, and all bits depend on the key.
fn hash(key: &[u8]) -> u64 {
    let fold = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    random::mix(key.iter().fold(0xcbf2_9ce4_8422_2325, fold))
}

impl Drop for Files {
    fn drop(&mut self) {
        self.tally.stop();
        if let Some(janitor) = self.janitor.take() {
            // If the janitor panicked, it has written that to stderr, and there is nothing to clean up.
            let _ = janitor.join();
        }
    }
}

impl Store for Files {
    type Handle<'a> = FilesHandle<'a>;

    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn handle(&self) -> FilesHandle<'_> {
        FilesHandle { files: self, path: String::new(), buffer: vec![0; BUFFER_BYTES_FIRST] }
    }

    fn settle(&self) -> Result<()> {
        self.clean().map(|_| ())
    }

    fn footprint_bytes(&self) -> Result<Option<u64>> {
        Ok(Some(footprint::below(&self.root)?.bytes))
    }
}

/// One thread's buffers.
#[derive(Debug)]
pub struct FilesHandle<'a> {
    files: &'a Files,
    path: String,
    buffer: Vec<u8>,
}

impl FilesHandle<'_> {
    /// Reads a whole file into the buffer. A read that leaves room in the buffer has reached the end.
    fn read_all(&mut self, file: &impl std::os::fd::AsFd) -> rustix::io::Result<usize> {
        let mut filled = 0;
        loop {
            let read = rustix::io::read(file, &mut self.buffer[filled..])?;
            filled += read;
            if filled < self.buffer.len() {
                return Ok(filled);
            }
            self.buffer.resize(filled * 2, 0);
        }
    }

    fn failed(&self, verb: &'static str) -> impl Fn(rustix::io::Errno) -> Error + use<'_> {
        move |errno| Error::path(verb, Path::new(&self.path))(errno.into())
    }
}

impl Handle for FilesHandle<'_> {
    fn get(&mut self, key: &[u8], consumer: impl FnOnce(&[u8])) -> Result<bool> {
        let hash = self.files.locate(key, &mut self.path)?;
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = match rustix::fs::open(self.path.as_str(), flags, Mode::empty()) {
            Ok(file) => file,
            Err(rustix::io::Errno::NOENT) => return Ok(false),
            Err(errno) => return Err(self.failed("open")(errno)),
        };
        let bytes = match self.read_all(&file) {
            Ok(bytes) => bytes,
            Err(errno) => return Err(self.failed("read")(errno)),
        };
        let second = self.files.started.elapsed().as_secs() + 1;
        if self.files.touched.due(hash, second) {
            rustix::fs::futimens(&file, &ACCESSED_NOW).map_err(self.failed("touch"))?;
        }
        drop(file);
        consumer(&self.buffer[..bytes]);
        Ok(true)
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        check_size(Files::NAME, value, self.files.tally.cap_bytes())?;
        self.files.locate(key, &mut self.path)?;
        let number = self.files.temporary.fetch_add(1, Ordering::Relaxed);
        let directory_end = self.path.rfind('/').unwrap_or(0);
        let temporary = format!("{}/.{number}", &self.path[..directory_end]);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = rustix::fs::open(temporary.as_str(), flags, Mode::RUSR | Mode::WUSR)
            .map_err(self.failed("create a temporary file for"))?;
        let mut rest = value;
        while !rest.is_empty() {
            let written = rustix::io::write(&file, rest).map_err(self.failed("write"))?;
            rest = &rest[written..];
        }
        drop(file);
        rustix::fs::rename(temporary.as_str(), self.path.as_str()).map_err(self.failed("rename"))?;
        self.files.tally.add(value.len());
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Result<bool> {
        self.files.locate(key, &mut self.path)?;
        match rustix::fs::unlink(self.path.as_str()) {
            Ok(()) => Ok(true),
            Err(rustix::io::Errno::NOENT) => Ok(false),
            Err(errno) => Err(self.failed("unlink")(errno)),
        }
    }
}

const ACCESSED_NOW: Timestamps = Timestamps {
    last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_NOW as _ },
    last_modification: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT as _ },
};

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::thread;

    use super::Files;
    use crate::error::Result;
    use crate::load::Population;
    use crate::random;
    use crate::store::{Handle as _, Store};

    const CAP_BYTES: u64 = 4 << 20;

    fn twice_its_cap(directory: &Path) -> Result<Files> {
        let files = Files::create(directory, CAP_BYTES)?;
        let mut handle = files.handle();
        let population = Population { objects: 2 * CAP_BYTES / 4096, value_bytes: 4096 };
        for index in 0..population.objects {
            handle.put(&random::key(index), &population.value())?;
        }
        drop(handle);
        Ok(files)
    }

    #[test]
    fn after_a_cleaning_the_files_are_within_the_cap() -> Result<()> {
        let directory = tempfile::tempdir().expect("a directory");
        let files = twice_its_cap(directory.path())?;
        assert!(files.clean()? <= CAP_BYTES);
        let directories = 257 * 4096;
        let footprint = Store::footprint_bytes(&files)?;
        assert!(footprint.is_some_and(|bytes| bytes <= CAP_BYTES + directories), "{footprint:?}");
        Ok(())
    }

    #[test]
    fn several_who_clean_at_once_remove_as_much_as_one() -> Result<()> {
        let directory = tempfile::tempdir().expect("a directory");
        let files = twice_its_cap(directory.path())?;
        thread::scope(|scope| {
            let cleaning: Vec<_> = (0..8).map(|_| scope.spawn(|| files.clean())).collect();
            cleaning.into_iter().try_for_each(|one| one.join().expect("it doesn't panic").map(drop))
        })?;
        let left = Store::footprint_bytes(&files)?.expect("files tell");
        assert!(left >= CAP_BYTES / 4 * 3 - 4096, "{left}");
        Ok(())
    }

    #[test]
    fn what_was_only_overwritten_or_deleted_costs_nobody_else_a_place() -> Result<()> {
        let directory = tempfile::tempdir().expect("a directory");
        let files = Files::create(directory.path(), CAP_BYTES)?;
        let mut handle = files.handle();
        let value = random::filler(1, CAP_BYTES as usize / 4);
        for key in [&b"kept"[..], b"deleted"] {
            handle.put(key, &value)?;
        }
        for _ in 0..8 {
            handle.put(b"overwritten", &value)?;
        }
        assert!(handle.delete(b"deleted")?);
        files.clean()?;
        assert!(handle.get(b"kept", |_| {})?);
        assert!(handle.get(b"overwritten", |_| {})?);
        Ok(())
    }
}
