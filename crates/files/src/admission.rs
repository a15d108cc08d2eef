//! Decides which files are kept in the volume at all. Which of those stay is the engine's choice, by use and size.
//!
//! ```
//! use eyewall::Options;
//! use eyewall_files::{FileCache, FileCacheOptions, admission};
//!
//! # fn main() -> eyewall::Result<()> {
//! // Only files that were requested twice, and no videos.
//! let twice = admission::asked_for(2);
//! let files = FileCacheOptions::new()
//!     .admission(move |file| twice(file) && file.path.extension().is_none_or(|extension| extension != "mp4"))
//!     .build(Options::new().size(64 << 20).anonymous()?);
//! # Ok(())
//! # }
//! ```

use std::ffi::OsString;
use std::path::Path;

/// A file that may be kept.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    /// Its absolute path.
    pub path: &'a Path,
    /// Its length in bytes.
    pub bytes: u64,
    /// How often this process was asked for it, including this time. The process counts at most 16,384 files,
    /// and forgets others.
    pub asked: u64,
}

/// Decides whether to keep a file. It is called each time the file is sent: if it says yes, the missing rest of a
/// partly stored file is stored now. It must not block.
pub(crate) type Admission = Box<dyn Fn(&Candidate<'_>) -> bool + Send + Sync>;

/// Admits everything. A file that is requested only once is evicted first.
pub fn everything() -> impl Fn(&Candidate<'_>) -> bool + Send + Sync + 'static {
    |_| true
}

/// Admits a file at its so many-th request: reading many files once doesn't write them all into the volume.
pub fn asked_for(times: u64) -> impl Fn(&Candidate<'_>) -> bool + Send + Sync + 'static {
    move |file| file.asked >= times
}

/// Admits small files at once, and each larger file after one more request per `step` bytes. So large files must
/// earn their room by use.
pub fn by_use_and_size(step: u64) -> impl Fn(&Candidate<'_>) -> bool + Send + Sync + 'static {
    move |file| file.asked > file.bytes / step.max(1)
}

/// Admits files with one of these extensions, without the dot: `["css", "js"]`.
pub fn extensions<E>(extensions: impl IntoIterator<Item = E>) -> impl Fn(&Candidate<'_>) -> bool + Send + Sync + 'static
where
    E: Into<OsString>,
{
    let known: Vec<OsString> = extensions.into_iter().map(Into::into).collect();
    move |file| file.path.extension().is_some_and(|extension| known.iter().any(|known| known == extension))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, bytes: u64, asked: u64) -> Candidate<'_> {
        Candidate { path: Path::new(path), bytes, asked }
    }

    #[test]
    fn each_rule_admits_the_files_that_it_names() {
        assert!(everything()(&file("/a", u64::MAX, 0)));
        assert!(!asked_for(2)(&file("/a", 1, 1)) && asked_for(2)(&file("/a", 1, 2)));
        let css = extensions(["css", "js"]);
        assert!(css(&file("/a.css", 1, 1)) && css(&file("/a.min.js", 1, 1)));
        assert!(!css(&file("/a.html", 1, 1)) && !css(&file("/css", 1, 1)));
    }

    #[test]
    fn a_large_file_needs_more_requests() {
        let admits = by_use_and_size(1 << 20);
        assert!(admits(&file("/small", 1000, 1)));
        assert!(!admits(&file("/large", 3 << 20, 3)) && admits(&file("/large", 3 << 20, 4)));
        assert!(by_use_and_size(0)(&file("/a", 0, 1)), "a step of 0 counts as one byte");
    }
}
