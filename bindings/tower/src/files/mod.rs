//! File services: [`ServeDir`] and [`ServeFile`], for axum, hyper and everything else that takes a [`tower_service::Service`].
//!
//! Files are read once and stored in a volume. All processes of the machine share it, and it survives a restart. Responses send the
//! volume's bytes without a copy. The next request after a change gets the new file. [`eyewall_files`] does the work; this module turns
//! its answers into responses.
//!
//! ```no_run
//! use axum::Router;
//! use eyewall::Options;
//! use eyewall_tower::files::{FileCache, ServeDir, ServeFile};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let files = FileCache::new(Options::new().size(256 << 20).open("files.eyewall")?);
//! let app: Router = Router::new()
//!     .nest_service("/assets", ServeDir::new("dist/assets", &files)?.precompressed(true))
//!     .fallback_service(ServeFile::new("dist/index.html", &files));
//! axum::serve(tokio::net::TcpListener::bind("127.0.0.1:3000").await?, app).await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Responses
//!
//! | status | when |
//! |---|---|
//! | 200, 206 | a file, or [ranges](https://www.rfc-editor.org/rfc/rfc9110#section-14) of it |
//! | 301 | a folder with an index, requested without the slash at the end; the query is kept |
//! | 304, 412, 416 | by the request's [conditions](https://www.rfc-editor.org/rfc/rfc9110#section-13) and ranges |
//! | 400 | the path is malformed, or contains `..`; the fallback, if there is one, answers first |
//! | 403 | the process may not read the file |
//! | 404 | the file is missing, or not served; the fallback answers first |
//! | 405 | the method is neither GET nor HEAD |
//! | 500 | the file can't be read |
//!
//! Errors have a line of text as their body, and tell caches not to store them.

mod body;
mod fallback;
mod future;
mod reply;
mod serve_dir;
mod serve_file;

pub use body::Body;
pub use eyewall_files::{FileCache, FileCacheOptions, FileStatistics, Freshness, Statistics, Symlinks, admission};
pub use fallback::NoFallback;
pub use future::ResponseFuture;
pub use serve_dir::ServeDir;
pub use serve_file::ServeFile;
