//! The versions of the libraries in the adapters.

/// The lock file. Cargo builds only the versions in it.
const LOCK: &str = include_str!("../../../Cargo.lock");

/// The version of a library in this build; the newest, if there are several.
pub(crate) fn of_crate(name: &str) -> Option<String> {
    let named = format!("name = \"{name}\"");
    let mut lines = LOCK.lines();
    let mut found = None;
    while lines.any(|line| line == named) {
        found = lines.next().and_then(|line| line.strip_prefix("version = \"")?.strip_suffix('"'));
    }
    found.map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::of_crate;

    #[test]
    fn libraries_have_the_versions_of_the_lock_file() {
        let moka = of_crate("moka").expect("a version");
        assert!(moka.starts_with("0.12."), "{moka}");
        assert_eq!(of_crate("no-such-library"), None);
    }
}
