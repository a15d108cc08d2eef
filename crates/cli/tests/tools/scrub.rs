//! An operator scrubs volumes, in use or not: `scrub` drops damaged entries, and reports them by the exit code.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use eyewall::Options;

use crate::command::{Volume, eyewall, run};
use crate::expected::expect;

fn filled() -> Volume {
    let volume = Volume::new();
    for key in ["one", "two", "three"] {
        volume.put(key, key.repeat(100).as_bytes());
    }
    volume
}

fn damage(volume: &Volume) {
    let bytes = std::fs::read(volume.path()).unwrap();
    let at = bytes.windows(6).position(|part| part == b"twotwo").unwrap();
    File::options().write(true).open(volume.path()).unwrap().write_all_at(b"X", at as u64 + 50).unwrap();
}

fn text(volume: &Volume, words: &[&str], code: i32) -> String {
    let ended = volume.run(["scrub"].iter().chain(words));
    assert_eq!((ended.code, ended.stderr.as_str()), (code, ""), "{words:?}: {}", ended.text());
    ended.text().replace(&volume.path().display().to_string(), "site.eye")
}

#[test]
fn damaged_entries_are_dropped_while_the_volume_is_in_use() {
    let volume = filled();
    let cache = Options::new().open(volume.path()).unwrap();
    assert_eq!(cache.get("two").unwrap().unwrap().len(), 300);
    expect("scrub-sound.txt", &text(&volume, &[], 0));
    damage(&volume);
    expect("scrub-damaged.txt", &text(&volume, &["--rate", "1G"], 6));
    text(&volume, &[], 0);
    assert!(cache.get("two").unwrap().is_none() && cache.get("one").unwrap().is_some());
    assert_eq!(cache.stats().unwrap().evictions_damaged, 1);
}

#[test]
fn several_volumes_are_scrubbed_one_after_the_other() {
    let (sound, damaged) = (filled(), filled());
    damage(&damaged);
    let ended = run(eyewall().args(["scrub", "--json"]).args([sound.path(), damaged.path()]), b"");
    assert_eq!(ended.code, 6);
    let told =
        serde_json::Deserializer::from_str(ended.text()).into_iter().collect::<Result<Vec<serde_json::Value>, _>>();
    let told = told.unwrap();
    let figures = |number: usize| {
        let figure = |name: &str| told[number][name].as_u64().unwrap();
        (figure("entries_read"), figure("entries_skipped"), figure("entries_dropped"))
    };
    assert_eq!((told.len(), figures(0), figures(1)), (2, (3, 0, 0), (2, 0, 1)));
    assert_eq!(told[1]["path"], damaged.path().to_str().unwrap());
}

#[test]
fn a_volume_that_can_not_be_scrubbed_is_reported() {
    let ended = |words: &[&str]| {
        let ended = run(eyewall().arg("scrub").args(words), b"");
        (ended.code, ended.stderr)
    };
    let (code, told) = ended(&["/there/is/none"]);
    assert!(code == 3 && told.contains("/there/is/none"), "{told}");
    let (code, told) = ended(&[]);
    assert!(code == 2 && told.contains("--cache"), "{told}");
    let (code, told) = ended(&["--rate", "0", "volume"]);
    assert!(code == 2 && told.contains("a rate must be more than 0"), "{told}");
}
