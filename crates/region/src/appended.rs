//! A small file that many processes append to, and that one of them reads and empties.
//!
//! Each call opens the file again, so a daemon that closes all descriptors takes nothing away, and a file that was removed and created
//! again is found. Appenders hold a shared lock (`flock`) for their one `write`. A holder of the exclusive lock knows that no append is
//! under way. The kernel drops the locks of a process that ends.

use std::fs::OpenOptions;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;
use rustix::io::Errno;

use crate::file::{self, Access, Created, Identity};
use crate::fork::Private;
use crate::liveness::{self, Alive};

/// How long a process sleeps before it tries to lock again.
const LOCK_PAUSE: Duration = Duration::from_micros(200);
/// The byte that the reader locks.
const READER_BYTE: u32 = 0;

/// Which other holders a lock allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// Others with this lock.
    Shared,
    /// None.
    Exclusive,
}

/// The open file.
#[derive(Debug)]
pub struct Appended(Private);

impl Appended {
    /// Opens the file; `None` if there is none. Links aren't followed.
    ///
    /// # Errors
    /// What `open` reports.
    pub fn open(path: &Path) -> io::Result<Option<Self>> {
        let mut options = OpenOptions::new();
        let flags = libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_NOFOLLOW | libc::O_NOCTTY;
        options.read(true).append(true).custom_flags(flags);
        match Private::open(|| options.open(path)) {
            Ok(file) if file.metadata()?.is_file() => Ok(Some(Self(file))),
            Ok(_) => Err(io::Error::new(ErrorKind::InvalidInput, "it is not a regular file")),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Opens the file and locks it, until this is dropped. `None` if there is none.
    ///
    /// # Errors
    /// What `open` reports; `TimedOut` if other holders keep the lock for longer than `wait`.
    pub fn lock(path: &Path, hold: Hold, wait: Duration) -> io::Result<Option<Self>> {
        let start = Instant::now();
        let operation = match hold {
            Hold::Shared => FlockOperation::NonBlockingLockShared,
            Hold::Exclusive => FlockOperation::NonBlockingLockExclusive,
        };
        loop {
            let Some(opened) = Self::open(path)? else { return Ok(None) };
            loop {
                match rustix::fs::flock(&*opened.0, operation) {
                    Ok(()) => break,
                    Err(Errno::INTR) => {}
                    Err(Errno::WOULDBLOCK) if start.elapsed() < wait => std::thread::sleep(LOCK_PAUSE),
                    Err(Errno::WOULDBLOCK) => return Err(ErrorKind::TimedOut.into()),
                    Err(error) => return Err(error.into()),
                }
            }
            if file::identity_at(path).is_ok_and(|shown| opened.identity().is_ok_and(|ours| ours == shown)) {
                return Ok(Some(opened));
            }
        }
    }

    /// Creates an empty file, unless the path has one.
    ///
    /// # Errors
    /// Those of [`file::create`].
    pub fn create(path: &Path, access: Access) -> io::Result<()> {
        match file::create(path, 0, access, |_| Ok(()))? {
            Created::New(_) | Created::Exists => Ok(()),
        }
    }

    /// Which file it is.
    ///
    /// # Errors
    /// What `statx` reports.
    pub fn identity(&self) -> io::Result<Identity> {
        file::identity(&self.0)
    }

    /// Its length in bytes.
    ///
    /// # Errors
    /// What `fstat` reports.
    pub fn bytes(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    /// Appends bytes by one `write`. Other processes see all of them or, after an error or a death, a part.
    ///
    /// # Errors
    /// `FileTooLarge` if the file would be longer than `bytes_max`, or than this process may make it; `StorageFull`; what `write` reports.
    pub fn append(&self, bytes: &[u8], bytes_max: u64) -> io::Result<()> {
        let after = self.bytes()? + bytes.len() as u64;
        // Beyond its own limit, the process would get a signal.
        if after > bytes_max.min(file::size_limit()) {
            return Err(ErrorKind::FileTooLarge.into());
        }
        // A second `write` could stand behind the bytes of others.
        let written = loop {
            match rustix::io::write(&*self.0, bytes) {
                Err(Errno::INTR) => {}
                other => break other?,
            }
        };
        if written == bytes.len() { Ok(()) } else { Err(ErrorKind::StorageFull.into()) }
    }

    /// Reads at most `bytes_max` bytes from `at` on.
    ///
    /// # Errors
    /// What `pread` reports.
    pub fn read(&self, at: u64, bytes_max: usize) -> io::Result<Vec<u8>> {
        let left = self.bytes()?.saturating_sub(at).min(bytes_max as u64) as usize;
        let mut bytes = vec![0; left];
        let mut read = 0;
        while read < left {
            match self.0.read_at(&mut bytes[read..], at + read as u64) {
                Ok(0) => break,
                Ok(count) => read += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        bytes.truncate(read);
        Ok(bytes)
    }

    /// Empties the file. The caller has the exclusive lock.
    ///
    /// # Errors
    /// What `ftruncate` reports.
    pub fn clear(&self) -> io::Result<()> {
        self.0.set_len(0)
    }

    /// Makes this process the reader of the file, until the returned lock is dropped; `None` if another one is.
    ///
    /// # Errors
    /// What `fcntl`, `mmap` and `madvise` report.
    pub fn become_reader(self) -> io::Result<Option<Alive>> {
        if liveness::try_lock(&self.0, READER_BYTE)? { Alive::keep(self.0).map(Some) } else { Ok(None) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACCESS: Access = Access { mode: 0o640, group: None };

    #[test]
    fn many_append_and_one_reads() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        assert!(Appended::open(&path).unwrap().is_none());
        Appended::create(&path, ACCESS).unwrap();
        Appended::create(&path, ACCESS).unwrap();
        let one = Appended::lock(&path, Hold::Shared, Duration::ZERO).unwrap().unwrap();
        let two = Appended::lock(&path, Hold::Shared, Duration::ZERO).unwrap().unwrap();
        one.append(b"one ", 100).unwrap();
        two.append(b"two ", 100).unwrap();
        assert_eq!(one.append(b"three", 12).unwrap_err().kind(), ErrorKind::FileTooLarge);
        let exclusive = Appended::lock(&path, Hold::Exclusive, Duration::ZERO);
        assert_eq!(exclusive.unwrap_err().kind(), ErrorKind::TimedOut);
        assert_eq!((two.read(4, 100).unwrap(), two.read(2, 2).unwrap()), (b"two ".to_vec(), b"e ".to_vec()));
        drop((one, two));
        let exclusive = Appended::lock(&path, Hold::Exclusive, Duration::ZERO).unwrap().unwrap();
        exclusive.clear().unwrap();
        assert_eq!((exclusive.bytes().unwrap(), exclusive.read(8, 9).unwrap()), (0, Vec::new()));
    }

    #[test]
    fn there_is_one_reader() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        Appended::create(&path, ACCESS).unwrap();
        let become_reader = || Appended::open(&path).unwrap().unwrap().become_reader().unwrap();
        let reader = become_reader().unwrap();
        assert!(become_reader().is_none());
        drop(reader);
        assert!(become_reader().is_some());
    }

    #[test]
    fn a_link_or_a_folder_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::os::unix::fs::symlink("/dev/null", &path).unwrap();
        assert!(Appended::open(&path).is_err());
        assert!(Appended::open(folder.path()).is_err());
    }
}
