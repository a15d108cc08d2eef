//! Expected outputs in files, so that a diff shows how they change.

use std::path::Path;

/// Compares with a file of `tests/expected`. With `EYEWALL_EXPECT=write` in the environment it rewrites the file: read the
/// diff before you commit it.
#[track_caller]
pub(crate) fn expect(name: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/expected").join(name);
    if std::env::var_os("EYEWALL_EXPECT").is_some_and(|what| what == "write") {
        std::fs::write(&path, found).expect("the folder is there");
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(found, expected, "{}; EYEWALL_EXPECT=write accepts what was found", path.display());
}
