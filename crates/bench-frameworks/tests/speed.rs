//! `scripts/speed` drives this crate's program: in the tiniest form, all that `served-files` defines is measured, and a record of it is sound.

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
fn every_server_that_is_defined_is_measured() {
    let program = Path::new(env!("CARGO_BIN_EXE_bench-frameworks"));
    // The client is another crate's, and lies beside this one where all crates are tested.
    let client = program.with_file_name("bench-http");
    if !can_run() || !client.is_file() {
        eprintln!(
            "skipped: it wants python3 (3.11 or later), two cores, and bench-http, which cargo builds with the workspace's tests"
        );
        return;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/drivers-test");
    let mut command = Command::new("python3");
    command.arg(script).arg("ServedFiles").env("BENCH_HTTP_PROGRAM", client).env("BENCH_FRAMEWORKS_PROGRAM", program);
    let output = command.output().expect("python3");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !said.contains("skipped"), "{said}");
}
