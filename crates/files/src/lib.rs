//! Serves files from a volume, for any web server. It finds the file of a path, notices changes, reads the bytes from the cache, and
//! answers requests by the rules of HTTP. It has no sockets and no framework: `eyewall serve`, `eyewall-tower` and `eyewall-rocket`
//! build on it.
//!
//! # In one minute
//!
//! ```
//! use eyewall::Options;
//! use eyewall_files::{FileCache, FilePath, Folder, FolderOptions};
//! use eyewall_http::message::Request;
//! use http::{HeaderMap, Method};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let site = tempfile::tempdir()?;
//! # std::fs::write(site.path().join("index.html"), "<h1>Hello</h1>")?;
//! # let site = site.path();
//! // Or `.open("files.eyewall")?`, which all processes of the machine share.
//! let files = FileCache::new(Options::new().size(64 << 20).anonymous()?);
//!
//! // A file that the program names.
//! let page = files.open(site.join("index.html")).await?;
//! let fields = HeaderMap::new();
//! let answer = page.answer(Request { method: &Method::GET, fields: &fields }).await?;
//! assert_eq!(answer.status, 200);
//! assert_eq!(answer.fields["content-length"], "14");
//!
//! // A client's path, below a folder.
//! let folder = Folder::open(site, &files, FolderOptions::default())?;
//! let path = FilePath::parse("/index.html", folder.serves_dotfiles())?;
//! assert!(folder.find(&path).await?.is_file());
//! # Ok(())
//! # }
//! ```
//!
//! # How a request is answered
//!
//! ```text
//! path --> folder: what does it name?   path_cache: known, since nothing has changed      watches, walk
//!                                       root: the kernel's answer, below the root     file_version
//!      --> file: which representation (coding), which bytes of it (eyewall_http::answer)
//!      --> body, piece by piece --> store: from the volume, or read into it           fragment
//!                               or sendable: from the file itself, by the kernel    open_files
//! ```
//!
//! # Guarantees
//!
//! - Bytes come from the volume only if they were read from the file in its present version (device, inode, size, both times). So a
//!   changed file is never sent stale, except as [`Freshness`] permits.
//! - The bytes that are sent stay in the volume, pinned until the last one was taken.
//! - A caller that has the kernel send a file itself ([`CachedFile::answer_from_file`]) checks it after each call. Only a program that
//!   writes into the file later than that, instead of replacing it, can change bytes that are on their way.
//! - The event loop never waits for the file system, or for a page of the volume that isn't in memory.
//! - A volume that fails or is full makes answers slower, and fails none.

#![forbid(unsafe_code)]

pub mod admission;
mod body;
mod cache;
mod coding;
mod file;
mod file_version;
mod folder;
mod fragment;
mod open_files;
mod path;
mod path_cache;
mod recent_probes;
mod representation;
mod resident;
mod root;
mod sendable;
mod statistics;
mod store;
mod walk;
mod watches;

pub use body::Body;
pub use cache::{FileCache, FileCacheOptions, Freshness};
pub use coding::Coding;
pub use file::{Answer, CachedFile, Source, is_changed};
pub use folder::{Answered, Folder, FolderOptions, Found};
pub use path::{FilePath, Refusal};
pub use resident::ResidentFile;
pub use root::Symlinks;
pub use sendable::FilePiece;
pub use statistics::{FileStatistics, Statistics};
