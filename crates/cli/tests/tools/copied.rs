//! A copy of a volume. Looking at it changes nothing and shows what can be proved; who writes to it keeps that.

use std::fs;

use crate::command::Volume;

#[test]
fn a_look_at_a_copy_leaves_it_as_it_is() {
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
fn who_writes_to_a_copy_keeps_what_was_in_it() {
    let volume = Volume::new();
    volume.put("key", b"value");
    let copy = Volume::absent();
    fs::copy(volume.path(), copy.path()).unwrap();
    copy.put("new", b"value");
    assert_eq!(copy.run(["get", "key"]).text(), "value");
    assert_eq!(copy.run(["get", "new"]).text(), "value");
    assert!(copy.run(["stat"]).text().contains("2 entries; "));
}
