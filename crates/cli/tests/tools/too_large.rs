//! `put` refuses a value that is too large for the volume, and the old value stays.

use std::io::Write as _;
use std::process::Stdio;

use crate::command::{Volume, run};

#[test]
fn a_value_over_the_limit_is_refused_and_the_old_one_stays() {
    let volume = Volume::absent();
    assert_eq!(volume.run(["create", "--size", "1M", "--entry-bytes-max", "16K"]).code, 0);
    volume.put("key", b"old");
    for bytes in [16 << 10, 17 << 10, 1 << 20] {
        let put = run(&mut volume.command(["put", "key"]), &vec![b'x'; bytes]);
        assert_eq!(put.code, 3, "{bytes} bytes: {}", put.stderr);
        assert!(
            put.stderr.starts_with("eyewall: the ") && put.stderr.contains("resize --entry-bytes-max"),
            "{}",
            put.stderr
        );
        assert!(put.stderr.contains("16 KiB"), "{}", put.stderr);
    }
    assert_eq!(volume.run(["get", "key"]).text(), "old");
}

#[test]
fn put_stops_reading_an_endless_input() {
    let volume = Volume::absent();
    assert_eq!(volume.run(["create", "--size", "1M", "--entry-bytes-max", "16K"]).code, 0);
    let mut child = volume.command(["put", "key"]).stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    while input.write_all(&[b'x'; 4096]).is_ok() {}
    assert_eq!(child.wait().unwrap().code(), Some(3));
}
