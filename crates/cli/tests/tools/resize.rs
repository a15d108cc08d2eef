//! An operator changes the size of a volume.

use crate::command::{Volume, run};

#[test]
fn entries_move_to_the_new_size() {
    let volume = Volume::new();
    assert_eq!(run(&mut volume.command(["put", "page"]), b"text").code, 0);
    let bytes = || std::fs::metadata(volume.path()).unwrap().len();
    let old = bytes();
    let ended = volume.run(["resize", "--size", "8M"]);
    assert_eq!((ended.code, ended.text()), (0, "8 MiB now, with 1 entry\n"), "{}", ended.stderr);
    assert!(old != 8 << 20 && bytes() == 8 << 20);
    assert_eq!(volume.run(["get", "page"]).text(), "text");
    let ended = volume.run(["resize", "--entry-size-hint", "100", "--json"]);
    let told: serde_json::Value = serde_json::from_str(ended.text()).unwrap();
    assert_eq!(told["entry_size_hint"], 100);
    let ended = volume.run(["resize", "--entry-size-hint", "500"]);
    assert_eq!(ended.text(), "8 MiB now, with 1 entry\nthe index is for entries of 500 B\n");
    assert_eq!((&told["copied"], &told["size_bytes"]), (&1.into(), &(8 << 20).into()));
}

#[test]
fn an_impossible_shape_is_refused() {
    let volume = Volume::new();
    let ended = volume.run(["resize"]);
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("--size"), "{}", ended.stderr);
    let ended = volume.run(["resize", "--size", "1K"]);
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("too small"), "{}", ended.stderr);
}
