//! `eyewall-bench`: the suite, with all stores.

use std::process::ExitCode;

use eyewall_bench_compare::ALL;

fn main() -> ExitCode {
    eyewall_bench::program::main(&ALL)
}
