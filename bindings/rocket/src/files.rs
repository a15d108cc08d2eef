//! A folder as routes.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use eyewall_files::{FileCache, Folder, FolderOptions, Symlinks};
use rocket::State;
use rocket::fs::Options;
use rocket::http::{Method, Status};
use rocket::route::Route;

use crate::route::{Root, Served};

/// The rank of Rocket's `FileServer`.
const RANK: isize = 10;

/// A cached folder, to mount in place of Rocket's `FileServer`.
///
/// A missing or hidden file is forwarded to the next route. Responses are those of [`crate::CachedFile`].
///
/// ```no_run
/// use eyewall_rocket::{CachedFiles, Eyewall};
///
/// #[rocket::launch]
/// fn rocket() -> _ {
///     rocket::build()
///         .attach(Eyewall::fairing())
///         .mount("/", CachedFiles::from("static").precompressed(true))
///         .mount("/downloads", CachedFiles::from("/srv/downloads").index::<String>([]).rank(20))
/// }
/// ```
#[derive(Debug, Clone)]
pub struct CachedFiles {
    root: PathBuf,
    files: Option<FileCache>,
    folder: FolderOptions,
    /// `None`: as the fairing's settings say.
    precompressed: Option<bool>,
    is_normalized: bool,
    is_file_allowed: bool,
    may_be_missing: bool,
    rank: isize,
}

impl CachedFiles {
    /// Serves a folder through the [`FileCache`] in Rocket's state, which [`crate::Eyewall`] manages. Without
    /// one, Rocket doesn't launch.
    pub fn from(root: impl AsRef<Path>) -> Self {
        Self {
            root: root.as_ref().to_owned(),
            files: None,
            folder: FolderOptions::default(),
            precompressed: None,
            is_normalized: false,
            is_file_allowed: false,
            may_be_missing: false,
            rank: RANK,
        }
    }

    /// Serves a folder through a file cache of the program's own.
    pub fn new(root: impl AsRef<Path>, files: &FileCache) -> Self {
        Self { files: Some(files.clone()), ..Self::from(root) }
    }

    /// Sets all of Rocket's options at once, as `FileServer::new` does; options that are missing in the set
    /// are off.
    pub fn options(mut self, options: Options) -> Self {
        self.folder.index = if options.contains(Options::Index) { vec!["index.html".to_owned()] } else { Vec::new() };
        self.folder.dotfiles = options.contains(Options::DotFiles);
        self.is_normalized = options.contains(Options::NormalizeDirs);
        self.is_file_allowed = options.contains(Options::IndexFile);
        self.may_be_missing = options.contains(Options::Missing);
        self
    }

    /// Sets the rank of the routes. The default is 10.
    pub fn rank(mut self, rank: isize) -> Self {
        self.rank = rank;
        self
    }

    /// Sets the names of index files; the first that exists is sent. The default is `index.html`. Without
    /// any, requests for folders are forwarded.
    pub fn index<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.folder.index = names.into_iter().map(Into::into).collect();
        self
    }

    /// Whether to serve names that begin with a dot. The default is false.
    pub fn dotfiles(mut self, yes: bool) -> Self {
        self.folder.dotfiles = yes;
        self
    }

    /// Sets which symbolic links below the root to follow. The default is those that stay below it;
    /// `FileServer` follows all.
    pub fn symlinks(mut self, symlinks: Symlinks) -> Self {
        self.folder.symlinks = symlinks;
        self
    }

    /// Whether precompressed files (`name.br`, `name.zst`, `name.gz`) are sent in place of `name`, if the
    /// client accepts them and they aren't older. The default is that of the fairing's settings.
    pub fn precompressed(mut self, yes: bool) -> Self {
        self.precompressed = Some(yes);
        self
    }

    /// Whether a folder with an index is redirected (308) to the path with a slash at its end, so that
    /// relative links work. The default is false: the index is sent for both paths.
    pub fn normalize_dirs(mut self, yes: bool) -> Self {
        self.is_normalized = yes;
        self
    }

    /// Whether the root may be a file, which is then sent for the mount point itself. The default is false.
    pub fn index_file(mut self, yes: bool) -> Self {
        self.is_file_allowed = yes;
        self
    }

    /// Whether the root may be missing at the launch; until it exists, all requests are forwarded. The
    /// default is false.
    pub fn missing(mut self, yes: bool) -> Self {
        self.may_be_missing = yes;
        self
    }

    fn is_there(&self) -> bool {
        fs::metadata(&self.root).is_ok_and(|root| root.is_dir() || self.is_file_allowed && root.is_file())
    }

    /// The settings that it was given.
    pub(crate) fn files(&self) -> Option<&FileCache> {
        self.files.as_ref()
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn is_normalized(&self) -> bool {
        self.is_normalized
    }

    /// Opens the root and determines its type once. It waits for storage.
    pub(crate) fn open(&self, files: &FileCache, precompressed: bool) -> io::Result<Root> {
        if self.is_file_allowed && fs::metadata(&self.root)?.is_file() {
            return Ok(Root::File);
        }
        let precompressed = self.precompressed.unwrap_or(precompressed);
        let options = FolderOptions { precompressed, ..self.folder.clone() };
        Folder::open(&self.root, files, options).map(Root::Folder)
    }
}

/// Rocket checks its signature at launch, and so whether its state has a `FileCache`.
#[rocket::get("/<_..>")]
fn with_managed_files(_files: &State<FileCache>) -> Status {
    Status::NotFound
}

/// # Panics
/// At the launch, like Rocket's `FileServer`, if the root is missing and [may not](CachedFiles::missing) be.
impl From<CachedFiles> for Vec<Route> {
    fn from(served: CachedFiles) -> Self {
        let root = served.root.display().to_string();
        let is_there = served.may_be_missing || served.is_there();
        let looked_at = std::path::absolute(&served.root).unwrap_or_else(|_| served.root.clone());
        assert!(
            is_there,
            "CachedFiles: {} is not a folder; create it, or call missing(true), or index_file(true) for a file",
            looked_at.display()
        );
        let (rank, has_own) = (served.rank, served.files.is_some());
        let served = Served::new(served);
        let mut routes = if has_own {
            vec![Route::new(Method::Get, "/<path..>", served)]
        } else {
            let mut routes = rocket::routes![with_managed_files];
            for route in &mut routes {
                route.handler = Box::new(served.clone());
            }
            routes
        };
        for route in &mut routes {
            route.rank = rank;
            route.name = Some(format!("CachedFiles: {root}").into());
        }
        routes
    }
}
