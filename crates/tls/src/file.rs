//! Small files that hold secrets, and that other processes replace.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{FlockOperation, flock};
use zeroize::Zeroizing;

/// A file that this crate reads is no longer than this: a chain of certificates has some 10 KB.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Device, inode, size and times of a file. A file whose stamp is the same wasn't replaced, and most probably not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    /// That of the file at a path, symbolic links followed; `None` where it can't be looked at.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let metadata = std::fs::metadata(path).ok()?;
        Some(Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        })
    }
}

/// Reads a file that may hold a secret: its bytes are overwritten when they are dropped.
pub(crate) fn read_secret(path: &Path) -> io::Result<Zeroizing<Vec<u8>>> {
    let file = File::open(path)?;
    let bytes = file.metadata()?.len();
    if bytes > FILE_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is larger than 1 MiB"));
    }
    // With room for all of it, reading never moves the bytes and leaves no copy behind.
    let mut content = Zeroizing::new(Vec::with_capacity(bytes as usize + 1));
    file.take(bytes).read_to_end(&mut content)?;
    Ok(content)
}

/// Whether anybody but the owner may read or write a file. A file that isn't there counts as the owner's.
pub(crate) fn is_open_to_others(path: &Path, bits: u32) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & bits != 0)
}

/// Replaces a file by one that only its owner may read and write (0600). After a crash or a power loss the file is the old one or the
/// new one, whole.
pub(crate) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}-{}.new", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed)));
    let new = path.with_file_name(name);
    let written = write_new(&new, content).and_then(|()| std::fs::rename(&new, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&new);
        return written;
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

fn write_new(path: &Path, content: &[u8]) -> io::Result<()> {
    // A process that had the same id and was killed may have left one.
    let _ = std::fs::remove_file(path);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(content)?;
    file.sync_all()
}

/// A lock among processes: flock on a file of its own, which stays. It ends when it is dropped, and with its process.
#[derive(Debug)]
pub(crate) struct FileLock {
    file: File,
}

impl FileLock {
    /// Waits for the lock.
    pub(crate) fn wait(path: &Path) -> io::Result<Self> {
        let file = Self::open(path)?;
        flock(&file, FlockOperation::LockExclusive)?;
        Ok(Self { file })
    }

    /// Takes the lock; `None` where another has it.
    pub(crate) fn try_take(path: &Path) -> io::Result<Option<Self>> {
        let file = Self::open(path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Self { file })),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn open(path: &Path) -> io::Result<File> {
        OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)
    }
}

impl Drop for FileLock {
    /// Closing the file isn't enough: a child that another thread just forked has it, too, until it executes its program.
    fn drop(&mut self) {
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

/// The path of the lock of a file.
pub(crate) fn lock_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_file_is_the_owners_and_has_another_stamp() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        replace(&path, b"one").unwrap();
        let first = Stamp::of(&path).unwrap();
        assert_eq!(Stamp::of(&path), Some(first));
        assert!(!is_open_to_others(&path, 0o077));
        // Of the same length.
        replace(&path, b"two").unwrap();
        assert_ne!(Stamp::of(&path), Some(first));
        assert_eq!(**read_secret(&path).unwrap(), *b"two");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn one_holds_a_lock() {
        let folder = tempfile::tempdir().unwrap();
        let path = lock_of(&folder.path().join("a"));
        let held = FileLock::wait(&path).unwrap();
        assert!(FileLock::try_take(&path).unwrap().is_none());
        drop(held);
        assert!(FileLock::try_take(&path).unwrap().is_some());
    }

    #[test]
    fn a_file_that_is_too_large_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("large");
        File::create(&path).unwrap().set_len(FILE_BYTES_MAX + 1).unwrap();
        assert_eq!(read_secret(&path).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    }
}
