//! `ls` lists the entries of the volume, for people and for programs.

use crate::command::{Volume, run};

#[test]
fn people_get_a_table() {
    let volume = Volume::new();
    volume.put("/index.html", &[b'x'; 1536]);
    assert_eq!(run(&mut volume.command(["put", "/short", "--ttl", "90m"]), b"abc").code, 0);
    let list = volume.run(["ls"]);
    assert_eq!(list.code, 0);
    let mut lines: Vec<&str> = list.text().lines().collect();
    assert_eq!(lines.remove(0).split_whitespace().collect::<Vec<_>>(), ["SIZE", "AGE", "TTL", "LEFT", "STATE", "KEY"]);
    lines.sort_by_key(|line| line.split_whitespace().last().map(str::to_owned));
    assert!(lines[0].contains("1.5 KiB") && lines[0].ends_with("-  fresh      /index.html"), "{lines:?}");
    assert!(lines[1].contains("3 B") && lines[1].contains("1 h ") && lines[1].ends_with("  /short"), "{lines:?}");
}

#[test]
fn programs_get_one_object_a_line() {
    let volume = Volume::new();
    assert_eq!(run(&mut volume.command(["put", "caf\u{e9}\n", "--metadata", "12345"]), b"abc").code, 0);
    let list = volume.run(["ls", "--json"]);
    let line: serde_json::Value = serde_json::from_str(list.text().trim_end()).unwrap();
    assert_eq!(line["key"], "caf\u{e9}\n");
    assert_eq!(line["value_bytes"], 3);
    assert_eq!(line["metadata_bytes"], 5);
    assert!(line["age_seconds"].as_f64().is_some_and(|age| age >= 0.0), "{line}");
}

#[test]
fn a_prefix_picks_some() {
    let volume = Volume::new();
    for key in ["/a/1", "/a/2", "/b/1"] {
        volume.put(key, b"value");
    }
    assert_eq!(volume.run(["ls", "--json", "/a/"]).text().lines().count(), 2);
    assert_eq!(volume.run(["ls", "--json"]).text().lines().count(), 3);
}

#[test]
fn an_empty_volume_is_an_empty_list() {
    let volume = Volume::new();
    assert_eq!(volume.run(["ls"]).text().lines().count(), 1, "the names of the columns");
    let list = volume.run(["ls", "--json"]);
    assert_eq!((list.code, list.text()), (0, ""));
}
