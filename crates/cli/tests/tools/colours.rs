//! Colours are for terminals. In a file or a pipe they would be rubbish, and who doesn't want them says so.

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
fn who_asks_for_them_gets_them_unless_they_are_forbidden() {
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
fn values_go_out_as_they_are() {
    let volume = Volume::new();
    volume.put("key", b"\x1b[31mred\x1b[0m");
    assert_eq!(volume.run(["get", "key"]).stdout, b"\x1b[31mred\x1b[0m");
}
