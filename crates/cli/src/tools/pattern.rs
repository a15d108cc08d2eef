//! The patterns of `eyewall ls`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use globset::{Candidate, GlobBuilder, GlobMatcher};

use crate::Error;

/// Any of these makes a pattern a glob.
const GLOB_BYTES: &[u8] = b"*?[{\\";

/// Matches keys.
#[derive(Debug)]
pub(crate) enum Pattern {
    /// Keys that begin with these bytes.
    Prefix(Vec<u8>),
    /// Keys that match as a whole.
    Glob(Box<GlobMatcher>),
}

impl Pattern {
    /// The pattern of a command line; without one, all keys.
    pub(crate) fn new(words: Option<&OsStr>) -> Result<Self, Error> {
        let bytes = words.map_or(&b""[..], OsStr::as_bytes);
        if !bytes.iter().any(|byte| GLOB_BYTES.contains(byte)) {
            return Ok(Self::Prefix(bytes.to_owned()));
        }
        let text = std::str::from_utf8(bytes)
            .map_err(|_| Error::Pattern("a pattern with wildcards must be UTF-8".to_owned()))?;
        let glob = GlobBuilder::new(text)
            .backslash_escape(true)
            .build()
            .map_err(|error| Error::Pattern(format!("{error}; a backslash escapes `*`, `?`, `[` and `{{`")))?;
        Ok(Self::Glob(Box::new(glob.compile_matcher())))
    }

    pub(crate) fn matches(&self, key: &[u8]) -> bool {
        match self {
            Self::Prefix(prefix) => key.starts_with(prefix),
            Self::Glob(glob) => glob.is_match_candidate(&Candidate::from_bytes(key)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, key: &[u8]) -> bool {
        Pattern::new(Some(OsStr::new(pattern))).unwrap().matches(key)
    }

    #[test]
    fn a_pattern_without_wildcards_matches_the_beginning_of_a_key() {
        assert!(matches("/a/", b"/a/b") && !matches("/a/", b"/b/a/"));
        assert!(Pattern::new(None).unwrap().matches(b"anything"));
        assert!(Pattern::new(Some(OsStr::from_bytes(b"\xff"))).unwrap().matches(b"\xff\xfe"));
    }

    #[test]
    fn a_pattern_with_wildcards_matches_the_whole_key() {
        assert!(matches("/a/*.html", b"/a/b/c.html") && !matches("/a/*.html", b"/a/b.html?x"));
        assert!(matches("/?.css", b"/a.css") && !matches("/?.css", b"/ab.css"));
        assert!(matches("/[a-c]{1,2}", b"/b2") && !matches("/[a-c]{1,2}", b"/d1"));
        assert!(matches("/search\\?q=*", b"/search?q=1") && !matches("/search\\?q=*", b"/searchxq=1"));
        assert!(matches("*\\*", b"a*") && matches("a*", b"a\xff\n\x00b") && matches("a*b", b"a\nb"));
        assert!(matches("//*", b"//x") && matches("http://*/a", b"http://h//a") && !matches("./*", b"x"));
    }

    #[test]
    fn a_broken_pattern_is_refused() {
        for broken in [&b"[a"[..], b"{a", b"*\xff"] {
            assert!(Pattern::new(Some(OsStr::from_bytes(broken))).is_err(), "{broken:?}");
        }
    }
}
