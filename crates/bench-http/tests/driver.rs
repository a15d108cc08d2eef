//! The driver of workloads over HTTP, with this crate's program: it measures all that is defined, names a missing
//! server with the reason, and leaves no file and no process behind if a signal interrupts it.

#![cfg(test)]

#[path = "common/drivers.rs"]
mod drivers;

use std::path::Path;

#[test]
fn the_driver_keeps_its_promises() {
    drivers::pass("Web", &[("BENCH_HTTP_PROGRAM", Path::new(env!("CARGO_BIN_EXE_bench-http")))]);
}
