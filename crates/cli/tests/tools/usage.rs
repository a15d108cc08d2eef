//! A wrong command line: exit code 2, and a message with advice.

use crate::command::{Volume, eyewall, run};

#[test]
fn a_volume_has_to_be_given() {
    for words in [vec!["get", "key"], vec!["ls"], vec!["create", "--size", "1M"]] {
        let ended = run(eyewall().args(&words), b"");
        assert_eq!(ended.code, 2, "{words:?}");
        assert!(ended.stderr.contains("--cache PATH") && ended.stderr.contains("EYEWALL_CACHE"), "{}", ended.stderr);
    }
    assert_eq!(run(eyewall().env("EYEWALL_CACHE", "").arg("ls"), b"").code, 2, "an empty name is none");
}

#[test]
fn the_volume_may_be_given_before_or_after_the_verb_or_by_the_environment() {
    let volume = Volume::new();
    volume.put("key", b"value");
    let path = volume.path();
    for command in [
        eyewall().arg("--cache").arg(&path).args(["get", "key"]),
        eyewall().args(["get", "--cache"]).arg(&path).arg("key"),
        eyewall().args(["get", "key", "--cache"]).arg(&path),
        eyewall().env("EYEWALL_CACHE", &path).args(["get", "key"]),
        eyewall().env("EYEWALL_CACHE", "/nowhere").args(["get", "key", "--cache"]).arg(&path),
    ] {
        let ended = run(command, b"");
        assert_eq!((ended.code, ended.text()), (0, "value"), "{command:?}");
    }
}

#[test]
fn unknown_words_are_refused() {
    let volume = Volume::new();
    for words in [
        vec![],
        vec!["fetch", "key"],
        vec!["get"],
        vec!["put", "key", "-", "--ttl", "60"],
        vec!["put", "key", "-", "--ttl", "soon"],
        vec!["create"],
        vec!["create", "--size", "large"],
        vec!["create", "--size", "1M", "--mode", "9"],
        vec!["serve"],
        vec!["serve", "--root", "/tmp", "--config", "site.toml"],
        vec!["serve", "--listen", "somewhere", "--root", "/tmp"],
    ] {
        let ended = volume.run(&words);
        assert_eq!((ended.code, ended.text()), (2, ""), "{words:?}: {}", ended.stderr);
        assert!(!ended.stderr.is_empty(), "{words:?}");
    }
}

#[test]
fn an_origin_that_is_not_an_address_is_refused_with_a_reason() {
    for (url, reason) in [
        ("example.org", "give an address such as"),
        ("http://user@example.org", "an origin can't have a user name"),
        ("http://example.org/?page", "an origin can't have a query"),
        ("http://example.org/a/..", "the path of an origin can't have `..`"),
    ] {
        let ended = run(eyewall().args(["serve", "--origin", url]), b"");
        assert_eq!(ended.code, 2);
        assert!(ended.stderr.contains(reason), "{}", ended.stderr);
    }
}

#[test]
fn an_empty_key_is_refused() {
    let volume = Volume::new();
    for words in [["get", ""], ["put", ""], ["rm", ""]] {
        let ended = volume.run(words);
        assert_eq!(ended.code, 2, "{words:?}: {}", ended.stderr);
    }
}

#[test]
fn a_key_that_is_too_long_is_refused() {
    let volume = Volume::new();
    let ended = volume.run(["put", &"k".repeat(70_000), "-"]);
    assert_eq!(ended.code, 2, "{}", ended.stderr);
}

#[test]
fn help_and_version_are_not_errors() {
    let help = run(eyewall().arg("--help"), b"");
    assert_eq!(help.code, 0);
    assert!(help.text().contains("Exit codes"), "{}", help.text());
    let serve = run(eyewall().args(["serve", "--help"]), b"");
    for part in ["GET and HEAD", "RFC 9111", "stale-if-error", "--store-set-cookie", "such as `http://127.0.0.1:3000`"]
    {
        assert!(serve.text().contains(part), "{part} in {}", serve.text());
    }
    assert_eq!(run(eyewall().arg("--version"), b"").code, 0);
}
