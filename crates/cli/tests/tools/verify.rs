//! An operator doubts a volume: `verify` checks it, finds an entry with a changed byte, and drops it on request.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use crate::command::Volume;
use crate::expected::expect;

/// The path differs between runs.
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
fn a_sound_volume_is_reported_as_sound() {
    let volume = Volume::new();
    volume.put("key", b"value");
    expect("verify-sound.txt", &text(&volume, &[], 0));
    expect("verify-deep.txt", &text(&volume, &["--deep"], 0));
}

#[test]
fn a_changed_byte_is_found_and_its_entry_dropped() {
    let volume = damaged();
    text(&volume, &[], 0);
    // The places of entries depend only on the sizes of the volume.
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
