//! The `eyewall` command; the library beside it does the work.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    eyewall_cli::run(std::env::args_os())
}
