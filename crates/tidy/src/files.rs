//! The files to check, and the findings in them.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::process::Command;

/// A text file of the repository.
pub(crate) struct File {
    /// Its path from the root of the repository, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl File {
    pub(crate) fn extension(&self) -> &str {
        Path::new(&self.path).extension().and_then(|extension| extension.to_str()).unwrap_or_default()
    }

    pub(crate) fn is_rust(&self) -> bool {
        self.extension() == "rs"
    }

    /// A finding in `line`, counted from 1, of this file.
    pub(crate) fn finding(&self, line: usize, message: impl Into<String>) -> Finding {
        Finding { path: self.path.clone(), line, message: message.into() }
    }
}

/// A finding. The order is that of places, in which they are printed.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    path: String,
    line: usize,
    message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}: {}", self.path, self.line, self.message)
    }
}

/// Every text file that git tracks or would add, except files that git ignores, deleted ones, and those that
/// aren't UTF-8.
pub(crate) fn read_all(root: &Path) -> Result<Vec<File>, String> {
    let paths = list(root)?;
    let read = |path: &str| {
        let text = std::fs::read_to_string(root.join(path)).ok()?;
        Some(File { path: path.to_owned(), text })
    };
    let files: Vec<File> = paths.split_terminator('\0').filter_map(read).collect();
    if files.is_empty() { Err("git names no file here".to_owned()) } else { Ok(files) }
}

/// The paths of all files that git tracks or would add, including binary ones.
pub(crate) fn paths(root: &Path) -> Result<BTreeSet<String>, String> {
    Ok(list(root)?.split_terminator('\0').filter(|path| root.join(path).exists()).map(str::to_owned).collect())
}

fn list(root: &Path) -> Result<String, String> {
    git(root, &["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate"])
}

/// The output of git in `folder`.
pub(crate) fn git(folder: &Path, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(folder)
        .output()
        .map_err(|error| format!("git could not be started: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
    }
    String::from_utf8(output.stdout).map_err(|_| "a file's name is not UTF-8; rename it".to_owned())
}

#[cfg(test)]
pub(crate) fn file(path: &str, text: &str) -> File {
    File { path: path.to_owned(), text: text.to_owned() }
}

/// The lines of a check's findings.
#[cfg(test)]
pub(crate) fn lines(findings: impl IntoIterator<Item = Finding>) -> Vec<usize> {
    findings.into_iter().map(|finding| finding.line).collect()
}
