//! The suite with the stores that cost nothing to build: for a first look, and for the tests, whose children it is.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use eyewall_bench::{program, stores};

fn main() -> ExitCode {
    program::main(&stores::PEERS)
}
