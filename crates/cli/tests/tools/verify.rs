//! Somebody doubts a volume: it is looked through, and a byte that has changed is found, and dropped on demand.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use crate::command::Volume;
use crate::expected::expect;

/// The path is another in each run.
fn text(volume: &Volume, words: &[&str], code: i32) -> String {
    let ended = volume.run(["verify"].iter().chain(words));
    assert_eq!((ended.code, ended.stderr.as_str()), (code, ""), "{words:?}: {}", ended.text());
    ended.text().replace(&volume.path().display().to_string(), "site.eye")
}

fn damaged() -> Volume {
    let volume = Volume::new();
    for key in ["one", "two", "three"] {
        volume.put(key, key.repeat(100).as_bytes());
    }
    let bytes = std::fs::read(volume.path()).unwrap();
    let at = bytes.windows(6).position(|part| part == b"twotwo").unwrap();
    File::options().write(true).open(volume.path()).unwrap().write_all_at(b"X", at as u64 + 50).unwrap();
    volume
}

#[test]
fn what_is_sound_is_said_to_be() {
    let volume = Volume::new();
    volume.put("key", b"value");
    expect("verify-sound.txt", &text(&volume, &[], 0));
    expect("verify-deep.txt", &text(&volume, &["--deep"], 0));
}

#[test]
fn a_byte_that_changed_is_found_and_dropped() {
    let volume = damaged();
    text(&volume, &[], 0);
    // Where entries lie depends on the sizes of the volume alone.
    expect("verify-damaged.txt", &text(&volume, &["--deep"], 6));
    expect("verify-repaired.txt", &text(&volume, &["--deep", "--repair"], 6));
    text(&volume, &["--deep"], 0);
    assert_eq!((volume.run(["get", "two"]).code, volume.run(["get", "one"]).code), (1, 0));
}

#[test]
fn programs_get_the_report() {
    let volume = damaged();
    let found = volume.run(["verify", "--deep", "--repair", "--json"]);
    let report: serde_json::Value = serde_json::from_str(found.text()).unwrap();
    assert_eq!((found.code, report["sound"].as_bool(), report["entries_read"].as_u64()), (6, Some(false), Some(3)));
    assert_eq!(report["repairs"]["entries_dropped"], 1);
    assert_eq!(report["problems"].as_array().unwrap().len(), 1);
}
