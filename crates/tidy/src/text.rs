//! Text that must not be committed: placeholders, and paths of the author's machine.

use std::path::Path;

use crate::files::{File, Finding};
use crate::rust::words;

const PLACEHOLDERS: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];

/// Folders that exist on every machine, or that an example may name.
const COMMON_FOLDERS: [&str; 8] = ["tmp", "usr", "opt", "var", "srv", "mnt", "home", "root"];

pub(crate) fn check(file: &File, machine_paths: &[String]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        if let Some(word) = words(line).find(|word| PLACEHOLDERS.contains(word)) {
            findings.push(file.finding(index + 1, format!("`{word}`; do it now, or file an issue")));
        }
        if let Some(path) = machine_paths.iter().find(|path| names(line, path)) {
            findings.push(
                file.finding(
                    index + 1,
                    format!("`{path}` is a path of one machine; use a relative path or a variable"),
                ),
            );
        }
    }
    findings
}

/// The folders that only this machine or user has: home folders, and the first folder of the path to `root`.
pub(crate) fn paths_of_this_machine(root: &Path) -> Vec<String> {
    let mut paths = Vec::from(["home", "root", "Users"].map(|folder| format!("/{folder}/")));
    let first = root.components().nth(1).map(|component| component.as_os_str().to_string_lossy().into_owned());
    paths.extend(first.filter(|first| !COMMON_FOLDERS.contains(&first.as_str())).map(|first| format!("/{first}/")));
    paths
}

/// Whether `line` names an absolute path that begins with `path`.
fn names(line: &str, path: &str) -> bool {
    let continues = |char: char| char.is_alphanumeric() || "_.-/}".contains(char);
    line.match_indices(path).any(|(at, _)| !line[..at].ends_with(continues))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::{file, lines};

    #[test]
    fn placeholders_are_found_as_words() {
        let text = format!(
            "fine\n// {}: later\n{}YY\nmktemp {}{}\n",
            PLACEHOLDERS[0], PLACEHOLDERS[1], PLACEHOLDERS[2], PLACEHOLDERS[2]
        );
        assert_eq!(lines(check(&file("a.rs", &text), &[])), [2]);
    }

    #[test]
    fn a_path_is_found_where_it_begins() {
        let paths = paths_of_this_machine(Path::new("/building/eyewall"));
        assert_eq!(
            lines(check(&file("a", "cd /building/eyewall\nsee docs/building/one and ./building/\n"), &paths)),
            [1]
        );
        assert_eq!(lines(check(&file("a", &format!("in \"/{}/x\"\n", "home")), &paths)), [1]);
    }

    #[test]
    fn a_checkout_in_a_common_folder_adds_no_path() {
        assert_eq!(paths_of_this_machine(Path::new("/tmp/eyewall")), paths_of_this_machine(Path::new("/")));
    }
}
