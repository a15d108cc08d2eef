//! The direction of dependencies between our crates, and the crates that forbid unsafe code.

use toml::Table;

use crate::config::{Config, Confined};
use crate::files::{File, Finding};

/// The prefix of our crates' names.
const OURS: &str = "eyewall";

const FORBID: &str = "#![forbid(unsafe_code)]";

pub(crate) fn check(files: &[File], config: &Config) -> Result<Vec<Finding>, String> {
    let mut findings = Vec::new();
    for manifest in files.iter().filter(|file| file.path.ends_with("/Cargo.toml")) {
        let table: Table = manifest.text.parse().map_err(|error| format!("{}: {error}", manifest.path))?;
        findings.extend(check_direction(manifest, &table, config));
        findings.extend(check_roots(manifest, files, config));
    }
    Ok(findings)
}

fn check_direction(manifest: &File, table: &Table, config: &Config) -> Vec<Finding> {
    let Some(name) = table.get("package").and_then(|package| package.get("name")?.as_str()) else {
        return Vec::new();
    };
    let Some(allowed) = config.direction.get(name) else {
        return vec![
            manifest.finding(1, format!("tidy.toml does not say what `{name}` may depend on; add it to [direction]")),
        ];
    };
    let wrong = our_dependencies(table).into_iter().filter(|dependency| !allowed.contains(dependency));
    let finding = |dependency: String| {
        let names =
            |line: &str| line.split(|char: char| !char.is_alphanumeric() && char != '-').next() == Some(&dependency);
        let line = manifest.text.lines().position(names).map_or(1, |index| index + 1);
        let message = format!("`{name}` may not depend on `{dependency}`; dependencies run one way, see tidy.toml");
        manifest.finding(line, message)
    };
    wrong.map(finding).collect()
}

/// Those of our crates that a manifest names, except for its tests.
fn our_dependencies(table: &Table) -> Vec<String> {
    let targets = table.get("target").and_then(|targets| targets.as_table());
    let scopes = targets.into_iter().flatten().filter_map(|(_, target)| target.as_table()).chain([table]);
    let tables = scopes.flat_map(|scope| ["dependencies", "build-dependencies"].map(|kind| scope.get(kind)));
    let dependencies = tables.flatten().filter_map(|dependencies| dependencies.as_table()).flatten();
    let name = |(key, value): (&String, &toml::Value)| {
        value.get("package").and_then(|package| package.as_str()).unwrap_or(key).to_owned()
    };
    dependencies.map(name).filter(|name| name == OURS || name.starts_with("eyewall-")).collect()
}

/// A crate without a place for `unsafe` must forbid it at each of its roots, where the compiler reads it.
fn check_roots(manifest: &File, files: &[File], config: &Config) -> Vec<Finding> {
    let folder = manifest.path.trim_end_matches("Cargo.toml");
    let has_unsafe =
        |rule: &Confined| rule.words.contains("unsafe") && rule.places.iter().any(|place| place.starts_with(folder));
    if config.confined.iter().any(has_unsafe) {
        return Vec::new();
    }
    let is_root = |file: &&File| {
        let path = file.path.strip_prefix(folder).unwrap_or_default();
        matches!(path, "src/lib.rs" | "src/main.rs") || (path.starts_with("src/bin/") && file.is_rust())
    };
    let lacks = files.iter().filter(is_root).filter(|file| !file.text.lines().any(|line| line == FORBID));
    lacks.map(|file| file.finding(1, format!("a crate without unsafe code says so; add `{FORBID}`"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::{file, lines};

    fn config() -> Config {
        let text = r#"
            not_ours = []
            decisions = ""
            manual = ""
            length = { file_lines_max = 1, function_lines_max = 1 }
            glossary = { file = "", exempt = [], foreign = [] }
            english = { sentence_words_max = 1, exempt = [], comments_exempt = [], phrases = [] }
            [direction]
            eyewall = ["eyewall-region"]
            eyewall-region = []
            [[confined]]
            words = ["unsafe"]
            places = ["crates/region/"]
            instead = ""
        "#;
        toml::from_str(text).unwrap()
    }

    fn manifest(name: &str, dependencies: &str) -> File {
        file(&format!("crates/{name}/Cargo.toml"), &format!("[package]\nname = \"{name}\"\n{dependencies}"))
    }

    fn found(files: &[File]) -> Vec<usize> {
        lines(check(files, &config()).unwrap())
    }

    #[test]
    fn a_dependency_against_the_direction_is_found() {
        assert_eq!(
            found(&[manifest("eyewall", "[dependencies]\neyewall-region = { path = \"\" }\nserde = \"1\"\n")]),
            []
        );
        assert_eq!(found(&[manifest("eyewall-region", "[dependencies]\neyewall.workspace = true\n")]), [4]);
        assert_eq!(found(&[manifest("eyewall-region", "[build-dependencies]\nx = { package = \"eyewall\" }\n")]), [1]);
        assert_eq!(found(&[manifest("eyewall-region", "[target.'cfg(unix)'.dependencies]\neyewall = \"0\"\n")]), [4]);
    }

    #[test]
    fn tests_may_look_back() {
        assert_eq!(found(&[manifest("eyewall-region", "[dev-dependencies]\neyewall = \"0\"\n")]), []);
    }

    #[test]
    fn a_crate_of_which_nothing_is_said_is_found() {
        assert_eq!(found(&[manifest("eyewall-new", "")]), [1]);
    }

    #[test]
    fn a_crate_without_a_place_for_unsafe_forbids_it() {
        let root = |text: &str| found(&[manifest("eyewall", ""), file("crates/eyewall/src/lib.rs", text)]);
        assert_eq!(root("//! Doc.\n\n#![forbid(unsafe_code)]\n"), []);
        assert_eq!(root("//! Doc.\n"), [1]);
        let region = [
            file("crates/region/Cargo.toml", "[package]\nname = \"eyewall-region\"\n"),
            file("crates/region/src/lib.rs", ""),
        ];
        assert_eq!(found(&region), []);
    }
}
