//! `bench-http`: the server benchmark's own programs: a client, an origin, and the bare servers to compare with.
//!
//! `load` sends requests, and prints the results as one line of JSON. `serve` answers from memory, like a cache's hits,
//! and `proxy` forwards to an origin. Both use only hyper, so they show the cost of hyper. `store` is a page cache on a
//! store of the engine's benchmark. `origin` is the origin of all contenders. The four servers have one thread, print
//! their address on their first line, and end with their standard input. `bench/drivers/web` runs all of them. Nothing
//! of the product depends on this crate.

#![forbid(unsafe_code)]

mod certificate;
mod error;
mod listen;
mod load;
mod objects;
mod origin;
mod origin_client;
mod proxy;
mod serve;
mod store;

use std::process::ExitCode;

use clap::Parser;

use crate::error::Result;

/// The server benchmark's client, its origin, and the bare servers to compare with.
#[derive(Debug, Parser)]
#[command(name = "bench-http", version)]
enum Command {
    /// Answer /page/BYTES/NAME as a cache answers a hit, from memory
    Serve,
    /// Forward every request to an origin, and its response to the client
    Proxy(proxy::Arguments),
    /// Cache pages in a store of the engine's benchmark
    Store(store::Arguments),
    /// Be the origin of all contenders, and count the requests
    Origin,
    /// Make certificates for measurements over TLS
    Certificate(certificate::Arguments),
    /// Request one object or many, and print the results as JSON
    Load(load::Arguments),
}

fn main() -> ExitCode {
    match run(Command::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("bench-http: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<()> {
    match command {
        Command::Serve => serve::run(),
        Command::Proxy(arguments) => proxy::run(&arguments),
        Command::Store(arguments) => store::run(&arguments),
        Command::Origin => origin::run(),
        Command::Certificate(arguments) => certificate::run(&arguments),
        Command::Load(arguments) => load::run(&arguments),
    }
}
