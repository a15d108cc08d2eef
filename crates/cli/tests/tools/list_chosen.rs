//! A user looks for some entries among many: by a pattern, the largest, the youngest, the first few.

use crate::command::Volume;
use crate::expected::expect;

/// Five entries of growing size, each a little older than the next.
fn some() -> Volume {
    let volume = Volume::new();
    for (number, key) in ["/b/1.html", "/a/2.html", "/a/b/3.html", "/a/4.css", "/a/search?q=5"].iter().enumerate() {
        volume.put(key, &vec![b'x'; 1000 * (number + 1)]);
    }
    volume
}

fn keys(volume: &Volume, words: &[&str]) -> Vec<String> {
    let list = volume.run(["ls", "--json"].iter().chain(words));
    assert_eq!((list.code, list.stderr.as_str()), (0, ""), "{words:?}");
    let key = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["key"].as_str().unwrap().to_owned();
    list.text().lines().map(key).collect()
}

#[test]
fn a_pattern_has_to_match_the_whole_key() {
    let volume = some();
    assert_eq!(keys(&volume, &["/a/*.html", "--sort", "key"]), ["/a/2.html", "/a/b/3.html"]);
    assert_eq!(keys(&volume, &["/a/?.{css,js}"]), ["/a/4.css"]);
    assert_eq!(keys(&volume, &["/[ab]/[12].*", "--sort", "key"]), ["/a/2.html", "/b/1.html"]);
    assert_eq!(keys(&volume, &["/a/search\\?q=*"]), ["/a/search?q=5"]);
    assert_eq!(keys(&volume, &["*"]).len(), 5);
    assert_eq!(keys(&volume, &["*.js"]), Vec::<String>::new());
}

#[test]
fn a_broken_pattern_is_reported() {
    let list = some().run(["ls", "/[a"]);
    assert_eq!((list.code, list.text()), (2, ""));
    assert!(list.stderr.contains("/[a") && list.stderr.contains("backslash"), "{}", list.stderr);
}

#[test]
fn the_largest_the_youngest_or_the_first_comes_first() {
    let volume = some();
    let by_size = ["/a/search?q=5", "/a/4.css", "/a/b/3.html", "/a/2.html", "/b/1.html"];
    assert_eq!(keys(&volume, &["--sort", "size"]), by_size);
    assert_eq!(keys(&volume, &["--sort", "key"])[..2], ["/a/2.html", "/a/4.css"]);
    assert_eq!(keys(&volume, &["--sort", "key", "--reverse", "--limit", "1"]), ["/b/1.html"]);
    let list = volume.run(["ls", "--json", "--sort", "age"]);
    let age = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["age_seconds"].as_f64().unwrap();
    assert!(list.text().lines().map(age).is_sorted(), "{}", list.text());
}

#[test]
fn a_limit_is_a_limit() {
    let volume = some();
    assert_eq!(keys(&volume, &["--limit", "2"]).len(), 2);
    assert_eq!(keys(&volume, &["--limit", "0"]).len(), 0);
    assert_eq!(keys(&volume, &["--sort", "size", "--limit", "2"]), ["/a/search?q=5", "/a/4.css"]);
    assert_eq!(volume.run(["ls", "--reverse"]).code, 2, "of what order?");
    assert_eq!(volume.run(["ls", "--sort", "colour"]).code, 2);
}

#[test]
fn the_table_is_as_expected() {
    let list = some().run(["ls", "--sort", "size"]);
    // Only the ages differ between runs.
    let lines = list.text().lines().enumerate().map(|(number, line)| {
        let age = if number == 0 { &line[11..20] } else { "      AGE" };
        format!("{}{age}{}\n", &line[..11], &line[20..])
    });
    expect("ls.txt", &lines.collect::<String>());
}
