//! A script stores stale values and negative entries, and recognises them by the exit code.

use crate::command::{Volume, run};
use crate::expected::expect;

/// `soft` is stale, `gone` negative, `page` valid.
fn some() -> Volume {
    let volume = Volume::new();
    for (words, value) in [
        (&["put", "page", "--tag", "one", "--tag", "two"][..], "new"),
        (&["put", "soft", "--ttl", "1h", "--stale", "1d", "--tag", "old"], "older"),
        (&["put", "gone", "--negative", "410", "--ttl", "1h"], ""),
    ] {
        let put = run(&mut volume.command(words), value.as_bytes());
        assert_eq!((put.code, put.stderr.as_str()), (0, ""), "{words:?}");
    }
    assert_eq!(volume.run(["purge", "--tag", "old", "--soft"]).code, 0);
    volume
}

#[test]
fn the_exit_code_tells_the_state_of_an_entry() {
    let volume = some();
    for (key, code, words) in
        [("page", 0, ""), ("nothing", 1, ""), ("soft", 4, "--stale to write it"), ("gone", 5, "for reason 410")]
    {
        let got = volume.run(["get", key]);
        assert_eq!((got.code, got.text()), (code, if code == 0 { "new" } else { "" }), "{key}");
        assert!(got.stderr.contains(words) && (code > 1 || got.stderr.is_empty()), "{key}: {}", got.stderr);
    }
    let stale = volume.run(["get", "--stale", "soft"]);
    assert_eq!((stale.code, stale.text(), stale.stderr.as_str()), (0, "older", ""));
    assert_eq!(volume.run(["get", "--stale", "gone"]).code, 5);
}

#[test]
fn programs_get_an_object() {
    let volume = some();
    let about =
        |key: &str| serde_json::from_str::<serde_json::Value>(volume.run(["get", "--json", key]).text()).unwrap();
    assert_eq!((about("page")["state"].as_str(), about("page")["tags"][1].as_str()), (Some("fresh"), Some("two")));
    let soft = about("soft");
    assert_eq!((soft["state"].as_str(), soft["ttl_left_seconds"].as_f64()), (Some("stale"), Some(0.0)));
    assert!(soft["usable_left_seconds"].as_f64().is_some_and(|left| left > 3600.0), "{soft}");
    assert_eq!((about("gone")["state"].as_str(), about("gone")["reason"].as_u64()), (Some("negative"), Some(410)));
}

#[test]
fn a_list_shows_states_and_tags() {
    let volume = some();
    let list = volume.run(["ls", "--tags", "--sort", "key"]);
    // Only ages and remaining times differ between runs.
    let lines = list.text().lines().enumerate().map(|(number, line)| {
        let times = if number == 0 { &line[11..31] } else { "      AGE       LEFT" };
        format!("{}{times}{}\n", &line[..11], &line[31..])
    });
    expect("ls-tags.txt", &lines.collect::<String>());
    let tagged = volume.run(["ls", "--tag", "two", "--json"]);
    assert_eq!(tagged.text().lines().count(), 1);
    assert!(tagged.text().contains("\"key\":\"page\""), "{}", tagged.text());
}

#[test]
fn contradictory_options_are_refused() {
    let volume = Volume::new();
    for words in [
        &["put", "key", "-", "--stale", "1h"][..],
        &["put", "key", "file", "--negative", "404"],
        &["put", "key", "--negative", "70000"],
        &["put", "key", "--tag", ""],
        &["get", "key", "--json", "--metadata"],
    ] {
        let ended = volume.run(words);
        assert_eq!((ended.code, ended.text()), (2, ""), "{words:?}: {}", ended.stderr);
    }
}
