//! A user purges entries that have changed at their source: by tag, by the beginning of the keys, or all.

use crate::command::{Volume, run};

fn some() -> Volume {
    let volume = Volume::new();
    for (key, tag) in [("/shop/1", "teapot"), ("/shop/2", "kettle"), ("/blog/1", "teapot"), ("/blog/2", "news")] {
        assert_eq!(run(&mut volume.command(["put", key, "--tag", tag]), b"value").code, 0);
    }
    volume
}

fn keys(volume: &Volume) -> Vec<String> {
    let list = volume.run(["ls", "--json", "--sort", "key"]);
    let line = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap();
    let lines = list.text().lines().map(line);
    lines.map(|line| format!("{} {}", line["key"].as_str().unwrap(), line["state"].as_str().unwrap())).collect()
}

/// Purges, and returns the output.
fn purge(volume: &Volume, words: &[&str]) -> String {
    let ended = volume.run(["purge"].iter().chain(words));
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{words:?}");
    ended.text().to_owned()
}

#[test]
fn a_purge_reports_how_many_entries_it_covers() {
    let volume = some();
    assert_eq!(purge(&volume, &["--tag", "none"]), "no stored entry matches\n");
    assert_eq!(purge(&volume, &["--prefix", "/blog/", "--soft"]), "2 entries made stale\n");
    assert_eq!(purge(&volume, &["--tag", "teapot", "--prefix", "/shop/1"]), "2 entries purged\n");
    assert_eq!(purge(&volume, &["--all"]), "2 entries purged\n");
    assert_eq!(purge(&volume, &["--all"]), "no stored entry matches\n");
}

#[test]
fn a_tag_without_its_site_gets_the_site_as_a_hint() {
    let volume = Volume::new();
    assert_eq!(run(&mut volume.command(["put", "/", "--tag", "example.org:home"]), b"value").code, 0);
    assert!(purge(&volume, &["--tag", "home"]).ends_with("did you mean `example.org:home`?\n"));
    assert_eq!(keys(&volume), ["/ fresh"]);
    assert_eq!(purge(&volume, &["--tag", "example.org:home"]), "1 entry purged\n");
}

#[test]
fn tags_and_prefixes_are_purged_together() {
    let volume = some();
    purge(&volume, &["--tag", "news", "--tag", "kettle"]);
    assert_eq!(keys(&volume), ["/blog/1 fresh", "/shop/1 fresh"]);
    purge(&volume, &["--prefix", "/shop/", "--prefix", "/nowhere/"]);
    assert_eq!(keys(&volume), ["/blog/1 fresh"]);
}

#[test]
fn a_soft_purge_makes_entries_stale() {
    let volume = some();
    purge(&volume, &["--prefix", "/blog/", "--soft"]);
    assert_eq!(keys(&volume), ["/blog/1 stale", "/blog/2 stale", "/shop/1 fresh", "/shop/2 fresh"]);
    purge(&volume, &["--all", "--soft"]);
    assert!(keys(&volume).iter().all(|key| key.ends_with("stale")));
    purge(&volume, &["--all"]);
    assert!(keys(&volume).is_empty());
}

#[test]
fn a_sweep_gives_the_bytes_back() {
    let volume = some();
    let ended = volume.run(["purge", "--tag", "teapot", "--sweep"]);
    assert_eq!((ended.code, ended.text()), (0, "2 entries purged\n2 entries dropped\n"));
    purge(&volume, &["--tag", "kettle"]);
    assert_eq!(volume.run(["sweep"]).text(), "1 entry dropped\n");
    let json = volume.run(["purge", "--all", "--sweep", "--json"]);
    assert_eq!(json.text(), "{\"purges\":1,\"entries\":1,\"dropped\":1,\"purge_overflows\":0}\n");
    assert_eq!(volume.run(["sweep", "--json"]).text(), "{\"dropped\":0}\n");
    assert_eq!((volume.run(["sync"]).text(), volume.run(["sync"]).code), ("", 0));
}

#[test]
fn a_purge_needs_a_target() {
    let volume = some();
    for words in [&["purge"][..], &["purge", "--soft"], &["purge", "--all", "--tag", "a"], &["purge", "--tag", ""]] {
        let ended = volume.run(words);
        assert_eq!((ended.code, ended.text()), (2, ""), "{words:?}");
    }
    assert_eq!(keys(&volume).len(), 4);
}

#[test]
fn a_missing_server_is_reported() {
    let volume = Volume::absent();
    let socket = volume.folder().join("admin.sock");
    let ended = run(volume.command(["purge", "--all", "--server"]).arg(&socket), b"");
    assert_eq!((ended.code, ended.text()), (3, ""));
    assert!(
        ended.stderr.contains("no answer from a server at") && ended.stderr.contains("--admin"),
        "{}",
        ended.stderr
    );
}

#[test]
fn options_of_a_server_need_a_server() {
    let volume = some();
    for words in [
        &["--url", "http://a/"][..],
        &["--host", "a"],
        &["--all", "--token-file", "a"],
        &["--all", "--server", ""],
        &["--all", "--server", "https://127.0.0.1:1"],
        &["--all", "--server", "http://127.0.0.1"],
        &["--all", "--server", "http://127.0.0.1:1/path"],
        &["--all", "--server", "a.sock", "--sweep"],
        &["--all", "--server", "a.sock", "--host", "a"],
        &["--all", "--server", "a.sock", "--url", "http://a/"],
    ] {
        let ended = volume.run(["purge"].iter().chain(words));
        assert_eq!((ended.code, ended.text()), (2, ""), "{words:?}");
    }
    assert_eq!(keys(&volume).len(), 4);
}
