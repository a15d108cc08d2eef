//! Files by the program's own paths, and options for all files of a volume.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime};

use eyewall::Cache;
use eyewall_http::message::Request;
use tokio::task::spawn_blocking;

use crate::admission::{self, Admission, Candidate};
use crate::coding::{self, Coding};
use crate::file::{Answer, CachedFile, is_changed};
use crate::folder::{FolderOptions, Found, LOOKS_MAX, Look, Tree};
use crate::fragment;
use crate::open_files::OpenFiles;
use crate::path::FilePath;
use crate::root::{Root, Symlinks, is_absence};
use crate::statistics::{Counters, FileStatistics, Statistics};
use crate::store::Store;

/// The default maximum of a file: this part of the volume, in whole fragments.
const SHARE_OF_A_FILE: u64 = 4;

/// How to notice a changed file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// By inotify: a request that begins after the change gets the new file. Changes that inotify doesn't
    /// report (mounts, writes through a map) are noticed within a second. On file systems that other machines
    /// change (networks), each request calls stat.
    Watched,
    /// A look at the file system counts for so long, even if there was nothing. So the old file may be sent
    /// for so long after a change. Within a second after a change, a look counts only once, since file times
    /// are too coarse.
    Interval(Duration),
}

/// Options for the files of a volume ([`FileCacheOptions::build`]).
pub struct FileCacheOptions {
    min_bytes: u64,
    max_bytes: Option<u64>,
    freshness: Freshness,
    precompressed: bool,
    admission: Admission,
}

impl FileCacheOptions {
    /// The defaults: files up to a quarter of the volume are kept, and changes are noticed at once.
    ///
    /// A file that takes more than 1/32 of the volume is kept at its second request, once half of the volume has been written. An
    /// admission doesn't change that ([`Cache::displaces_much`]).
    pub fn new() -> Self {
        Self {
            min_bytes: 0,
            max_bytes: None,
            freshness: Freshness::Watched,
            precompressed: false,
            admission: Box::new(admission::everything()),
        }
    }

    /// Shorter files aren't kept.
    pub fn min_bytes(mut self, bytes: u64) -> Self {
        self.min_bytes = bytes;
        self
    }

    /// Longer files aren't kept. A file may be longer than an entry: it is stored in fragments of a mebibyte,
    /// or of the volume's largest entry. The default is a quarter of the volume, rounded up to whole
    /// fragments.
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = Some(bytes);
        self
    }

    /// Sets how to notice changes.
    pub fn freshness(mut self, freshness: Freshness) -> Self {
        self.freshness = freshness;
        self
    }

    /// Whether [`FileCache::open`] sends precompressed files beside a file to clients that accept them; see
    /// [`FolderOptions::precompressed`]. The default is false.
    pub fn precompressed(mut self, yes: bool) -> Self {
        self.precompressed = yes;
        self
    }

    /// Sets which files are kept: by a closure, or one of [`crate::admission`]. It must not block.
    pub fn admission(mut self, admits: impl Fn(&Candidate<'_>) -> bool + Send + Sync + 'static) -> Self {
        self.admission = Box::new(admits);
        self
    }

    /// Creates the file cache of a volume with these options.
    pub fn build(self, cache: Cache) -> FileCache {
        let fragment_bytes = fragment::fragment_bytes(cache.entry_bytes_max());
        // Round up, since the volume's size is rounded down: four files of 10 MB should fit into 40 MB.
        let share = (cache.size() / SHARE_OF_A_FILE).next_multiple_of(fragment_bytes);
        let store = Store {
            fragment_bytes,
            min_bytes: self.min_bytes,
            max_bytes: self.max_bytes.unwrap_or(share),
            admission: self.admission,
            counters: Counters::default(),
            open_files: OpenFiles::default(),
            has_warned: AtomicBool::new(false),
            cache,
        };
        let options = FolderOptions {
            index: Vec::new(),
            symlinks: Symlinks::Anywhere,
            dotfiles: true,
            precompressed: self.precompressed,
        };
        let everything = Tree::new(Root::everything(), options, self.freshness);
        FileCache { store: Arc::new(store), everything: Arc::new(everything), freshness: self.freshness }
    }
}

impl Default for FileCacheOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for FileCacheOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileCacheOptions")
            .field("min_bytes", &self.min_bytes)
            .field("max_bytes", &self.max_bytes)
            .field("freshness", &self.freshness)
            .field("precompressed", &self.precompressed)
            .finish_non_exhaustive()
    }
}

/// The files of a volume. Clones are the same cache. Processes that open the volume share its files, but each
/// watches for changes by itself.
#[derive(Clone)]
pub struct FileCache {
    store: Arc<Store>,
    everything: Arc<Tree>,
    freshness: Freshness,
}

impl FileCache {
    /// With the default options: [`FileCacheOptions::new`].
    pub fn new(cache: Cache) -> Self {
        FileCacheOptions::new().build(cache)
    }

    /// The volume.
    pub fn cache(&self) -> &Cache {
        &self.store.cache
    }

    pub(crate) fn store(&self) -> &Arc<Store> {
        &self.store
    }

    pub(crate) fn freshness(&self) -> Freshness {
        self.freshness
    }

    /// Finds a file. It follows symbolic links wherever they lead. So the path must be the program's own; for
    /// paths from clients, use [`crate::Folder`]. It needs a Tokio runtime.
    ///
    /// # Errors
    /// The system's error; `NotFound` also for a path that is not a file.
    pub async fn open(&self, path: impl AsRef<Path>) -> io::Result<CachedFile> {
        let path = std::path::absolute(path)?;
        match FilePath::of_absolute(&path).and_then(|path| self.everything.lookup_ahead(&path)) {
            Some(known) => self.file(known, &path),
            None => self.look_elsewhere(&path).await,
        }
    }

    /// Does the same, and blocks.
    ///
    /// # Errors
    /// As for [`FileCache::open`].
    pub fn open_blocking(&self, path: impl AsRef<Path>) -> io::Result<CachedFile> {
        let path = std::path::absolute(path)?;
        let look = match self.lookup(&path) {
            Some(known) => known,
            None => self.look(&path)?,
        };
        self.file(look, &path)
    }

    /// Answers a request for a file: [`FileCache::open`] and [`CachedFile::answer`]. If the file changes
    /// meanwhile, it is looked up again.
    ///
    /// # Errors
    /// As for [`FileCache::open`].
    pub async fn answer(&self, path: impl AsRef<Path>, request: Request<'_>) -> io::Result<Answer> {
        let path = std::path::absolute(path)?;
        let mut file = self.open(&path).await?;
        for _ in 1..LOOKS_MAX {
            match file.answer(request).await {
                Err(error) if is_changed(&error) => file = self.look_elsewhere(&path).await?,
                other => return other,
            }
        }
        file.answer(request).await
    }

    /// [`FileCache::open`] and [`CachedFile::prepare`], for callers that must answer without waiting. If the
    /// file has changed since the last look, it is looked up again.
    ///
    /// # Errors
    /// As for [`FileCache::open`].
    pub async fn open_prepared(&self, path: impl AsRef<Path>) -> io::Result<CachedFile> {
        let path = std::path::absolute(path)?;
        let mut file = self.open(&path).await?;
        for _ in 1..LOOKS_MAX {
            match file.prepare().await {
                Err(error) if is_changed(&error) => file = self.look_elsewhere(&path).await?,
                other => return other.map(|()| file),
            }
        }
        file.prepare().await.map(|()| file)
    }

    fn lookup(&self, path: &Path) -> Option<Look> {
        self.everything.lookup(&FilePath::of_absolute(path)?)
    }

    async fn look_elsewhere(&self, path: &Path) -> io::Result<CachedFile> {
        let (this, looked) = (self.clone(), path.to_owned());
        let looking = spawn_blocking(move || this.look(&looked));
        let look = looking.await.unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))?;
        self.file(look, path)
    }

    fn look(&self, path: &Path) -> io::Result<Look> {
        let resolved = match without_steps_up(path) {
            Err(error) if is_absence(&error) => return Err(no_file_at(path)),
            other => other?,
        };
        let plain = FilePath::of_absolute(&resolved).ok_or(io::ErrorKind::InvalidInput)?;
        self.everything.look(&plain, SystemTime::now(), &self.store.counters)
    }

    fn file(&self, look: Look, path: &Path) -> io::Result<CachedFile> {
        match look.found(&self.store, &self.everything) {
            Found::File(file) => Ok(file),
            Found::Folder | Found::Nothing => Err(no_file_at(path)),
        }
    }

    /// Looks at a file again, and reads all of it into the volume again. Returns whether it is kept: false if
    /// its size or the admission excludes it. It counts as a request. It blocks.
    ///
    /// # Errors
    /// As for [`FileCache::open`], and those of reading.
    pub fn refresh(&self, path: impl AsRef<Path>) -> io::Result<bool> {
        let path = std::path::absolute(path)?;
        self.remove(&path).map_err(io::Error::other)?;
        let file = self.file(self.look(&path)?, &path)?;
        for piece in file.content_to_keep() {
            piece?;
        }
        Ok(file.is_cached())
    }

    /// Removes a file, and the precompressed ones beside it, from the volume. Returns whether there was
    /// anything. Waits for other writers.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn remove(&self, path: impl AsRef<Path>) -> eyewall::Result<bool> {
        let mut is_removed = false;
        for path in names(path.as_ref()) {
            let bytes = fs::metadata(&path).map_or(0, |metadata| metadata.len());
            is_removed |= self.store.remove(&fragment::first_key(&path), bytes)?;
        }
        Ok(is_removed)
    }

    /// Whether the volume has all of the present file. It blocks.
    ///
    /// # Errors
    /// As for [`FileCache::open`].
    pub fn contains(&self, path: impl AsRef<Path>) -> io::Result<bool> {
        Ok(self.open_blocking(path)?.is_cached())
    }

    /// How many bytes of files the volume has, including those of other processes and old versions. It walks
    /// over all entries, so don't call it for each request.
    pub fn used_bytes(&self) -> u64 {
        let files = self.store.cache.iter_all().filter(|hit| hit.key().starts_with(fragment::PREFIX));
        files.map(|hit| hit.value().len() as u64).sum()
    }

    /// What this process has sent since the cache was built.
    pub fn statistics(&self) -> Statistics {
        self.store.counters.statistics()
    }

    /// What this process has sent of one file; a precompressed file beside it counts by itself. Blocks if the
    /// path contains `..`. `None` if the file wasn't requested, or was forgotten, since only 16,384 files are
    /// counted.
    pub fn file_statistics(&self, path: impl AsRef<Path>) -> Option<FileStatistics> {
        self.store.counters.file_statistics(&name_of(path.as_ref()))
    }
}

fn no_file_at(path: &Path) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("no file exists at {}", path.display()))
}

/// The file at a path, and the precompressed ones beside it, whether they exist or not.
fn names(path: &Path) -> impl Iterator<Item = PathBuf> {
    let plain = name_of(path);
    let precompressed = Coding::ALL.map(|coding| coding::beside(coding, &plain));
    std::iter::once(plain).chain(precompressed)
}

/// The path under which a file is stored and counted.
fn name_of(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let path = without_steps_up(&path).unwrap_or(path);
    // `components` removes a slash at the end.
    path.components().collect()
}

/// Returns an absolute path unchanged. If it contains `..`, whose meaning depends on links, the system resolves
/// it.
fn without_steps_up(path: &Path) -> io::Result<PathBuf> {
    if path.components().all(|component| component != Component::ParentDir) {
        return Ok(path.to_owned());
    }
    match (fs::canonicalize(path), path.parent(), path.file_name()) {
        // The file is gone, but its folder exists.
        (Err(error), Some(folder), Some(name)) if error.kind() == io::ErrorKind::NotFound => {
            Ok(fs::canonicalize(folder)?.join(name))
        }
        (resolved, ..) => resolved,
    }
}

impl fmt::Debug for FileCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileCache").field("volume", &self.store.cache.path()).finish_non_exhaustive()
    }
}
