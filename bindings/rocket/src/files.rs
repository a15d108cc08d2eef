//! A folder, as routes.

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

/// A folder with a volume in front of it, to be mounted in the place of Rocket's `FileServer`.
///
/// What isn't there, or isn't to be seen, is forwarded to the next route. Answers are those of [`crate::CachedFile`].
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
    /// What the fairing's settings say, unless it is said.
    precompressed: Option<bool>,
    is_normalized: bool,
    is_file_allowed: bool,
    may_be_missing: bool,
    rank: isize,
}

impl CachedFiles {
    /// A folder, through the [`FileCache`] among the state that Rocket manages: that of [`crate::Eyewall`]. Rocket isn't launched
    /// without one.
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

    /// A folder, through a file cache of the program's own.
    pub fn new(root: impl AsRef<Path>, files: &FileCache) -> Self {
        Self { files: Some(files.clone()), ..Self::from(root) }
    }

    /// All of Rocket's options at once, for who comes from `FileServer::new`; what the set doesn't have is off.
    pub fn options(mut self, options: Options) -> Self {
        self.folder.index = if options.contains(Options::Index) { vec!["index.html".to_owned()] } else { Vec::new() };
        self.folder.dotfiles = options.contains(Options::DotFiles);
        self.is_normalized = options.contains(Options::NormalizeDirs);
        self.is_file_allowed = options.contains(Options::IndexFile);
        self.may_be_missing = options.contains(Options::Missing);
        self
    }

    /// The rank of the routes; 10 unless it is set.
    pub fn rank(mut self, rank: isize) -> Self {
        self.rank = rank;
        self
    }

    /// Names of the files that stand for their folder: the first that is there. `index.html` unless it is set; with none, requests
    /// for folders are forwarded.
    pub fn index<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.folder.index = names.into_iter().map(Into::into).collect();
        self
    }

    /// Whether names that begin with a dot are served. They aren't, unless it is set.
    pub fn dotfiles(mut self, yes: bool) -> Self {
        self.folder.dotfiles = yes;
        self
    }

    /// Which symbolic links below the root are followed. Those that stay below it, unless it is set; `FileServer` follows all.
    pub fn symlinks(mut self, symlinks: Symlinks) -> Self {
        self.folder.symlinks = symlinks;
        self
    }

    /// Whether precompressed files (`name.br`, `name.zst`, `name.gz`) are sent in the place of those that they lie beside, where the client
    /// takes them and they aren't older. As the fairing's settings say, unless it is set.
    pub fn precompressed(mut self, yes: bool) -> Self {
        self.precompressed = Some(yes);
        self
    }

    /// Whether a folder that has an index and is asked for without the slash at the end is redirected to the path with it (308), so
    /// that relative links lead where they should. It isn't unless it is set: then the index is sent for both.
    pub fn normalize_dirs(mut self, yes: bool) -> Self {
        self.is_normalized = yes;
        self
    }

    /// Whether the root may be a file, which is sent for the mount point itself. It may not, unless it is set.
    pub fn index_file(mut self, yes: bool) -> Self {
        self.is_file_allowed = yes;
        self
    }

    /// Whether the root may be missing when it is mounted; until it is there, all requests are forwarded. It may not, unless it is set.
    pub fn missing(mut self, yes: bool) -> Self {
        self.may_be_missing = yes;
        self
    }

    fn is_there(&self) -> bool {
        fs::metadata(&self.root).is_ok_and(|root| root.is_dir() || self.is_file_allowed && root.is_file())
    }

    /// Those that it was given.
    pub(crate) fn files(&self) -> Option<&FileCache> {
        self.files.as_ref()
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn is_normalized(&self) -> bool {
        self.is_normalized
    }

    /// The root, open: what it is is found out once. Waits.
    pub(crate) fn open(&self, files: &FileCache, precompressed: bool) -> io::Result<Root> {
        if self.is_file_allowed && fs::metadata(&self.root)?.is_file() {
            return Ok(Root::File);
        }
        let precompressed = self.precompressed.unwrap_or(precompressed);
        let options = FolderOptions { precompressed, ..self.folder.clone() };
        Folder::open(&self.root, files, options).map(Root::Folder)
    }
}

/// Lends its signature: Rocket checks at launch that there is a `FileCache` among its state.
#[rocket::get("/<_..>")]
fn with_managed_files(_files: &State<FileCache>) -> Status {
    Status::NotFound
}

/// # Panics
/// As Rocket's `FileServer` does, when it is mounted: where the root isn't there, and isn't [said](CachedFiles::missing) to come later.
impl From<CachedFiles> for Vec<Route> {
    fn from(served: CachedFiles) -> Self {
        let root = served.root.display().to_string();
        let is_there = served.may_be_missing || served.is_there();
        let looked_at = std::path::absolute(&served.root).unwrap_or_else(|_| served.root.clone());
        assert!(is_there, "CachedFiles: there is no folder to be served at {}", looked_at.display());
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
