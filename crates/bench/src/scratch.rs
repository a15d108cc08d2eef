//! Where stores lie while they are measured.

use std::cell::RefCell;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use rustix::fs::{Advice, FlockOperation};
use tempfile::TempDir;

use crate::error::{Error, Result};
use crate::machine;

/// Where a store's files lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Storage {
    /// The disk directory.
    Disk,
    /// The shared-memory directory.
    Shm,
}

/// What the directories of runs are called.
const PREFIX: &str = "eyewall-scratch-";

/// A directory on the disk and one in shared memory, and what was made in them.
#[derive(Debug)]
pub struct Scratch {
    /// Before the grounds that they lie in.
    kept: RefCell<Vec<TempDir>>,
    disk: Ground,
    shm: Ground,
}

impl Scratch {
    /// Below these directories, which exist; on the disk, beside this program unless told otherwise. What runs that were killed
    /// have left there is removed.
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

    /// The directory behind a storage, as it was named.
    pub fn directory(&self, storage: Storage) -> &Path {
        &self.ground(storage).named
    }

    /// A new directory that is gone when it is dropped.
    pub fn make(&self, storage: Storage) -> Result<TempDir> {
        let directory = self.ground(storage).own.path();
        TempDir::new_in(directory).map_err(Error::path("create a scratch directory in", directory))
    }

    /// A new directory that stays until the run ends. ext4 shuns inodes freed within the last minutes and searches past
    /// them, so files that one repetition removed would slow those that the next one creates.
    pub fn make_until_end(&self, storage: Storage) -> Result<PathBuf> {
        let directory = self.make(storage)?;
        let path = directory.path().to_owned();
        self.kept.borrow_mut().push(directory);
        Ok(path)
    }

    /// Drops the pages of all files below a directory of the disk from memory, except those that a process has mapped.
    pub fn forget(&self, directory: &Path) -> Result<()> {
        self.settle(Storage::Disk)?;
        forget_below(directory)
    }

    /// Bytes that may still be written.
    pub fn free_bytes(&self, storage: Storage) -> Result<u64> {
        machine::free_bytes(self.directory(storage))
    }

    /// Lets the disk write what is dirty, so that one store's backlog is not measured as another's.
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

/// A run's own directory in one that was named.
#[derive(Debug)]
struct Ground {
    named: PathBuf,
    own: TempDir,
    /// Of `own`: a process that can lock it knows that its run is gone. It goes with the process, however that ends.
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
                // A run that began at the same time may have taken it for one that was left.
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
        // Gone meanwhile, or somebody else's who doesn't let us in: then it is not ours to remove.
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
        // A run beside it leaves alone what is in use.
        let second = Scratch::new(directory(), named.path().to_owned()).unwrap();
        assert!(made.path().exists() && kept.exists());
        drop((made, first, second));
        assert_eq!(fs::read_dir(named.path()).unwrap().count(), 1);
    }
}
