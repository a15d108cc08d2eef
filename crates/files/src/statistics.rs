//! Statistics of the requests for files in this process.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// The maximum number of counted files. When it is reached, those that were requested recently stay.
const FILES_MAX: usize = 16_384;

/// What a process has sent of one file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FileStatistics {
    /// Requests that were answered with content from the volume: with their first byte, at least.
    pub hits: u64,
    /// Requests whose first byte had to be read from the file.
    pub misses: u64,
}

/// What a process has sent of all files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Requests that were answered with content from the volume: with their first byte, at least.
    pub hits: u64,
    /// Requests whose first byte had to be read from the file.
    pub misses: u64,
    /// Fragments of files that were read and stored.
    pub stored: u64,
    /// Fragments, or pieces of that length, that were read and not stored: because of their size, the admission, a recent change, or a
    /// failed volume.
    pub not_stored: u64,
    /// Looks at the file system for a path.
    pub looks: u64,
}

/// Counters of one file. They order no other memory access.
#[derive(Debug, Default)]
pub(crate) struct FileCounters {
    hits: AtomicU64,
    misses: AtomicU64,
    /// Whether it was requested after the table was last full.
    is_recent: AtomicBool,
}

impl FileCounters {
    pub(crate) fn asked(&self) -> u64 {
        self.hits.load(Ordering::Relaxed) + self.misses.load(Ordering::Relaxed)
    }
}

/// Counters of all files.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    hits: AtomicU64,
    misses: AtomicU64,
    stored: AtomicU64,
    not_stored: AtomicU64,
    looks: AtomicU64,
    files: RwLock<HashMap<PathBuf, Arc<FileCounters>>>,
}

impl Counters {
    /// The counters of a file. If the table is full, only the caller keeps them.
    pub(crate) fn of(&self, path: &Path) -> Arc<FileCounters> {
        if let Some(known) = self.files.read().unwrap_or_else(PoisonError::into_inner).get(path) {
            return Arc::clone(known);
        }
        let mut files = self.files.write().unwrap_or_else(PoisonError::into_inner);
        if files.len() >= FILES_MAX {
            files.retain(|_, file| file.is_recent.swap(false, Ordering::Relaxed));
        }
        if files.len() >= FILES_MAX {
            return Arc::default();
        }
        Arc::clone(files.entry(path.to_owned()).or_default())
    }

    pub(crate) fn count_hit(&self, file: &FileCounters) {
        self.hits.fetch_add(1, Ordering::Relaxed);
        file.hits.fetch_add(1, Ordering::Relaxed);
        file.is_recent.store(true, Ordering::Relaxed);
    }

    pub(crate) fn count_miss(&self, file: &FileCounters) {
        self.misses.fetch_add(1, Ordering::Relaxed);
        file.misses.fetch_add(1, Ordering::Relaxed);
        file.is_recent.store(true, Ordering::Relaxed);
    }

    pub(crate) fn count_read(&self, is_stored: bool) {
        let counter = if is_stored { &self.stored } else { &self.not_stored };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_look(&self) {
        self.looks.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn statistics(&self) -> Statistics {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Statistics {
            hits: count(&self.hits),
            misses: count(&self.misses),
            stored: count(&self.stored),
            not_stored: count(&self.not_stored),
            looks: count(&self.looks),
        }
    }

    pub(crate) fn file_statistics(&self, path: &Path) -> Option<FileStatistics> {
        let files = self.files.read().unwrap_or_else(PoisonError::into_inner);
        let file = files.get(path)?;
        Some(FileStatistics { hits: file.hits.load(Ordering::Relaxed), misses: file.misses.load(Ordering::Relaxed) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_files_replace_files_without_recent_requests() {
        let counters = Counters::default();
        let path = |number: usize| PathBuf::from(format!("/{number}"));
        for number in 0..FILES_MAX {
            counters.of(&path(number));
        }
        counters.count_hit(&counters.of(&path(0)));
        counters.count_miss(&counters.of(&path(FILES_MAX)));
        assert_eq!(counters.file_statistics(&path(0)), Some(FileStatistics { hits: 1, misses: 0 }));
        assert_eq!(counters.file_statistics(&path(FILES_MAX)), Some(FileStatistics { hits: 0, misses: 1 }));
        assert_eq!(counters.file_statistics(&path(1)), None);
    }

    #[test]
    fn if_all_files_are_in_use_a_new_one_is_counted_alone() {
        let counters = Counters::default();
        let known: Vec<_> = (0..FILES_MAX).map(|number| counters.of(Path::new(&format!("/{number}")))).collect();
        for file in &known {
            counters.count_hit(file);
        }
        let late = counters.of(Path::new("/late"));
        counters.count_hit(&late);
        assert_eq!((late.asked(), counters.file_statistics(Path::new("/late"))), (1, None));
        assert_eq!(counters.statistics().hits, FILES_MAX as u64 + 1);
    }
}
