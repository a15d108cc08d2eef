//! Finds files of a folder by path: from memory while inotify guarantees that it is current, otherwise by a look at the file system.

use std::fmt;
use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Instant, SystemTime};

use eyewall_http::message::Request;
use http::HeaderValue;
use tokio::task::spawn_blocking;

use crate::cache::{FileCache, Freshness};
use crate::coding::{self, Coding};
use crate::file::{Answer, CachedFile, is_changed};
use crate::file_version::FileVersion;
use crate::fragment;
use crate::open_files::SharedFile;
use crate::path::FilePath;
use crate::path_cache::PathCache;
use crate::representation::{self, Named, Representation};
use crate::root::{Root, Symlinks, is_absence};
use crate::statistics::Counters;
use crate::store::Store;
use crate::walk::Walk;

/// Maximum number of looks for one request. A file that changes more often is being written all the time.
pub(crate) const LOOKS_MAX: usize = 3;

/// Which files of a folder are served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderOptions {
    /// Names of index files; the first that exists is sent. The default is `index.html`.
    pub index: Vec<String>,
    /// Which symbolic links below the root to follow. The default is those that stay below it.
    pub symlinks: Symlinks,
    /// Whether to serve names that begin with a dot; tell [`FilePath::parse`] the same. The default is false.
    pub dotfiles: bool,
    /// Whether precompressed files (`name.br`, `name.zst`, `name.gz`) are sent in place of `name`, if the
    /// client accepts them and they aren't older. The default is false.
    pub precompressed: bool,
}

impl Default for FolderOptions {
    fn default() -> Self {
        Self { index: vec!["index.html".to_owned()], symlinks: Symlinks::Below, dotfiles: false, precompressed: false }
    }
}

/// A cached folder. Clones are the same folder.
#[derive(Clone)]
pub struct Folder {
    pub(crate) store: Arc<Store>,
    pub(crate) tree: Arc<Tree>,
    freshness: Freshness,
}

/// What a path names.
#[derive(Debug)]
pub enum Found {
    /// A file.
    File(CachedFile),
    /// A folder with an index, requested without the slash at the end: redirect to
    /// [`FilePath::folder_location`].
    Folder,
    /// Nothing that is served.
    Nothing,
}

impl Found {
    /// Whether it is a file.
    pub fn is_file(&self) -> bool {
        matches!(self, Self::File(_))
    }
}

/// The answer to a request for a path.
#[derive(Debug)]
pub enum Answered {
    /// A file's answer.
    File(Box<Answer>),
    /// As [`Found::Folder`].
    Folder,
    /// As [`Found::Nothing`].
    Nothing,
}

impl Folder {
    /// Opens an existing folder. Its path isn't resolved: a root that is a symbolic link can be switched to
    /// another folder while it is served.
    ///
    /// # Errors
    /// The system's error; `Unsupported` before Linux 5.6, which lacks `openat2`.
    pub fn open(root: impl AsRef<Path>, files: &FileCache, options: FolderOptions) -> io::Result<Self> {
        let freshness = files.freshness();
        let tree = Tree::new(Root::open(root.as_ref())?, options, freshness);
        Ok(Self { store: Arc::clone(files.store()), tree: Arc::new(tree), freshness })
    }

    /// The same folder with other options. It doesn't share what this one knows of the files.
    pub fn with_options(&self, options: FolderOptions) -> Self {
        let tree = Tree::new(self.tree.root.clone(), options, self.freshness);
        Self { store: Arc::clone(&self.store), tree: Arc::new(tree), freshness: self.freshness }
    }

    /// Its options.
    pub fn options(&self) -> &FolderOptions {
        &self.tree.options
    }

    /// The root, as an absolute path.
    pub fn root(&self) -> &Path {
        self.tree.root.path()
    }

    /// Whether names that begin with a dot are served.
    pub fn serves_dotfiles(&self) -> bool {
        self.tree.options.dotfiles
    }

    /// Finds what a path names. It needs a Tokio runtime.
    ///
    /// # Errors
    /// The system's error if a file exists but can't be read. A missing file, or one that can't be reached
    /// below the root, is [`Found::Nothing`].
    pub async fn find(&self, path: &FilePath) -> io::Result<Found> {
        let look = match self.tree.lookup_ahead(path) {
            Some(known) => known,
            None => self.look(path).await?,
        };
        Ok(look.found(&self.store, &self.tree))
    }

    /// Answers a request for a path ([`CachedFile::answer`]). If the file changes meanwhile, it is looked up
    /// again.
    ///
    /// # Errors
    /// As for [`Folder::find`].
    pub async fn answer(&self, path: &FilePath, request: Request<'_>) -> io::Result<Answered> {
        self.answer_from_file(path, request, u64::MAX).await
    }

    /// The same for callers that can send bytes of a file themselves ([`CachedFile::answer_from_file`]).
    ///
    /// # Errors
    /// As for [`Folder::find`].
    pub async fn answer_from_file(
        &self,
        path: &FilePath,
        request: Request<'_>,
        bytes_min: u64,
    ) -> io::Result<Answered> {
        let mut found = self.find(path).await?;
        for looks in 1.. {
            let file = match found {
                Found::File(file) => file,
                Found::Folder => return Ok(Answered::Folder),
                Found::Nothing => return Ok(Answered::Nothing),
            };
            match file.answer_from_file(request, bytes_min).await {
                Err(error) if is_changed(&error) && looks < LOOKS_MAX => {
                    found = self.look(path).await?.found(&self.store, &self.tree);
                }
                other => return other.map(|answer| Answered::File(Box::new(answer))),
            }
        }
        unreachable!("the last look's answer is returned")
    }

    async fn look(&self, path: &FilePath) -> io::Result<Look> {
        let (store, tree, path) = (Arc::clone(&self.store), Arc::clone(&self.tree), path.clone());
        let looking = spawn_blocking(move || tree.look(&path, SystemTime::now(), &store.counters));
        looking.await.unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))
    }
}

impl fmt::Debug for Folder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Folder").field("root", &self.root()).finish_non_exhaustive()
    }
}

/// A folder, with its known files.
#[derive(Debug)]
pub(crate) struct Tree {
    root: Root,
    options: FolderOptions,
    /// `None` if inotify isn't available.
    path_cache: Option<PathCache>,
    /// Whether the warning about a skipped precompressed file was logged. A race may log it twice.
    has_told_of_old: AtomicBool,
}

/// The result of a look, and the files of its forms, in order, unless it was known before.
pub(crate) struct Look {
    pub(crate) named: Arc<Named>,
    pub(crate) files: Vec<File>,
}

impl Look {
    pub(crate) fn found(self, store: &Arc<Store>, tree: &Arc<Tree>) -> Found {
        match *self.named {
            Named::Folder => Found::Folder,
            Named::File(_) | Named::Nothing => {
                CachedFile::new(store, tree, &self.named, self.files).map_or(Found::Nothing, Found::File)
            }
        }
    }
}

impl Tree {
    pub(crate) fn new(root: Root, options: FolderOptions, freshness: Freshness) -> Self {
        let path_cache = match freshness {
            Freshness::Interval(trust) => Some(PathCache::trusting(trust)),
            Freshness::Watched => PathCache::watching()
                .inspect_err(|error| {
                    tracing::warn!(%error, "inotify isn't available, so each request for a file calls stat; check fs.inotify.max_user_instances");
                })
                .ok(),
        };
        Self { root, options, path_cache, has_told_of_old: AtomicBool::new(false) }
    }

    /// Returns what is known of a path, without waiting.
    pub(crate) fn lookup(&self, path: &FilePath) -> Option<Look> {
        let cached = self.path_cache.as_ref()?.lookup(path, Instant::now())?;
        Some(Look { named: cached.found, files: Vec::new() })
    }

    /// Returns what is known of a path. If that expires soon, another thread renews it, with everything else
    /// that is known. It needs a Tokio runtime.
    pub(crate) fn lookup_ahead(self: &Arc<Self>, path: &FilePath) -> Option<Look> {
        let cached = self.path_cache.as_ref()?.lookup(path, Instant::now())?;
        if cached.is_due {
            let tree = Arc::clone(self);
            spawn_blocking(move || tree.renew_due());
        }
        Some(Look { named: cached.found, files: Vec::new() })
    }

    fn renew_due(&self) {
        let Some(path_cache) = &self.path_cache else { return };
        for path in path_cache.due() {
            // A changed file is looked up by the next request for it.
            let _ = path_cache.renew(&path, Named::is_unchanged);
        }
        path_cache.has_renewed();
    }

    fn renew(&self, path: &FilePath) -> Option<Look> {
        let named = self.path_cache.as_ref()?.renew(path, Named::is_unchanged)?;
        Some(Look { named, files: Vec::new() })
    }

    /// Looks up what a path names. It may wait for storage, so don't call it on an event loop. `now` is not
    /// later than the look.
    pub(crate) fn look(&self, path: &FilePath, now: SystemTime, counters: &Counters) -> io::Result<Look> {
        if let Some(same) = self.renew(path) {
            return Ok(same);
        }
        counters.count_look();
        let since = Instant::now();
        let path_cache = self.path_cache.as_ref().filter(|_| PathCache::keeps(path));
        let mut walk = path_cache.filter(|path_cache| path_cache.is_watching()).map(Walk::new);
        let is_watched = walk.is_some();
        let (named, files) = self.find(path, now, counters, &mut walk)?;
        let named = Arc::new(named);
        let dependencies = if is_watched { walk.and_then(Walk::dependencies) } else { Some(Vec::new()) };
        if let Some(path_cache) = path_cache
            && let Some(dependencies) = dependencies
            && named.is_settled(now)
        {
            path_cache.insert(path, &named, dependencies, since);
        }
        Ok(Look { named, files })
    }

    /// The file at a path below the root.
    pub(crate) fn open(&self, path: &Path) -> io::Result<File> {
        self.root.find(path, self.options.symlinks)
    }

    fn find(
        &self,
        path: &FilePath,
        now: SystemTime,
        counters: &Counters,
        walk: &mut Option<Walk<'_>>,
    ) -> io::Result<(Named, Vec<File>)> {
        if path.is_folder() {
            return match self.find_index(path.relative(), walk)? {
                Some((index, file, metadata)) => {
                    Ok(self.representations(index, (file, &metadata), now, counters, walk))
                }
                None => Ok((Named::Nothing, Vec::new())),
            };
        }
        match self.open_watched(path.relative(), walk)? {
            Some((file, metadata)) if metadata.is_file() => {
                Ok(self.representations(path.relative().to_owned(), (file, &metadata), now, counters, walk))
            }
            Some((_, metadata)) if metadata.is_dir() && self.find_index(path.relative(), walk)?.is_some() => {
                Ok((Named::Folder, Vec::new()))
            }
            _ => Ok((Named::Nothing, Vec::new())),
        }
    }

    /// The first index name that is a file.
    fn find_index(&self, folder: &Path, walk: &mut Option<Walk<'_>>) -> io::Result<Option<(PathBuf, File, Metadata)>> {
        for name in &self.options.index {
            let path = folder.join(name);
            if let Some((file, metadata)) = self.open_watched(&path, walk)?
                && metadata.is_file()
            {
                return Ok(Some((path, file, metadata)));
            }
        }
        Ok(None)
    }

    /// The plain file and its precompressed ones.
    fn representations(
        &self,
        plain: PathBuf,
        (file, metadata): (File, &Metadata),
        now: SystemTime,
        counters: &Counters,
        walk: &mut Option<Walk<'_>>,
    ) -> (Named, Vec<File>) {
        let content_type = content_type(&plain);
        let version = FileVersion::of(metadata);
        let is_precompressed = coding::is_precompressed(&plain);
        let mut found = vec![(None, plain, version)];
        let mut files = vec![file];
        let codings = if self.options.precompressed && !is_precompressed { &Coding::ALL[..] } else { &[] };
        for &coding in codings {
            let path = coding::beside(coding, &found[0].1);
            // An unreadable precompressed file doesn't keep the plain one from being served.
            let Some((file, metadata)) = self.open_watched(&path, walk).ok().flatten() else { continue };
            let precompressed = FileVersion::of(&metadata);
            if !metadata.is_file() || self.is_left_out(&precompressed, &version, &path) {
                continue;
            }
            found.push((Some(coding), path, precompressed));
            files.push(file);
        }
        let is_chosen = found.len() > 1;
        let representations = found.into_iter().map(|(coding, below, version)| {
            let path = self.root.path().join(&below);
            let key = fragment::first_key(&path).into();
            let fields = representation::fields(coding, &content_type, is_chosen, &version, now);
            let (is_unsettled, counters) = (version.may_still_change(now), counters.of(&path));
            Arc::new(Representation {
                coding,
                below,
                path,
                version,
                fields,
                key,
                is_unsettled,
                is_sendable: OnceLock::new(),
                open: SharedFile::default(),
                field_lines: OnceLock::new(),
                counters,
            })
        });
        (Named::File(representations.collect()), files)
    }

    /// Whether a precompressed file may have another version than the plain one, because it is older.
    fn is_left_out(&self, precompressed: &FileVersion, plain: &FileVersion, path: &Path) -> bool {
        let is_old = precompressed.is_older_than(plain);
        if is_old && !self.has_told_of_old.swap(true, Ordering::Relaxed) {
            let path = path.display();
            tracing::warn!(%path, "a precompressed file is older than the plain one, so it is not served; compress it again (logged once)");
        }
        is_old
    }

    /// Opens the file or folder at a path below the root, which is watched from before on. `None` if there is
    /// nothing.
    fn open_watched(&self, path: &Path, walk: &mut Option<Walk<'_>>) -> io::Result<Option<(File, Metadata)>> {
        if let Some(walk) = walk {
            walk.watch(&self.root.path().join(path));
        }
        match self.open(path) {
            Ok(file) => {
                let metadata = file.metadata()?;
                Ok(Some((file, metadata)))
            }
            Err(error) if is_absence(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// By the name's extension; text counts as UTF-8.
fn content_type(path: &Path) -> HeaderValue {
    let guess = mime_guess::from_path(path).first_or_octet_stream();
    let text = if guess.type_() == "text" { format!("{guess}; charset=utf-8") } else { guess.to_string() };
    HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static("application/octet-stream"))
}

#[cfg(test)]
mod tests;
