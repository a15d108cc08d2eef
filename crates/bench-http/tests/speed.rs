//! `scripts/speed`, which drives this crate's program, keeps its promises on tiny sizes: all that is defined is measured, a server
//! that is missing is absent with its reason, and an interrupted run leaves no file and no process behind.

#![cfg(test)]

use std::path::Path;
use std::process::Command;

/// What the script needs of Python came with 3.11.
fn can_run() -> bool {
    let probe = Command::new("python3").args(["-c", "import tomllib"]).output();
    let has_two_cores = std::thread::available_parallelism().is_ok_and(|cores| cores.get() >= 2);
    probe.is_ok_and(|probe| probe.status.success()) && has_two_cores
}

#[test]
fn the_script_keeps_its_promises() {
    if !can_run() {
        eprintln!("skipped: it wants python3 (3.11 or later) and two cores");
        return;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/speed.d/test_speed.py");
    let mut command = Command::new("python3");
    let output =
        command.arg(script).env("BENCH_HTTP_PROGRAM", env!("CARGO_BIN_EXE_bench-http")).output().expect("python3");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
