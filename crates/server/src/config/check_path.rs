//! Checks of paths on the disk.

use std::path::{Path, PathBuf};

use toml::Spanned;

use super::problem::Fault;

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
            faults.push(Fault::new(path.span(), message, "give a file that this user may read"));
        }
    }
}

/// Whether the folder of a file exists.
pub(super) fn has_folder(path: &Path) -> bool {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.is_dir(),
        Some(_) => true,
        None => false,
    }
}
