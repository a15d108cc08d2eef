//! Links between the pages of the repository, the list of the manual's pages, and documents that other files name.
//!
//! A relative link in a Markdown file must lead to an existing file or folder, and to an existing heading if it names one.
//! `SUMMARY.md` of the manual must list every page beside and below it. Every `docs/...` that a file names must exist.

use std::collections::{BTreeMap, BTreeSet};

use crate::files::{File, Finding};

/// Checks all links, and the manual in `manual`, a folder with `/` at its end.
pub(crate) fn check(files: &[File], paths: &BTreeSet<String>, manual: &str) -> Vec<Finding> {
    let pages: BTreeMap<&str, BTreeSet<String>> =
        files.iter().filter(|file| file.extension() == "md").map(|file| (&*file.path, anchors(&file.text))).collect();
    let mut findings = Vec::new();
    for file in files {
        if pages.contains_key(&*file.path) {
            findings.extend(links(&file.text).into_iter().filter_map(|(line, link)| {
                let wrong = wrong_with(&file.path, &link, &pages, paths)?;
                Some(file.finding(line, format!("the link `{link}`: {wrong}")))
            }));
        }
        findings.extend(named(file, manual, paths));
    }
    findings.extend(unlisted(files, manual));
    findings
}

/// The error in a link of the page at `from`, if any.
fn wrong_with(
    from: &str,
    link: &str,
    pages: &BTreeMap<&str, BTreeSet<String>>,
    paths: &BTreeSet<String>,
) -> Option<String> {
    let (target, anchor) = link.split_once('#').map_or((link, None), |(target, anchor)| (target, Some(anchor)));
    let path = if target.is_empty() { from.to_owned() } else { joined(from, target)? };
    if !exists(&path, paths) {
        return Some("there is no such file".to_owned());
    }
    let anchor = anchor?;
    let headings = pages.get(&*path)?;
    (!headings.contains(anchor)).then(|| format!("`{path}` has no such heading"))
}

/// The path of a link's target from the root of the repository; `None` if it is outside.
fn joined(from: &str, target: &str) -> Option<String> {
    let mut steps: Vec<&str> = from.split('/').collect();
    steps.pop();
    for step in target.trim_end_matches('/').split('/') {
        match step {
            "." | "" => {}
            ".." => {
                steps.pop()?;
            }
            step => steps.push(step),
        }
    }
    Some(steps.join("/"))
}

/// Whether `path` is a file, or a folder with files.
fn exists(path: &str, paths: &BTreeSet<String>) -> bool {
    let folder = format!("{}/", path.trim_end_matches('/'));
    path.is_empty()
        || paths.contains(path)
        || paths.range(folder.clone()..).next().is_some_and(|next| next.starts_with(&folder))
}

/// The relative links of a page, with their lines. Code has no links.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (line, prose) in prose(text) {
        let without_code: String = prose.split('`').step_by(2).collect();
        for (at, _) in without_code.match_indices("](") {
            let rest = &without_code[at + 2..];
            let link = rest.split([')', ' ']).next().unwrap_or_default();
            if !link.is_empty() && !link.contains("://") && !link.starts_with("mailto:") {
                found.push((line, link.to_owned()));
            }
        }
        for attribute in ["src=\"", "srcset=\"", "href=\""] {
            for (at, _) in without_code.match_indices(attribute) {
                let link = without_code[at + attribute.len()..].split('"').next().unwrap_or_default();
                if !link.contains("://") {
                    found.push((line, link.to_owned()));
                }
            }
        }
    }
    found
}

/// The lines of a page outside of code blocks, counted from 1.
fn prose(text: &str) -> Vec<(usize, &str)> {
    let mut in_code = false;
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if !in_code {
            lines.push((index + 1, line));
        }
    }
    lines
}

/// The anchors of a page's headings.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut times: BTreeMap<String, u32> = BTreeMap::new();
    let mut anchors = BTreeSet::new();
    for heading in prose(text).into_iter().filter_map(|(_, line)| line.strip_prefix('#')) {
        let Some((_, words)) = heading.split_once(' ') else { continue };
        let name: String = words
            .trim()
            .to_lowercase()
            .chars()
            .filter(|char| char.is_alphanumeric() || " -_".contains(*char))
            .map(|char| if char == ' ' { '-' } else { char })
            .collect();
        let earlier = times.entry(name.clone()).or_default();
        anchors.insert(if *earlier == 0 { name } else { format!("{name}-{earlier}") });
        *earlier += 1;
    }
    anchors
}

/// The pages of the manual that a file names but that don't exist.
fn named(file: &File, manual: &str, paths: &BTreeSet<String>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        for (at, _) in line.match_indices(manual) {
            let is_inside = line[..at].ends_with(|char: char| char.is_alphanumeric() || "/._-".contains(char));
            let rest = &line[at..];
            let end = rest.find(|char: char| !char.is_ascii_alphanumeric() && !"/._-".contains(char));
            let path = rest[..end.unwrap_or(rest.len())].trim_end_matches('.');
            let is_page = path.rsplit_once('.').is_some_and(|(_, extension)| extension == "md" || extension == "toml");
            if is_page && !is_inside && !paths.contains(path) {
                findings.push(file.finding(index + 1, format!("there is no `{path}`")));
            }
        }
    }
    findings
}

/// The pages of the manual that its list lacks.
fn unlisted(files: &[File], manual: &str) -> Vec<Finding> {
    let path = format!("{manual}SUMMARY.md");
    let Some(summary) = files.iter().find(|file| file.path == path) else { return Vec::new() };
    let listed: BTreeSet<String> = links(&summary.text).iter().filter_map(|(_, link)| joined(&path, link)).collect();
    let is_page = |file: &&File| file.path.starts_with(manual) && file.extension() == "md" && file.path != path;
    let left_out = files.iter().filter(is_page).filter(|file| !listed.contains(&file.path));
    left_out.map(|file| file.finding(1, format!("list this page in `{path}`"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::file;

    fn found(files: &[File]) -> Vec<String> {
        let paths = files.iter().map(|file| file.path.clone()).chain(["a.svg".to_owned()]).collect();
        check(files, &paths, "manual/").iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_link_leads_to_a_file_a_folder_or_a_heading() {
        let text = "# One `two`: three\n[a](manual/b.md) ![p](a.svg) [c](manual) [d](manual/b.md#the-b) [e](#one-two-three) [f](https://x)\n";
        assert_eq!(found(&[file("a.md", text), file("manual/b.md", "## The b\n[up](../a.md)\n")]), [""; 0]);
    }

    #[test]
    fn a_link_that_leads_nowhere_is_found() {
        let text = "[a](b.md)\n[b](#none)\n`[c](d)`\n```\n[d](e)\n```\n<img src=\"f.svg\">\n";
        assert_eq!(
            found(&[file("a.md", text)]),
            [
                "a.md:1: the link `b.md`: there is no such file",
                "a.md:2: the link `#none`: `a.md` has no such heading",
                "a.md:7: the link `f.svg`: there is no such file"
            ]
        );
    }

    #[test]
    fn a_page_that_a_comment_names_is_there() {
        let comment = file("a.rs", "// See manual/b.md and manual/c.md.\n");
        assert_eq!(found(&[comment, file("manual/b.md", "")]), ["a.rs:1: there is no `manual/c.md`"]);
    }

    #[test]
    fn the_list_of_the_manual_is_complete() {
        let list = file("manual/SUMMARY.md", "# Summary\n- [B](b.md)\n");
        let paths = found(&[list, file("manual/b.md", ""), file("manual/c/d.md", "")]);
        assert_eq!(paths, ["manual/c/d.md:1: list this page in `manual/SUMMARY.md`"]);
    }
}
