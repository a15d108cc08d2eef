//! The suite with the stores that cost nothing to build: for a first look, and for the tests, which start it as a child
//! process.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use eyewall_bench::{program, stores};

fn main() -> ExitCode {
    program::main(&stores::PEERS)
}
