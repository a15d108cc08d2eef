//! The reader closes the output early, as `head` does: that is no error.

use std::process::Stdio;

use crate::command::{Volume, run};

#[test]
fn nobody_reads_the_output() {
    let volume = Volume::new();
    volume.put("key", &vec![b'x'; 200_000]);
    for words in [vec!["get", "key"], vec!["ls"], vec!["stat"], vec!["completions", "bash"], vec!["man"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = volume.command(&words).stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
        let output = output.wait_with_output().unwrap();
        assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]), "{words:?}");
    }
}

#[test]
fn a_full_disk_is_an_error() {
    let volume = Volume::new();
    volume.put("key", b"value");
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = volume.command(["get", "key"]).stdout(full).stderr(Stdio::piped()).spawn().unwrap();
    let output = output.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&output.stderr).contains("can't write the output"));
    assert_eq!(run(&mut volume.command(["get", "key"]), b"").code, 0);
}
