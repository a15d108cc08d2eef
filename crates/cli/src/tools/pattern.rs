//! Which keys a pattern means.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use globset::{Candidate, GlobBuilder, GlobMatcher};

use crate::Error;

/// Any of these makes a pattern a glob.
const GLOB_BYTES: &[u8] = b"*?[{\\";

/// Which keys are meant.
#[derive(Debug)]
pub(crate) enum Pattern {
    /// Those that begin so, which may be any bytes.
    Prefix(Vec<u8>),
    /// Those that look so as a whole.
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
            .map_err(|_| Error::Pattern("a pattern with wildcards has to be UTF-8".to_owned()))?;
        let glob = GlobBuilder::new(text)
            .backslash_escape(true)
            .build()
            .map_err(|error| Error::Pattern(format!("{error}; a backslash before a sign takes it as it is")))?;
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
    fn without_wildcards_it_is_the_beginning() {
        assert!(matches("/a/", b"/a/b") && !matches("/a/", b"/b/a/"));
        assert!(Pattern::new(None).unwrap().matches(b"anything"));
        assert!(Pattern::new(Some(OsStr::from_bytes(b"\xff"))).unwrap().matches(b"\xff\xfe"));
    }

    #[test]
    fn with_wildcards_it_is_the_whole_key() {
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
