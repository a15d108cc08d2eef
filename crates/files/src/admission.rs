//! Which files are kept. What is kept yields by the volume's own policy, which weighs use against size; who is to be kept at all may
//! be narrowed here.
//!
//! ```
//! use eyewall::Options;
//! use eyewall_files::{FileCache, FileCacheOptions, admission};
//!
//! # fn main() -> eyewall::Result<()> {
//! // Only what was asked for twice, and no video.
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
    /// Where it lies: an absolute path.
    pub path: &'a Path,
    /// How long it is.
    pub bytes: u64,
    /// How often this process was asked for it, this time among them. It is forgotten where more than 16,384 files are asked for.
    pub asked: u64,
}

/// Says whether a file is to be kept. Asked each time that one is sent: the rest of what lies in the volume in part is kept if the
/// answer is yes now. It must not wait.
pub(crate) type Admission = Box<dyn Fn(&Candidate<'_>) -> bool + Send + Sync>;

/// Everything: what is asked for once is kept, and is the first to go.
pub fn everything() -> impl Fn(&Candidate<'_>) -> bool + Send + Sync + 'static {
    |_| true
}

/// What was asked for so often: one-time readers of many files don't write them all into the volume.
pub fn asked_for(times: u64) -> impl Fn(&Candidate<'_>) -> bool + Send + Sync + 'static {
    move |file| file.asked >= times
}

/// Small files at once; others once they were asked for once more for each further `step` bytes. So large files have to earn
/// their room by use.
pub fn by_use_and_size(step: u64) -> impl Fn(&Candidate<'_>) -> bool + Send + Sync + 'static {
    move |file| file.asked > file.bytes / step.max(1)
}

/// Files whose names end so, without the dot: `["css", "js"]`.
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
    fn each_lets_in_what_it_says() {
        assert!(everything()(&file("/a", u64::MAX, 0)));
        assert!(!asked_for(2)(&file("/a", 1, 1)) && asked_for(2)(&file("/a", 1, 2)));
        let css = extensions(["css", "js"]);
        assert!(css(&file("/a.css", 1, 1)) && css(&file("/a.min.js", 1, 1)));
        assert!(!css(&file("/a.html", 1, 1)) && !css(&file("/css", 1, 1)));
    }

    #[test]
    fn a_large_file_has_to_be_asked_for_more_often() {
        let admits = by_use_and_size(1 << 20);
        assert!(admits(&file("/small", 1000, 1)));
        assert!(!admits(&file("/large", 3 << 20, 3)) && admits(&file("/large", 3 << 20, 4)));
        assert!(by_use_and_size(0)(&file("/a", 0, 1)), "a step of nothing is one of a byte");
    }
}
