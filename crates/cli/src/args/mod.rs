//! The command line: each verb and its flags, as clap parses them and `--help` shows them.
//!
//! `entry` has the verbs about single entries, `operate` the verbs about volumes, `serve` the verbs of the server, and `advise` its own. `hints` has advice
//! for wrong command lines.

mod advise;
mod agent;
mod entry;
mod explain;
mod hints;
mod log;
mod mode;
mod operate;
mod serve;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

pub use advise::Advise;
pub(crate) use hints::parse;

pub use agent::Agent;
pub use entry::{Get, List, Put, PutBeside, Remove, SortBy};
pub use explain::Explain;
pub use log::Log;
pub use operate::{Create, Export, Import, Map, Purge, Resize, Scrub, ServerPlace, Stat, Top, Upkeep, Verify};
pub use serve::{Check, Doctor, RunningServer, Serve};

const AFTER_HELP: &str = "\
Exit codes: 0 done, or a hit, also if the reader of the output closed it; 1 the key is absent; 2 the command line or the \
configuration is wrong, or a file is not a log; 3 the command failed (standard error says why); 4 the value is stale; 5 the key has a \
negative entry; 6 verify or scrub found damage, or doctor a fault. Ctrl-C kills a tool, which shells show as 130; the server, `top` and `log` shut down \
cleanly, with 0.

Eyewall uses colours on terminals only; NO_COLOR=1 turns them off.";

/// One memory-mapped cache for a whole web server: its tools and its server.
#[derive(Debug, Parser)]
#[command(name = "eyewall", version, after_help = AFTER_HELP)]
pub struct Arguments {
    /// The file of the volume
    #[arg(long, global = true, value_name = "PATH", env = "EYEWALL_CACHE")]
    pub cache: Option<PathBuf>,
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Create a volume; never overwrites an existing file
    Create(Create),
    /// Store a value
    Put(Put),
    /// Write a value to standard output; exit 1 if the key is absent. Does not count as a use
    #[command(after_help = entry::GET_AFTER_HELP)]
    Get(Get),
    /// Remove an entry; exit 1 if the key was absent
    Rm(Remove),
    /// List the entries
    #[command(after_help = entry::LIST_AFTER_HELP)]
    Ls(List),
    /// Show the state of the volume: how full it is, its hit ratio, its warnings; with --server also the sites, and advice
    Stat(Stat),
    /// Show the state of the volume live; q quits
    #[command(after_help = operate::TOP_AFTER_HELP)]
    Top(Top),
    /// Draw how the bytes of the volume are used: live, held, dead, filler, free
    Map(Map),
    /// Purge entries by tag, by prefix, or all; with --server also by URL and host
    #[command(after_help = operate::PURGE_AFTER_HELP)]
    Purge(Purge),
    /// Drop purged and expired entries now, to free their bytes
    Sweep(Upkeep),
    /// Write the volume to storage, and wait until it is there
    Sync(Upkeep),
    /// Change the size of the volume; processes that have it open move to the new file
    #[command(after_help = operate::RESIZE_AFTER_HELP)]
    Resize(Resize),
    /// Check the structure of the volume; exit 6 if it is damaged
    #[command(after_help = operate::VERIFY_AFTER_HELP)]
    Verify(Verify),
    /// Check every entry against its checksum, and drop damaged entries; exit 6 if there were any
    #[command(after_help = operate::SCRUB_AFTER_HELP)]
    Scrub(Scrub),
    /// Write all entries as a stream that `import` takes, on any machine
    Export(Export),
    /// Store the entries of a stream that `export` wrote
    #[command(after_help = operate::IMPORT_AFTER_HELP)]
    Import(Import),
    /// Run the web server: answer HTTP from the volume, and fetch from a folder or an origin
    #[command(after_help = serve::SERVE_AFTER_HELP)]
    Serve(Serve),
    /// Put the configuration file of a running server in force, without losing a request
    #[command(after_help = serve::RELOAD_AFTER_HELP)]
    Reload(RunningServer),
    /// Let a running server start its program again, and hand over to it, without losing a request
    #[command(after_help = serve::UPGRADE_AFTER_HELP)]
    Upgrade(RunningServer),
    /// Show the nodes of a server's fleet: how far they are behind the purge log, and whether they are cut off from it
    #[command(after_help = serve::FLEET_AFTER_HELP)]
    Fleet(Fleet),
    /// Check a configuration file of the server, and show its effect; exit 2 if it has mistakes
    #[command(after_help = serve::CHECK_AFTER_HELP)]
    Check(Check),
    /// Examine this machine, a configuration and its origins, and say what to change; exit 6 if there is a fault
    #[command(after_help = serve::DOCTOR_AFTER_HELP)]
    Doctor(Doctor),
    /// Say what would become of a request, and why: its site, key and rules, what is stored, how fresh it is
    #[command(after_help = explain::EXPLAIN_AFTER_HELP)]
    Explain(Explain),
    /// Show the requests of a running server as they end, with filters; Ctrl-C ends it
    #[command(after_help = log::LOG_AFTER_HELP)]
    Log(Log),
    /// Recommend a size for the volume from an access log; or ask a running server what would make more requests hits
    #[command(after_help = advise::ADVISE_AFTER_HELP)]
    Advise(Advise),
    /// Write a completion script for a shell
    Completions(Completions),
    /// Write the manual page; with a folder, write one page per verb into it
    Man(Man),
}

/// `eyewall fleet`
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Fleet {
    /// Another work than to show the nodes.
    #[command(subcommand)]
    pub agent: Option<FleetVerb>,
    /// The server that shows them.
    #[command(flatten)]
    pub asked: Option<RunningServer>,
}

/// Another work of `eyewall fleet`.
#[derive(Debug, Subcommand)]
pub enum FleetVerb {
    /// Make a volume a node of a fleet, for programs that use it without a server; runs until SIGTERM
    #[command(after_help = agent::AGENT_AFTER_HELP)]
    Agent(Agent),
}

/// `eyewall completions`
#[derive(Debug, Args)]
pub struct Completions {
    /// The shell
    pub shell: clap_complete::Shell,
}

/// `eyewall man`
#[derive(Debug, Args)]
pub struct Man {
    /// The folder for the pages of all verbs; created if it doesn't exist
    pub folder: Option<PathBuf>,
}
