//! Files as services: [`ServeDir`] and [`ServeFile`], for axum, hyper, and whatever else takes a [`tower_service::Service`].
//!
//! Files are read once and kept in a volume, which all processes of the machine share and in which they stay over a restart. What is
//! sent lies where it is in the volume. A file that changes is sent as it is from the next request on. All of it is done by
//! [`eyewall_files`]; here are its answers as responses.
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
//! # What is answered
//!
//! | status | when |
//! |---|---|
//! | 200, 206 | a file, or [ranges](https://www.rfc-editor.org/rfc/rfc9110#section-14) of it |
//! | 301 | a folder with an index, without the slash at the end; the query is kept |
//! | 304, 412, 416 | by the request's [conditions](https://www.rfc-editor.org/rfc/rfc9110#section-13) and ranges |
//! | 400 | the path is malformed, or steps upwards; the fallback is asked first, if there is one |
//! | 403 | the process may not read the file |
//! | 404 | there is nothing, or nothing that is served; the fallback is asked first |
//! | 405 | neither GET nor HEAD |
//! | 500 | the file can't be read |
//!
//! Errors have a line of text as their body, and aren't stored by caches.

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
