//! Colours are for terminals only, and a user can turn them off or on.

use crate::command::{Volume, eyewall, run};

const ESCAPE: u8 = 0x1b;

#[test]
fn a_pipe_gets_none() {
    let volume = Volume::new();
    for words in [&["ls"][..], &["stat"], &["get", "nothing", "--metadata"], &["no-verb"]] {
        let ended = volume.run(words);
        assert!(!ended.stdout.contains(&ESCAPE) && !ended.stderr.contains('\x1b'), "{words:?}");
    }
}

#[test]
fn colours_can_be_forced_unless_they_are_forbidden() {
    let volume = Volume::new();
    for words in ["ls", "stat"] {
        let asked = run(volume.command([words]).env("CLICOLOR_FORCE", "1"), b"");
        assert!(asked.stdout.contains(&ESCAPE), "{words}");
        let forbidden = run(volume.command([words]).env("CLICOLOR_FORCE", "1").env("NO_COLOR", "1"), b"");
        assert!(!forbidden.stdout.contains(&ESCAPE), "{words}");
    }
    let error = run(eyewall().arg("ls").env("CLICOLOR_FORCE", "1"), b"");
    assert!(error.stderr.starts_with("\x1b["), "{:?}", error.stderr);
}

#[test]
fn values_are_written_unchanged() {
    let volume = Volume::new();
    volume.put("key", b"\x1b[31mred\x1b[0m");
    assert_eq!(volume.run(["get", "key"]).stdout, b"\x1b[31mred\x1b[0m");
}
