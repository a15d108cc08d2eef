//! Checks `src/statements.md`, the statements of the RFCs: each row must name existing tests, or say why there is
//! none.

use std::fs;
use std::path::{Path, PathBuf};

/// The path of a test's file.
fn path(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    match name.split_once('/') {
        Some(("server", rest)) => root.join("../cli/tests/serve").join(rest),
        Some(("tower", rest)) => root.join("../../bindings/tower/tests/layer").join(rest),
        _ => root.join("tests").join(name),
    }
}

#[test]
fn each_row_names_tests_that_there_are() {
    let table = include_str!("../src/statements.md");
    let mut rows = 0;
    for row in table.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| section")) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let [_, _, tests] = cells[..] else { panic!("three cells: {row}") };
        let names: Vec<&str> = tests.split('`').filter(|piece| piece.contains("::")).collect();
        assert!(!names.is_empty() || tests.starts_with("none: "), "a test, or why there is none: {row}");
        for name in names {
            let (file, function) = name.split_once("::").unwrap();
            let path = path(file);
            let source = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            assert!(source.contains(&format!("fn {function}(")), "{name} is not there: {row}");
        }
        rows += 1;
    }
    assert!(rows > 80, "{rows} rows");
}
