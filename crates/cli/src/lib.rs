//! The `eyewall` command: tools for a volume, and a web server that serves from it.
//!
//! ```text
//! eyewall create --cache site.eye --size 256M     create a volume
//! eyewall put    --cache site.eye KEY FILE        store a value          exit 0
//! eyewall get    --cache site.eye KEY             value to stdout        exit 0, or 1 on a miss
//! eyewall rm     --cache site.eye KEY             remove an entry        exit 0, or 1 if absent
//! eyewall ls     --cache site.eye                 list the entries
//! eyewall stat   --cache site.eye                 the state of the volume
//! eyewall top    --cache site.eye                 the same, live
//! eyewall map    --cache site.eye                 how the bytes are used
//! eyewall purge  --cache site.eye --tag TAG       purge entries; also by --prefix, or --all; by a running server with --server
//! eyewall verify --cache site.eye                 check the volume       exit 0, or 6 if it is damaged
//! eyewall export --cache site.eye FILE            write all entries; `import` takes them
//! eyewall serve  --cache site.eye --origin URL    answer HTTP from it
//! eyewall reload --server admin.sock              put its configuration file in force
//! eyewall upgrade --server admin.sock             hand over to a new process
//! eyewall fleet agent --cache site.eye --redis URL   make the volume a node of a fleet
//! eyewall check  site.toml                        check a configuration  exit 0, or 2 if it has mistakes
//! eyewall doctor site.toml                        what is wrong with machine, configuration and origins
//! eyewall explain URL --server admin.sock          what would become of a request, and why
//! eyewall log --server admin.sock                 the requests of a running server, as they end
//! eyewall advise access.log                       recommend a size for the volume
//! eyewall completions bash                        a completion script
//! eyewall man                                     manual pages
//! ```
//!
//! `--cache` may stand before or after the verb, or be given by `EYEWALL_CACHE`. Exit code 2 means that the command
//! line or a configuration is wrong, 3 that the command failed; standard error says why ([`Error`]).
//!
//! # Where to look
//! [`args`] is the command line, `tools` has one file for each verb, [`advise`] is the verb that reads logs. `serve` starts the web server of the crate
//! [`eyewall_server`]. Nothing depends on this crate.
//!
//! # What is absent
//! This crate has no `unsafe`, no memory map of its own (the engine gives pinned bytes), and no HTTP server of its own.

#![forbid(unsafe_code)]

pub mod advise;
mod agent;
pub mod args;
mod error;
#[cfg(test)]
#[path = "../tests/common/expected.rs"]
mod expected;
mod log;
mod output;
mod serve;
mod svg;
mod tools;
mod volume;
mod words;

use std::ffi::OsString;
use std::process::ExitCode;

use args::{Arguments, FleetVerb, Verb};
pub use error::{Error, Outcome};

/// Runs one command line, whose first word is the program's name, and returns the exit code.
pub fn run(words: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments = match args::parse(words) {
        Ok(arguments) => arguments,
        Err(error) => {
            // A failure here means that the terminal is gone.
            let _ = error.print();
            return ExitCode::from(error.exit_code() as u8);
        }
    };
    match dispatch(&arguments) {
        Ok(outcome) => ExitCode::from(outcome as u8),
        Err(error) if error.is_broken_pipe() => ExitCode::SUCCESS,
        Err(error) => {
            output::tell(output::ERROR, "eyewall", &error.to_string());
            ExitCode::from(error.exit_code())
        }
    }
}

fn dispatch(arguments: &Arguments) -> Result<Outcome, Error> {
    let cache = arguments.cache.as_deref();
    match &arguments.verb {
        Verb::Create(create) => tools::create::run(volume::named(cache)?, create),
        Verb::Put(put) => tools::put::run(volume::named(cache)?, put),
        Verb::Get(get) => tools::get::run(volume::named(cache)?, get),
        Verb::Rm(remove) => tools::remove::run(volume::named(cache)?, remove),
        Verb::Ls(list) => tools::list::run(volume::named(cache)?, list),
        Verb::Stat(stat) => match &stat.server {
            Some(server) => tools::stat_server::run(server, stat),
            None => tools::stat::run(volume::named(cache)?, stat),
        },
        Verb::Top(top) => match &top.server {
            Some(server) => tools::top::of_server::run(server, top),
            None => tools::top::run(volume::named(cache)?, top),
        },
        Verb::Map(map) => tools::map::run(volume::named(cache)?, map),
        Verb::Purge(purge) => match &purge.server {
            Some(server) => tools::purge_server::run(server, purge),
            None => tools::purge::run(volume::named(cache)?, purge),
        },
        Verb::Sweep(upkeep) => tools::upkeep::sweep(volume::named(cache)?, upkeep),
        Verb::Resize(wanted) => tools::resize::resize(volume::named(cache)?, wanted),
        Verb::Sync(upkeep) => tools::upkeep::sync(volume::named(cache)?, upkeep),
        Verb::Verify(verify) => tools::verify::run(volume::named(cache)?, verify),
        Verb::Scrub(scrub) => tools::scrub::run(cache, scrub),
        Verb::Export(export) => tools::export::run(volume::named(cache)?, export),
        Verb::Import(import) => tools::import::run(volume::named(cache)?, import),
        Verb::Serve(serve) => serve::run(cache, serve),
        Verb::Fleet(fleet) => match (&fleet.agent, &fleet.asked) {
            (Some(FleetVerb::Agent(agent)), _) => agent::run(cache, agent),
            (None, Some(asked)) => tools::fleet::run(asked),
            (None, None) => unreachable!("without a further verb, --server is required"),
        },
        Verb::Reload(reload) => tools::reload::run(reload),
        Verb::Upgrade(upgrade) => tools::upgrade::run(upgrade),
        Verb::Check(check) => tools::check::run(check),
        Verb::Doctor(doctor) => tools::doctor::run(cache, doctor),
        Verb::Explain(explain) => tools::explain::run(cache, explain),
        Verb::Log(log) => tools::log::run(log),
        Verb::Advise(advise) => advise::run(advise),
        Verb::Completions(completions) => tools::completions::run(completions),
        Verb::Man(man) => tools::man::run(man),
    }
}
