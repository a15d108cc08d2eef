//! `eyewall-bench`: the suite, on every store that there is.

use std::process::ExitCode;

use eyewall_bench_compare::ALL;

fn main() -> ExitCode {
    eyewall_bench::program::main(&ALL)
}
