//! A script stores, finds and removes a value, and recognises each case by the exit code alone.

use crate::command::Volume;
use crate::command::run;

#[test]
fn a_value_goes_in_and_comes_out_byte_for_byte() {
    let volume = Volume::new();
    let value: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    volume.put("key", &value);
    let got = volume.run(["get", "key"]);
    assert_eq!((got.code, got.stderr.as_str()), (0, ""));
    assert_eq!(got.stdout, value, "nothing but the value");
}

#[test]
fn a_miss_is_silent_and_has_exit_code_1() {
    let volume = Volume::new();
    let got = volume.run(["get", "nothing"]);
    assert_eq!((got.code, got.text(), got.stderr.as_str()), (1, "", ""));
}

#[test]
fn an_empty_value_is_a_hit() {
    let volume = Volume::new();
    volume.put("empty", b"");
    let got = volume.run(["get", "empty"]);
    assert_eq!((got.code, got.text()), (0, ""));
}

#[test]
fn a_second_put_replaces_the_first() {
    let volume = Volume::new();
    volume.put("key", b"first");
    volume.put("key", b"second");
    assert_eq!(volume.run(["get", "key"]).text(), "second");
}

#[test]
fn remove_reports_whether_the_key_was_there() {
    let volume = Volume::new();
    volume.put("key", b"value");
    assert_eq!(volume.run(["rm", "key"]).code, 0);
    assert_eq!(volume.run(["rm", "key"]).code, 1);
    assert_eq!(volume.run(["get", "key"]).code, 1);
}

#[test]
fn a_value_comes_from_a_file_or_from_standard_input() {
    let volume = Volume::new();
    let file = volume.folder().join("value");
    std::fs::write(&file, b"from the file").unwrap();
    assert_eq!(run(volume.command(["put", "a"]).arg(&file), b"ignored").code, 0);
    assert_eq!(run(&mut volume.command(["put", "b", "-"]), b"from the input").code, 0);
    assert_eq!(volume.run(["get", "a"]).text(), "from the file");
    assert_eq!(volume.run(["get", "b"]).text(), "from the input");
}

#[test]
fn a_missing_file_stores_nothing() {
    let volume = Volume::new();
    let put = volume.run(["put", "key", "/nowhere/at/all"]);
    assert_eq!(put.code, 3);
    assert!(put.stderr.contains("can't read the value from the file /nowhere/at/all"), "{}", put.stderr);
    assert_eq!(volume.run(["get", "key"]).code, 1);
}

#[test]
fn metadata_is_kept_beside_the_value() {
    let volume = Volume::new();
    assert_eq!(run(&mut volume.command(["put", "key", "--metadata", "text/plain"]), b"value").code, 0);
    assert_eq!(volume.run(["get", "key", "--metadata"]).text(), "text/plain");
    assert_eq!(volume.run(["get", "key"]).text(), "value");
}
