//! Ctrl-C kills a tool at once by its signal, as shells and scripts expect.

use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::command::{Volume, eyewall};

/// The same command with the default action for the signal. A shell in the background, or `nohup`, may have started these tests
/// with the signal ignored, and children inherit that.
fn interruptible(command: &Command) -> Command {
    let mut heard = Command::new("env");
    heard.arg("--default-signal=INT").arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => heard.env(name, value),
            None => heard.env_remove(name),
        };
    }
    heard
}

#[test]
fn a_tool_that_waits_for_input_ends_by_the_signal() {
    let volume = Volume::new();
    for command in [eyewall().args(["advise", "-"]), &mut volume.command(["put", "key", "-"])] {
        let mut child =
            interruptible(command).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        // More than a pipe holds: once all of it is written, the tool is reading.
        input.write_all("key 1\n".repeat(30_000).as_bytes()).unwrap();
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        let ended = child.wait_with_output().unwrap();
        assert_eq!(ended.status.signal(), Some(Signal::INT.as_raw()));
        assert_eq!((ended.stdout, ended.stderr), (vec![], vec![]));
        drop(input);
    }
    assert_eq!(volume.run(["get", "key"]).code, 1, "half a value was not stored");
}
