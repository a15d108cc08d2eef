//! Ctrl-C while a tool works: it ends at once, by the signal, as shells and scripts expect.

use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};

use crate::command::{Volume, eyewall};

#[test]
fn a_tool_that_waits_for_input_ends_by_the_signal() {
    let volume = Volume::new();
    for command in [eyewall().args(["advise", "-"]), &mut volume.command(["put", "key", "-"])] {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        // More than a pipe holds: once all of it is written, somebody reads.
        input.write_all("key 1\n".repeat(30_000).as_bytes()).unwrap();
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        let ended = child.wait_with_output().unwrap();
        assert_eq!(ended.status.signal(), Some(Signal::INT.as_raw()));
        assert_eq!((ended.stdout, ended.stderr), (vec![], vec![]));
        drop(input);
    }
    assert_eq!(volume.run(["get", "key"]).code, 1, "half a value was not stored");
}
