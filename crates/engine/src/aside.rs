//! Broken volumes that were put aside: files `<name>.broken-<seconds since 1970>` beside the volume.

use std::io;
use std::path::{Path, PathBuf};

use eyewall_region::clock;
use eyewall_region::file::{self, Identity};

use crate::cache::Cache;
use crate::error::{Error, Result};

const INFIX: &str = ".broken-";

impl Cache {
    /// The broken volume beside this one that this or another process put aside
    /// ([`crate::Options::put_aside_broken`]); the newest if there are several. `None` if there is none, if the
    /// volume has no file, or if the directory can't be read. Reads the directory.
    pub fn put_aside(&self) -> Option<PathBuf> {
        kept_beside(self.path()?).into_iter().max()
    }

    /// Whether the volume's path still leads to it. False: somebody has removed or replaced the file, as a process does that puts a
    /// broken volume aside. Open the path again then. A resize is no replacement. True for a volume without a file.
    pub fn is_at_its_path(&self) -> bool {
        self.volume().membership.door().is_none_or(|door| self.path().is_none() || door.has_its_name())
    }
}

/// The file that a symbolic link at `path` leads to. A missing file counts only if a broken volume lies beside it:
/// then a process put it aside and died before it created a new one.
pub(crate) fn target(path: &Path) -> Option<PathBuf> {
    if !path.is_symlink() {
        return None;
    }
    if let Ok(target) = std::fs::canonicalize(path) {
        return Some(target);
    }
    let mut target = path.to_owned();
    // Linux follows as many links.
    for _ in 0..40 {
        let Ok(next) = std::fs::read_link(&target) else { break };
        target = target.parent().unwrap_or_else(|| Path::new("")).join(next);
    }
    (!kept_beside(&target).is_empty()).then_some(target)
}

/// Renames the broken file at `path` if it still is the file that was inspected, and removes files that were put
/// aside earlier.
pub(crate) fn put_aside(path: &Path, broken: Identity) -> Result<()> {
    let failed = |error: io::Error| Error::io("putting the broken volume aside:", path, error);
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!("{INFIX}{}", clock::wall_ms() / 1000));
    let aside = path.with_file_name(name);
    if file::put_aside(path, &aside, broken).map_err(failed)? {
        for older in kept_beside(path).into_iter().filter(|kept| *kept != aside) {
            // The next call tries again to remove one that can't be removed.
            let _ = std::fs::remove_file(older);
        }
    }
    Ok(())
}

/// The files that were put aside of the volume at `path`. Their paths are built like `path`: without a folder if it
/// has none.
fn kept_beside(path: &Path) -> Vec<PathBuf> {
    let prefix = [path.file_name().unwrap_or_default().as_encoded_bytes(), INFIX.as_bytes()].concat();
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let is_ours = |name: &[u8]| {
        name.strip_prefix(&prefix[..]).is_some_and(|time| !time.is_empty() && time.iter().all(u8::is_ascii_digit))
    };
    let names = entries.map(|entry| entry.file_name()).filter(|name| is_ours(name.as_encoded_bytes()));
    names.map(|name| path.with_file_name(name)).collect()
}
