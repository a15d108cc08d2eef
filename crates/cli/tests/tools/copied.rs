//! A copy of a volume: reading it changes nothing and shows the entries that can be verified; writing to it keeps those.

use std::fs;

use crate::command::Volume;

#[test]
fn reading_a_copy_does_not_change_it() {
    let volume = Volume::new();
    volume.put("key", b"value");
    let copy = Volume::absent();
    fs::copy(volume.path(), copy.path()).unwrap();
    let before = fs::read(copy.path()).unwrap();
    assert!(copy.run(["stat"]).text().contains("1 entry; "));
    assert_eq!(copy.run(["get", "key"]).text(), "value");
    assert!(copy.run(["ls"]).text().ends_with("  key\n"));
    assert!(fs::read(copy.path()).unwrap() == before, "not one byte differs");
}

#[test]
fn writing_to_a_copy_keeps_its_entries() {
    let volume = Volume::new();
    volume.put("key", b"value");
    let copy = Volume::absent();
    fs::copy(volume.path(), copy.path()).unwrap();
    copy.put("new", b"value");
    assert_eq!(copy.run(["get", "key"]).text(), "value");
    assert_eq!(copy.run(["get", "new"]).text(), "value");
    assert!(copy.run(["stat"]).text().contains("2 entries; "));
}
