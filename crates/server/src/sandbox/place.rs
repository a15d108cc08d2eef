//! A file or a folder that the sandbox includes, and what may be done there.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::files::rights;

/// A file, or a folder with all that is below it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    /// Without symbolic links, as it was when the sandbox was closed.
    pub(crate) path: PathBuf,
    pub(crate) access: Access,
}

/// What the process may do in a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Access {
    /// Read files and list folders.
    Read,
    /// The same, and execute programs.
    Run,
    /// Read, change, create and remove files and folders.
    Write,
    /// Create files and write to them.
    Log,
    /// Create and remove Unix sockets.
    Socket,
}

impl Place {
    /// The place that a path leads to now. A missing one stays as it is written, and may be created in a folder that is inside.
    pub(crate) fn new(path: &Path, access: Access) -> Self {
        let path = path.canonicalize().or_else(|_| std::path::absolute(path)).unwrap_or_else(|_| path.to_owned());
        Self { path, access }
    }

    /// Whether all that may be done in the other place may be done here.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        other.path.starts_with(&self.path) && rights(self.access).contains(rights(other.access))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_covers_what_is_below_it() {
        let place = |path: &str, access| Place { path: PathBuf::from(path), access };
        let srv = place("/srv/www", Access::Write);
        for (other, is_covered) in [
            (place("/srv/www", Access::Read), true),
            (place("/srv/www/a/b", Access::Write), true),
            (place("/srv/www/a", Access::Log), true),
            (place("/srv/www/a", Access::Run), false),
            (place("/srv/www/a", Access::Socket), false),
            (place("/srv/www2", Access::Read), false),
            (place("/srv", Access::Read), false),
        ] {
            assert_eq!(srv.covers(&other), is_covered, "{other:?}");
        }
    }
}
