//! Runs the Python tests of the suite's drivers, with programs that cargo has built for a test.

use std::path::Path;
use std::process::Command;

/// Runs a class of `scripts/drivers-test`, with these programs in these environment variables. No test of the class may
/// be skipped. If Python 3.11, a second core or a program is missing, it says so.
pub(crate) fn pass(class: &str, programs: &[(&str, &Path)]) {
    let probe = Command::new("python3").args(["-c", "import tomllib"]).output();
    let has_python = probe.is_ok_and(|probe| probe.status.success());
    let has_two_cores = std::thread::available_parallelism().is_ok_and(|cores| cores.get() >= 2);
    let missing: Vec<_> = programs.iter().filter(|(_, program)| !program.is_file()).collect();
    if !has_python || !has_two_cores || !missing.is_empty() {
        eprintln!(
            "skipped: it needs python3 (3.11 or later), two cores, and the programs of the workspace; missing: {missing:?}"
        );
        return;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/drivers-test");
    let output =
        Command::new("python3").arg(script).arg(class).envs(programs.iter().copied()).output().expect("python3");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !said.contains("skipped"), "{said}");
}
