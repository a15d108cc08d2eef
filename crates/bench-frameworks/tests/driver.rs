//! The driver of workloads over HTTP, with this crate's program: at the smallest size it measures everything that
//! `served-files` defines, and the record is sound.

#![cfg(test)]

#[path = "../../bench-http/tests/common/drivers.rs"]
mod drivers;

use std::path::Path;

#[test]
fn every_server_that_is_defined_is_measured() {
    let program = Path::new(env!("CARGO_BIN_EXE_bench-frameworks"));
    // The client is in another crate. Its program lies beside this one if all crates are tested.
    let client = program.with_file_name("bench-http");
    drivers::pass("ServedFiles", &[("BENCH_HTTP_PROGRAM", &client), ("BENCH_FRAMEWORKS_PROGRAM", program)]);
}
