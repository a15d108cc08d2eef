//! Checks of paths on the disk.

use std::path::{Path, PathBuf};

use toml::Spanned;

use super::problem::Fault;
use crate::sandbox;

/// Checks that a file exists and can be read.
pub(super) fn file(path: &Spanned<PathBuf>, what: &str, faults: &mut Vec<Fault>) {
    let shown = path.get_ref().display();
    match std::fs::File::open(path.get_ref()).and_then(|file| file.metadata()) {
        Ok(metadata) if metadata.is_file() => {}
        Ok(_) => faults.push(Fault::new(
            path.span(),
            format!("{shown}, for {what}, is not a file"),
            "give the path of a file",
        )),
        Err(error) => {
            let message = format!("{shown}, for {what}, can't be read: {error}");
            faults.push(Fault::new(path.span(), message, hint(&error, "give a file that this user may read")));
        }
    }
}

/// Checks that a folder exists.
pub(super) fn folder(path: &Spanned<PathBuf>, what: &str, faults: &mut Vec<Fault>) {
    if !path.get_ref().is_dir() {
        let message = format!("{}, for {what}, is not a folder", path.get_ref().display());
        faults.push(Fault::new(path.span(), message, "give the path of an existing folder"));
    }
}

/// What to do if a path can't be read: `usual`, except in a sandbox, which is the likelier reason there.
pub(super) fn hint(error: &std::io::Error, usual: &str) -> String {
    if error.kind() == std::io::ErrorKind::PermissionDenied && sandbox::closed().is_some() {
        return format!(
            "this path may be outside of the sandbox, which was closed when the server started: restart the server, or {usual}"
        );
    }
    usual.to_owned()
}

/// Whether the folder of a file exists.
pub(super) fn has_folder(path: &Path) -> bool {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.is_dir(),
        Some(_) => true,
        None => false,
    }
}
