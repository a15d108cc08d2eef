//! The `eyewall` command. Everything it does lives in the library beside it.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    eyewall_cli::run(std::env::args_os())
}
