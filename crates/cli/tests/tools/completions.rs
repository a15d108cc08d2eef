//! The command writes completion scripts for shells.

use crate::command::{eyewall, run};

#[test]
fn every_script_has_every_verb() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = run(eyewall().args(["completions", shell]), b"");
        assert_eq!((script.code, script.stderr.as_str()), (0, ""), "{shell}");
        for verb in ["create", "put", "get", "rm", "ls", "stat", "serve", "check", "advise", "completions", "man"] {
            assert!(script.text().contains(verb), "{verb} for {shell}");
        }
        assert!(script.text().contains("entry-size-hint"), "options, too, for {shell}");
    }
}

#[test]
fn an_unknown_shell_is_a_usage_error() {
    assert_eq!(run(eyewall().args(["completions", "c:\\"]), b"").code, 2);
}
