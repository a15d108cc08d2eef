//! `bench-http`: the server benchmark's own programs: a client, an origin, and the bare servers to compare with.
//!
//! `load` asks, and tells what it got as one line of JSON. `serve` is hyper with the answers of a cache's hits in memory,
//! `proxy` is hyper before an origin, each with nothing else: what they cost is what hyper costs. `store` is a page cache on
//! a store of the engine's benchmark. `origin` is whom all contenders ask. The four servers have one thread, print their
//! address on their first line, and end with their standard input. `bench/drivers/web` runs all of them; nothing of the product
//! depends on this crate.

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
    /// Pass every request on to an origin, and its answer back
    Proxy(proxy::Arguments),
    /// Cache pages in a store of the engine's benchmark
    Store(store::Arguments),
    /// Be the origin of all contenders, and count what it is asked for
    Origin,
    /// Make certificates for measurements over TLS
    Certificate(certificate::Arguments),
    /// Ask for one object or many, and print what came of it as JSON
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
