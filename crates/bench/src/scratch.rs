//! Where stores lie while they are measured.

use std::cell::RefCell;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use rustix::fs::Advice;
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

/// A directory on the disk and one in shared memory, and what was made in them.
#[derive(Debug)]
pub struct Scratch {
    disk: PathBuf,
    shm: PathBuf,
    kept: RefCell<Vec<TempDir>>,
}

impl Scratch {
    /// Below these directories, which exist; on the disk, beside this program unless told otherwise.
    pub fn new(disk: Option<PathBuf>, shm: PathBuf) -> Result<Self> {
        let disk = match disk {
            Some(disk) => disk,
            None => beside_program()?,
        };
        Ok(Self { disk, shm, kept: RefCell::new(Vec::new()) })
    }

    /// The directory behind a storage.
    pub fn directory(&self, storage: Storage) -> &Path {
        match storage {
            Storage::Disk => &self.disk,
            Storage::Shm => &self.shm,
        }
    }

    /// A new directory that is gone when it is dropped.
    pub fn make(&self, storage: Storage) -> Result<TempDir> {
        let directory = self.directory(storage);
        tempfile::Builder::new()
            .prefix("eyewall-bench-")
            .tempdir_in(directory)
            .map_err(Error::path("create a scratch directory in", directory))
    }

    /// A new directory that stays until the run ends. ext4 shuns inodes freed within the last minutes and searches past
    /// them, so files that one repetition removed would slow those that the next one creates.
    pub fn make_until_end(&self, storage: Storage) -> Result<PathBuf> {
        let directory = self.make(storage)?;
        let path = directory.path().to_owned();
        self.kept.borrow_mut().push(directory);
        Ok(path)
    }

    /// Drops the pages of all files below a directory of the disk from memory, but for those that a process has mapped.
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
