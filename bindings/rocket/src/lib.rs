#![doc = include_str!("../README.md")]
//!
//! # Where things are
//!
//! ```text
//! fairing  --> settings: what Rocket.toml says                          a FileCache, as state
//! file     a file that a handler names        \
//! files    a folder, as routes: route           --> answer: Rocket's types and those of `http`
//!                                              --> body: the pinned bytes, as Rocket reads them
//! ```

#![forbid(unsafe_code)]

mod answer;
mod body;
mod fairing;
mod file;
mod files;
mod route;
mod settings;

pub use eyewall_files::{FileCache, FileCacheOptions, FileStatistics, Freshness, Statistics, Symlinks, admission};

pub use fairing::Eyewall;
pub use file::CachedFile;
pub use files::CachedFiles;
pub use settings::Error;
