//! Decision records carry running numbers: `0001-why-no-sendfile.md`, headed `# 0001. Why no sendfile`.

use crate::files::{File, Finding};

/// Checks the records in `folder`, which ends with `/`. `README.md` is their list, not one of them.
pub(crate) fn check(files: &[File], folder: &str) -> Vec<Finding> {
    let mut records: Vec<(&File, &str)> = files
        .iter()
        .filter_map(|file| Some((file, file.path.strip_prefix(folder)?)))
        .filter(|(_, name)| *name != "README.md")
        .collect();
    records.sort_by_key(|(_, name)| *name);

    let mut findings = Vec::new();
    for (index, (file, name)) in records.into_iter().enumerate() {
        let number = format!("{:04}", index + 1);
        if !name.starts_with(&format!("{number}-")) || file.extension() != "md" {
            findings.push(
                file.finding(1, format!("decision records are numbered without a gap; name this one `{number}-….md`")),
            );
        } else if !file.text.starts_with(&format!("# {number}. ")) {
            findings
                .push(file.finding(1, format!("a decision record is headed by its number; begin with `# {number}. `")));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::file;

    fn paths(files: &[File]) -> Vec<String> {
        let place = |finding: Finding| finding.to_string().split(':').next().unwrap_or_default().to_owned();
        check(files, "d/").into_iter().map(place).collect()
    }

    #[test]
    fn numbers_have_no_gap_and_no_double() {
        let (one, two) = (file("d/0001-a.md", "# 0001. A\n"), file("d/0002-b.md", "# 0002. B\n"));
        assert_eq!(paths(&[two, one, file("d/README.md", ""), file("e/note.md", "")]), [""; 0]);
        assert_eq!(paths(&[file("d/0001-a.md", "# 0001. A\n"), file("d/0003-c.md", "# 0003. C\n")]), ["d/0003-c.md"]);
        assert_eq!(paths(&[file("d/0001-a.md", "# 0001. A\n"), file("d/0001-b.md", "# 0001. B\n")]), ["d/0001-b.md"]);
    }

    #[test]
    fn the_heading_has_the_number_of_the_name() {
        assert_eq!(paths(&[file("d/0001-a.md", "# A\n")]), ["d/0001-a.md"]);
    }
}
