//! The command line: each verb and its flags, as clap reads them and `--help` tells them.
//!
//! `entry` has the verbs about single entries, `operate` those about volumes, `serve` those of the server, `advise` its own; `hints` has advice for wrong
//! command lines.

mod advise;
mod entry;
mod hints;
mod mode;
mod operate;
mod serve;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

pub use advise::Advise;
pub(crate) use hints::parse;

pub use entry::{Get, List, Put, PutBeside, Remove, SortBy};
pub use operate::{Create, Export, Import, Map, Purge, Resize, Scrub, ServerPlace, Stat, Top, Upkeep, Verify};
pub use serve::{Check, LogForm, Serve};

const AFTER_HELP: &str = "\
Exit codes: 0 done or hit, also if the reader of the output went away; 1 the key is not there; 2 a wrong command line or \
configuration, or a log that is none; 3 it could not be done (standard error says why); 4 only a stale value is there; 5 a negative entry is \
there; 6 verify or scrub found something wrong. Ctrl-C ends a tool by its signal, which shells show as 130; the server and `top` end \
in order, with 0.

Colours are for terminals only; NO_COLOR=1 does without.";

/// One memory-mapped cache for a whole web server: its tools and its server.
#[derive(Debug, Parser)]
#[command(name = "eyewall", version, after_help = AFTER_HELP)]
pub struct Arguments {
    /// The volume: the file that is the cache
    #[arg(long, global = true, value_name = "PATH", env = "EYEWALL_CACHE")]
    pub cache: Option<PathBuf>,
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Make a new volume; what exists already is left alone
    Create(Create),
    /// Store a value
    Put(Put),
    /// Write a value to standard output; exit 1 if it is not there. Does not count as use
    #[command(after_help = entry::GET_AFTER_HELP)]
    Get(Get),
    /// Remove an entry; exit 1 if it was not there
    Rm(Remove),
    /// List the entries
    #[command(after_help = entry::LIST_AFTER_HELP)]
    Ls(List),
    /// Show how the volume is doing
    Stat(Stat),
    /// Show how the volume is doing, again and again; q ends it
    #[command(after_help = operate::TOP_AFTER_HELP)]
    Top(Top),
    /// Show what lies where in the volume: live, held, dead, filler, free
    Map(Map),
    /// Purge entries by tag, by prefix, or all; of a running server by URL and host, too
    #[command(after_help = operate::PURGE_AFTER_HELP)]
    Purge(Purge),
    /// Drop what is purged or over, so that its bytes can be used again
    Sweep(Upkeep),
    /// Bring all that was stored to storage, and wait for it
    Sync(Upkeep),
    /// Give the volume another size; who has it open goes on in the new one
    #[command(after_help = operate::RESIZE_AFTER_HELP)]
    Resize(Resize),
    /// Look for what contradicts the format; exit 6 if there is something
    #[command(after_help = operate::VERIFY_AFTER_HELP)]
    Verify(Verify),
    /// Hold every entry against its checksum, and drop what is damaged; exit 6 if something was
    #[command(after_help = operate::SCRUB_AFTER_HELP)]
    Scrub(Scrub),
    /// Write all entries as a stream that `import` takes, on any machine
    Export(Export),
    /// Store the entries of such a stream
    #[command(after_help = operate::IMPORT_AFTER_HELP)]
    Import(Import),
    /// Answer HTTP from the volume, with a folder or an origin behind it
    #[command(after_help = serve::SERVE_AFTER_HELP)]
    Serve(Serve),
    /// Check a configuration of the server, and show what it would serve; exit 2 if something is wrong
    #[command(after_help = serve::CHECK_AFTER_HELP)]
    Check(Check),
    /// Tell from an access log how large a volume should be
    #[command(after_help = advise::ADVISE_AFTER_HELP)]
    Advise(Advise),
    /// Write a script by which a shell completes this command
    Completions(Completions),
    /// Write the manual page; with a folder, one for each verb into it
    Man(Man),
}

/// `eyewall completions`
#[derive(Debug, Args)]
pub struct Completions {
    /// Which shell
    pub shell: clap_complete::Shell,
}

/// `eyewall man`
#[derive(Debug, Args)]
pub struct Man {
    /// A folder for the pages of all verbs; it is made if it isn't there
    pub folder: Option<PathBuf>,
}
