//! A key may be any bytes. In a table it is one line, can't control a terminal, and no two keys look the same.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use crate::command::Volume;

#[test]
fn control_bytes_and_broken_text_are_escaped() {
    let volume = Volume::new();
    volume.put(OsStr::from_bytes(b"a\x1b[31m\nb\xff\\"), b"value");
    let list = volume.run(["ls"]);
    assert!(list.text().ends_with("  a\\x1b[31m\\x0ab\\xff\\\\\n"), "{:?}", list.text());
}

#[test]
fn programs_get_broken_text_in_hexadecimal_digits() {
    let volume = Volume::new();
    volume.put(OsStr::from_bytes(b"\xff\x00z".split(|byte| *byte == 0).next().unwrap()), b"value");
    let line: serde_json::Value = serde_json::from_str(volume.run(["ls", "--json"]).text().trim_end()).unwrap();
    assert_eq!(line["key_hex"], "ff");
    assert!(line.get("key").is_none());
}

#[test]
fn keys_are_bytes_for_get_and_rm_too() {
    let volume = Volume::new();
    let key = OsStr::from_bytes(b"\xfe\xff");
    volume.put(key, b"value");
    assert_eq!(volume.run([OsStr::new("get"), key]).text(), "value");
    assert_eq!(volume.run([OsStr::new("rm"), key]).code, 0);
}

#[test]
fn a_key_that_looks_like_an_option_follows_two_dashes() {
    let volume = Volume::new();
    assert_eq!(crate::command::run(&mut volume.command(["put", "--", "--json"]), b"value").code, 0);
    assert_eq!(volume.run(["get", "--", "--json"]).text(), "value");
}
