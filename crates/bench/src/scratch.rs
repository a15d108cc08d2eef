//! The directories of the stores during a measurement.

use std::cell::RefCell;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use rustix::fs::{Advice, FlockOperation};
use tempfile::TempDir;

use crate::error::{Error, Result};
use crate::machine;

/// The storage of a store's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Storage {
    /// The disk directory.
    Disk,
    /// The shared-memory directory.
    Shm,
}

/// The prefix of the names of runs' directories.
const PREFIX: &str = "eyewall-scratch-";

/// A directory on the disk, a directory in shared memory, and the directories made in them.
#[derive(Debug)]
pub struct Scratch {
    /// Before the directories that contain them, since fields are dropped in order.
    kept: RefCell<Vec<TempDir>>,
    disk: Ground,
    shm: Ground,
}

impl Scratch {
    /// Makes the run's directories below these, which have to exist. The default on the disk is beside this program.
    /// Removes the directories that killed runs have left there.
    pub fn new(disk: Option<PathBuf>, shm: PathBuf) -> Result<Self> {
        let disk = match disk {
            Some(disk) => disk,
            None => beside_program()?,
        };
        Ok(Self { kept: RefCell::default(), disk: Ground::new(disk)?, shm: Ground::new(shm)? })
    }

    fn ground(&self, storage: Storage) -> &Ground {
        match storage {
            Storage::Disk => &self.disk,
            Storage::Shm => &self.shm,
        }
    }

    /// The directory of a storage, as it was named.
    pub fn directory(&self, storage: Storage) -> &Path {
        &self.ground(storage).named
    }

    /// A new directory. Dropping it removes it.
    pub fn make(&self, storage: Storage) -> Result<TempDir> {
        let directory = self.ground(storage).own.path();
        TempDir::new_in(directory).map_err(Error::path("create a scratch directory in", directory))
    }

    /// A new directory that stays until the run ends. ext4 doesn't reuse inodes for minutes after they are freed, and
    /// searches past them. So the files that one repetition removed would slow down the creation of files in the next
    /// one.
    pub fn make_until_end(&self, storage: Storage) -> Result<PathBuf> {
        let directory = self.make(storage)?;
        let path = directory.path().to_owned();
        self.kept.borrow_mut().push(directory);
        Ok(path)
    }

    /// Drops the pages of all files below a directory on the disk from memory, except pages that a process has mapped.
    pub fn forget(&self, directory: &Path) -> Result<()> {
        self.settle(Storage::Disk)?;
        forget_below(directory)
    }

    /// Free space in bytes.
    pub fn free_bytes(&self, storage: Storage) -> Result<u64> {
        machine::free_bytes(self.directory(storage))
    }

    /// Waits until the disk has written all dirty pages, so that one store's backlog doesn't count against another
    /// store.
    pub fn settle(&self, storage: Storage) -> Result<()> {
        if storage == Storage::Shm {
            return Ok(());
        }
        let directory = self.directory(storage);
        File::open(directory)
            .and_then(|handle| Ok(rustix::fs::syncfs(handle)?))
            .map_err(Error::path("sync the file system of", directory))
    }
}

/// A run's own directory, inside a given one.
#[derive(Debug)]
struct Ground {
    named: PathBuf,
    own: TempDir,
    /// A lock on `own`. If another process can take this lock, the run is gone: the kernel releases it when the process
    /// ends, for whatever reason.
    _lock: File,
}

impl Ground {
    fn new(named: PathBuf) -> Result<Self> {
        remove_left(&named)?;
        loop {
            let own = tempfile::Builder::new()
                .prefix(PREFIX)
                .tempdir_in(&named)
                .map_err(Error::path("create a scratch directory in", &named))?;
            let lock = File::open(own.path()).and_then(|file| {
                rustix::fs::flock(&file, FlockOperation::LockExclusive)?;
                Ok(file)
            });
            match lock {
                // Another run that began at the same time may have removed it, as a leftover.
                Ok(lock) if own.path().exists() => return Ok(Self { named, own, _lock: lock }),
                Err(failure) if failure.kind() != ErrorKind::NotFound => {
                    return Err(Error::path("lock", own.path())(failure));
                }
                _ => {}
            }
        }
    }
}

/// Removes the directories of runs that are gone.
fn remove_left(named: &Path) -> Result<()> {
    for entry in fs::read_dir(named).map_err(Error::path("list", named))? {
        let entry = entry.map_err(Error::path("list", named))?;
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        // The directory has vanished, or another user owns it and denies access: then it isn't ours to remove.
        let Ok(directory) = File::open(entry.path()) else { continue };
        if rustix::fs::flock(&directory, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    Ok(())
}

fn forget_below(directory: &Path) -> Result<()> {
    for entry in fs::read_dir(directory).map_err(Error::path("list", directory))? {
        let path = entry.map_err(Error::path("list", directory))?.path();
        if path.is_dir() {
            forget_below(&path)?;
        } else if path.is_file() {
            File::open(&path)
                .and_then(|file| Ok(rustix::fs::fadvise(file, 0, None, Advice::DontNeed)?))
                .map_err(Error::path("drop from memory", &path))?;
        }
    }
    Ok(())
}

fn beside_program() -> Result<PathBuf> {
    let program = std::env::current_exe().map_err(Error::io("find this program"))?;
    Ok(program.parent().map_or_else(|| PathBuf::from("."), Path::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_run_that_was_killed_has_left_is_removed() {
        let named = tempfile::tempdir().unwrap();
        let left = named.path().join(format!("{PREFIX}left"));
        fs::create_dir(&left).unwrap();
        fs::write(left.join("volume"), "bytes").unwrap();
        let other = named.path().join("somebody-else");
        fs::create_dir(&other).unwrap();
        let directory = || Some(named.path().to_owned());
        let first = Scratch::new(directory(), named.path().to_owned()).unwrap();
        let made = first.make(Storage::Disk).unwrap();
        let kept = first.make_until_end(Storage::Shm).unwrap();
        assert!(!left.exists() && other.exists());
        // Another run leaves directories in use alone.
        let second = Scratch::new(directory(), named.path().to_owned()).unwrap();
        assert!(made.path().exists() && kept.exists());
        drop((made, first, second));
        assert_eq!(fs::read_dir(named.path()).unwrap().count(), 1);
    }
}
