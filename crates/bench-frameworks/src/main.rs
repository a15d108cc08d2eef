//! `bench-frameworks`, for the server's benchmark: serves one folder with a web framework, in the way that the
//! framework's users serve files.
//!
//! Every server answers `GET /files/NAME` with the file NAME of the folder, on the given number of worker threads,
//! without a log. It prints its address on its first line, and ends on SIGTERM or SIGINT. `bench/drivers/web` runs the
//! servers. Nothing of the product depends on this crate, and no other benchmark is linked with its dependencies.

#![forbid(unsafe_code)]

mod actix;
mod cached_file;
mod error;
mod named_file;
mod on_axum;
mod on_rocket;
mod serve_dir;
mod serving;
mod tower_eyewall;

use std::process::ExitCode;

use clap::{Parser, ValueEnum};

use crate::error::Result;
use crate::serving::Serving;

/// Serves the files of a folder below /files/.
#[derive(Debug, Parser)]
#[command(name = "bench-frameworks", version)]
struct Arguments {
    /// The framework, and its way to serve files
    #[arg(long, value_name = "NAME")]
    server: Server,
    #[command(flatten)]
    serving: Serving,
}

/// The servers. The names are those of the records.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Server {
    /// Rocket, a route that opens a `NamedFile`
    RocketNamedfile,
    /// Rocket, a route that opens a `CachedFile` of ours
    RocketEyewall,
    /// axum, the `ServeDir` of tower-http
    TowerHttpServedir,
    /// axum, the `ServeDir` of ours
    TowerEyewall,
    /// actix-web, the service `Files` of actix-files
    ActixFiles,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(arguments.server, &arguments.serving) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("bench-frameworks: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(server: Server, serving: &Serving) -> Result<()> {
    serving.check()?;
    match server {
        Server::RocketNamedfile => named_file::serve(serving),
        Server::RocketEyewall => cached_file::serve(serving),
        Server::TowerHttpServedir => serve_dir::serve(serving),
        Server::TowerEyewall => tower_eyewall::serve(serving),
        Server::ActixFiles => actix::serve(serving),
    }
}
