//! The ways to the bytes of files.

use std::fs;
use std::path::PathBuf;

use eyewall::Cache;
use eyewall_files::FileCache;

use crate::error::{Error, Result};
use crate::plain::PlainHandle;
use crate::random;
use crate::store::Handle as _;

/// A way to the bytes of files.
pub(super) trait Way {
    /// Shows all bytes of a file to the caller, piece by piece.
    fn open(&mut self, number: usize, consume: impl FnMut(&[u8])) -> Result<()>;

    /// Empties its cache.
    fn empty(&mut self) -> Result<()> {
        Ok(())
    }

    /// Empties its cache of paths.
    fn forget(&mut self) {}

    /// How many files came out of the cache, and how many did not, since the cache of paths was last emptied. `None` if
    /// the way has no cache.
    fn hits_and_misses(&self) -> Option<(u64, u64)> {
        None
    }
}

/// By `eyewall-files`.
pub(super) struct Cached<'a> {
    pub(super) cache: &'a Cache,
    pub(super) files: FileCache,
    pub(super) paths: &'a [PathBuf],
}

impl Way for Cached<'_> {
    #[inline]
    fn open(&mut self, number: usize, mut consume: impl FnMut(&[u8])) -> Result<()> {
        let path = &self.paths[number];
        let file = self.files.open_blocking(path).map_err(Error::path("open", path))?;
        for piece in file.content() {
            consume(&piece.map_err(Error::path("read", path))?);
        }
        Ok(())
    }

    fn empty(&mut self) -> Result<()> {
        self.cache.clear()?;
        Ok(())
    }

    fn forget(&mut self) {
        self.files = FileCache::new(self.cache.clone());
    }

    fn hits_and_misses(&self) -> Option<(u64, u64)> {
        let statistics = self.files.statistics();
        Some((statistics.hits, statistics.misses))
    }
}

/// Reads into a buffer that it keeps.
pub(super) struct Kept<'a> {
    pub(super) handle: PlainHandle<'a>,
}

impl Way for Kept<'_> {
    #[inline]
    fn open(&mut self, number: usize, consume: impl FnMut(&[u8])) -> Result<()> {
        self.handle.get(&random::key(number as u64), consume).map(|_| ())
    }
}

/// Reads into memory that is new each time.
pub(super) struct Read<'a> {
    pub(super) paths: &'a [PathBuf],
}

impl Way for Read<'_> {
    #[inline]
    fn open(&mut self, number: usize, mut consume: impl FnMut(&[u8])) -> Result<()> {
        let path = &self.paths[number];
        consume(&fs::read(path).map_err(Error::path("read", path))?);
        Ok(())
    }
}
