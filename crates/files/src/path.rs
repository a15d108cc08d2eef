//! The path of a request, as a path below the root.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, percent_encode};

/// The characters that a path segment can't contain unescaped.
const SEGMENT: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'<').add(b'>').add(b'?').add(b'`').add(b'{').add(b'}').add(b'%');

/// A path of plain names below a root. No name is empty, a dot or two dots, or contains a slash or NUL.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FilePath {
    relative: PathBuf,
    is_folder: bool,
}

/// Why a path is not looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It is malformed: a broken escape, an escaped slash or NUL, or a step upwards.
    #[error("the path is malformed")]
    Malformed,
    /// It has a hidden name, which begins with a dot. The answer doesn't say whether it exists.
    #[error("the path has a name that begins with a dot")]
    Hidden,
}

impl FilePath {
    /// Parses the path of a request target. It splits the path at its slashes, and then decodes escapes once.
    /// Names that begin with a dot are hidden, unless `dotfiles` are served.
    ///
    /// # Errors
    /// [`Refusal`]: no served file can have this path.
    pub fn parse(path: &str, dotfiles: bool) -> Result<Self, Refusal> {
        let segments = path.strip_prefix('/').ok_or(Refusal::Malformed)?;
        let mut relative = PathBuf::with_capacity(path.len());
        for segment in segments.split('/').filter(|segment| !segment.is_empty()) {
            if !are_escapes_whole(segment) {
                return Err(Refusal::Malformed);
            }
            let name: Cow<'_, [u8]> = percent_decode_str(segment).into();
            if *name == *b".." || name.iter().any(|byte| matches!(byte, b'/' | 0)) {
                return Err(Refusal::Malformed);
            }
            if *name == *b"." || !dotfiles && name.starts_with(b".") {
                return Err(Refusal::Hidden);
            }
            relative.push(OsStr::from_bytes(&name));
        }
        Ok(Self { relative, is_folder: path.ends_with('/') })
    }

    /// Takes a path of the file system. `None` if it contains `..`, whose meaning depends on the file system.
    pub(crate) fn of_absolute(path: &Path) -> Option<Self> {
        let mut relative = PathBuf::new();
        for component in path.components() {
            match component {
                Component::Normal(name) => relative.push(name),
                Component::ParentDir => return None,
                Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
            }
        }
        Some(Self { relative, is_folder: false })
    }

    /// Whether it ended with a slash, which means the folder's index.
    pub fn is_folder(&self) -> bool {
        self.is_folder
    }

    /// The path below the root, without the name of an index if it [means one](Self::is_folder).
    pub fn relative(&self) -> &Path {
        &self.relative
    }

    /// The path with a slash at its end, for a redirect. It begins with only one slash, since two would name
    /// a host.
    pub fn folder_location(&self) -> String {
        let mut location = String::from("/");
        for name in &self.relative {
            location.extend(percent_encode(name.as_bytes(), SEGMENT));
            location.push('/');
        }
        location
    }
}

/// Whether each percent sign is followed by two hexadecimal digits.
fn are_escapes_whole(segment: &str) -> bool {
    segment.split('%').skip(1).all(|rest| {
        let digits = rest.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str) -> Result<PathBuf, Refusal> {
        FilePath::parse(path, false).map(|path| path.relative)
    }

    #[test]
    fn plain_paths_lie_below_the_root() {
        assert_eq!(file("/"), Ok("".into()));
        assert_eq!(file("/a/b.css"), Ok("a/b.css".into()));
        assert_eq!(file("//a///b/"), Ok("a/b".into()));
        assert_eq!(file("/caf%C3%A9%20au%20lait"), Ok("café au lait".into()));
        assert_eq!(file("/100%2525"), Ok("100%25".into()), "decoded once");
    }

    #[test]
    fn no_path_climbs_out() {
        for path in ["/..", "/../etc/passwd", "/a/../../b", "/%2e%2e/a", "/.%2E/a", "/a%2fb", "/a%2F..%2Fb", "/a%00b"] {
            assert_eq!(file(path), Err(Refusal::Malformed), "{path}");
        }
    }

    #[test]
    fn broken_escapes_are_refused() {
        for path in ["/%", "/a%4", "/%zz", "/%%41", "a", "*", ""] {
            assert_eq!(file(path), Err(Refusal::Malformed), "{path}");
        }
    }

    #[test]
    fn dotfiles_are_hidden_at_any_depth() {
        for path in ["/.git/config", "/a/.env", "/%2eenv", "/.", "/...", "/.a/"] {
            assert_eq!(file(path), Err(Refusal::Hidden), "{path}");
        }
    }

    #[test]
    fn dotfiles_can_be_served_and_steps_upwards_can_not() {
        let file = |path| FilePath::parse(path, true).map(|path| path.relative);
        assert_eq!(file("/.well-known/a"), Ok(".well-known/a".into()));
        assert_eq!(file("/..."), Ok("...".into()));
        assert_eq!(file("/./a"), Err(Refusal::Hidden));
        assert_eq!(file("/../a"), Err(Refusal::Malformed));
    }

    #[test]
    fn a_redirection_stays_on_this_host() {
        let location = |path| FilePath::parse(path, false).map(|path| path.folder_location());
        assert_eq!(location("//evil.example"), Ok("/evil.example/".to_owned()));
        assert_eq!(location("/a%20b/c%23"), Ok("/a%20b/c%23/".to_owned()));
    }
}
