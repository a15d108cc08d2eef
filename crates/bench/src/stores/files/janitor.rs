//! Keeps a directory of files near its cap, with a delay of a second.

use std::fs::{self, DirEntry};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::error::{Error, Result};

const CHECK_EVERY: Duration = Duration::from_secs(1);

/// The share of the cap that remains after a cleaning.
const REMAIN_PERCENT: u64 = 75;

/// File systems allocate in blocks of this size, so a cap on disk has to count such blocks.
const BLOCK_BYTES: usize = 4096;

/// Unit of `st_blocks`.
const STAT_BLOCK_BYTES: u64 = 512;

/// Bytes in the directory, as reported by the writers, and the janitor's stop signal.
#[derive(Debug)]
pub(super) struct Tally {
    cap_bytes: u64,
    used_bytes: AtomicI64,
    /// Held during a cleaning. If two threads cleaned at once, each would remove enough files, so too many would go.
    cleaning: Mutex<()>,
    stopped: Mutex<bool>,
    changed: Condvar,
}

impl Tally {
    pub(super) fn new(cap_bytes: u64) -> Self {
        Self {
            cap_bytes,
            used_bytes: AtomicI64::new(0),
            cleaning: Mutex::new(()),
            stopped: Mutex::new(false),
            changed: Condvar::new(),
        }
    }

    pub(super) fn cap_bytes(&self) -> u64 {
        self.cap_bytes
    }

    /// Counts a put. An overwrite counts twice, and a removal doesn't count, until a cleaning counts again.
    pub(super) fn add(&self, bytes: usize) {
        let blocks = bytes.next_multiple_of(BLOCK_BYTES) as i64;
        self.used_bytes.fetch_add(blocks, Ordering::Relaxed);
    }

    pub(super) fn stop(&self) {
        *self.stopped.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Waits for the next check. False after the stop.
    fn wait(&self) -> bool {
        let stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        let (stopped, _) = self
            .changed
            .wait_timeout_while(stopped, CHECK_EVERY, |stopped| !*stopped)
            .unwrap_or_else(PoisonError::into_inner);
        !*stopped
    }
}

/// The cleaning thread.
#[derive(Debug)]
pub(super) struct Janitor {
    root: PathBuf,
    tally: Arc<Tally>,
}

struct Found {
    accessed: (i64, i64),
    bytes: u64,
    path: PathBuf,
}

impl Janitor {
    pub(super) fn new(root: PathBuf, tally: Arc<Tally>) -> Self {
        Self { root, tally }
    }

    pub(super) fn run(self) {
        while self.tally.wait() {
            if let Err(failure) = self.check() {
                eprintln!("janitor: {failure}");
            }
        }
    }

    /// Cleans if the cap is exceeded. Returns the bytes that remain, as far as known.
    pub(super) fn check(&self) -> Result<u64> {
        let _alone = self.tally.cleaning.lock().unwrap_or_else(PoisonError::into_inner);
        let used = self.tally.used_bytes.load(Ordering::Relaxed);
        if used <= self.tally.cap_bytes as i64 {
            return Ok(used.max(0) as u64);
        }
        let remain = self.clean()?;
        self.tally.used_bytes.fetch_add(remain as i64 - used, Ordering::Relaxed);
        Ok(remain)
    }

    fn clean(&self) -> Result<u64> {
        let mut found = self.walk()?;
        let mut total: u64 = found.iter().map(|file| file.bytes).sum();
        if total <= self.tally.cap_bytes {
            return Ok(total);
        }
        found.sort_unstable_by_key(|file| file.accessed);
        let target = self.tally.cap_bytes * REMAIN_PERCENT / 100;
        for file in found {
            if total <= target {
                break;
            }
            match fs::remove_file(&file.path) {
                // It was deleted meanwhile, and takes no space any more.
                Err(failure) if failure.kind() != ErrorKind::NotFound => {}
                _ => total -= file.bytes,
            }
        }
        Ok(total)
    }

    /// All entries, except those that vanish meanwhile.
    fn walk(&self) -> Result<Vec<Found>> {
        let mut found = Vec::new();
        for directory in fs::read_dir(&self.root).map_err(Error::path("list", &self.root))? {
            let directory = directory.map_err(Error::path("list", &self.root))?.path();
            let entries = fs::read_dir(&directory).map_err(Error::path("list", &directory))?;
            found.extend(entries.flatten().filter_map(|entry| entry_of(&entry)));
        }
        Ok(found)
    }
}

/// `None` for a temporary file, and for a file that has vanished.
fn entry_of(entry: &DirEntry) -> Option<Found> {
    if entry.file_name().as_encoded_bytes().starts_with(b".") {
        return None;
    }
    let metadata = entry.metadata().ok()?;
    Some(Found {
        accessed: (metadata.atime(), metadata.atime_nsec()),
        bytes: (metadata.blocks() * STAT_BLOCK_BYTES).max(metadata.len()),
        path: entry.path(),
    })
}
