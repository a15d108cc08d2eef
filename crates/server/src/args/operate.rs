//! The command lines of the verbs by which an operator looks after a volume.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args};

use crate::units::parse_duration;

pub(super) const GET_AFTER_HELP: &str = "\
Exit codes: 0 a valid value, or with --stale a stale one; 1 nothing is there; 4 there is a stale value only (nothing is \
written); 5 a negative entry says that there is nothing, and why (standard error gives its reason).";

pub(super) const PURGE_AFTER_HELP: &str = "\
A purge takes the time of a few stores, however many entries it means. What is being put meanwhile is purged, too, if the \
work on it began before. The bytes are given back as puts go on; --sweep gives them back now.";

pub(super) const VERIFY_AFTER_HELP: &str = "\
Exit codes: 0 the volume is sound; 6 something contradicts the format, whether or not it was repaired; 3 it could not be \
looked at.

It joins the volume as those do that write: one that can't be trusted, such as a copy, is emptied by that. Writers of a \
stripe wait while its logs are walked; readers don't.";

pub(super) const IMPORT_AFTER_HELP: &str = "\
Ages and times go on: the time since the export counts, by the wall clocks of both machines. What is too large for this \
volume is left out and told. Where the stream breaks off, what came before stays.";

/// `eyewall purge`
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("what").required(true).multiple(true).args(["tag", "prefix", "all"]))]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub struct Purge {
    /// Entries that carry this tag; any number of times
    #[arg(long, value_name = "TAG")]
    pub tag: Vec<String>,
    /// Entries whose key begins so; any number of times
    #[arg(long, value_name = "PREFIX")]
    pub prefix: Vec<OsString>,
    /// All entries
    #[arg(long, conflicts_with_all = ["tag", "prefix"])]
    pub all: bool,
    /// They become stale, and may be used until they are replaced or their stale time is over
    #[arg(long)]
    pub soft: bool,
    /// Sweep after it: give the bytes back now
    #[arg(long)]
    pub sweep: bool,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
}

/// `eyewall verify`
#[derive(Debug, Args)]
pub struct Verify {
    /// Read every entry, too, and hold it against its checksum
    #[arg(long)]
    pub deep: bool,
    /// Drop what is damaged
    #[arg(long)]
    pub repair: bool,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
}

/// `eyewall sweep` and `eyewall sync`
#[derive(Debug, Args)]
pub struct Upkeep {
    /// One JSON object
    #[arg(long)]
    pub json: bool,
}

/// `eyewall export`
#[derive(Debug, Args)]
pub struct Export {
    /// Where to; `-` is standard output
    #[arg(default_value = "-")]
    pub file: PathBuf,
    /// Tell what was written as one JSON object, on standard error where the stream goes to standard output
    #[arg(long)]
    pub json: bool,
}

/// `eyewall import`
#[derive(Debug, Args)]
pub struct Import {
    /// Where from; `-` is standard input
    #[arg(default_value = "-")]
    pub file: PathBuf,
    /// Valid entries that are there stay
    #[arg(long)]
    pub keep: bool,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
}

/// What `eyewall put` stores beside key and value.
#[derive(Debug, Args)]
pub struct PutBeside {
    /// How long it may be used, such as 60s, 5m, 1h [default: for ever]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub ttl: Option<Duration>,
    /// How long after that it may still be used as a stale value
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, requires = "ttl")]
    pub stale: Option<Duration>,
    /// A label to purge it by; any number of times
    #[arg(long, value_name = "TAG")]
    pub tag: Vec<String>,
    /// Store that there is nothing, and why: a number up to 65535, such as 404
    #[arg(long, value_name = "REASON", conflicts_with = "file")]
    pub negative: Option<u16>,
    /// Small bytes of your own beside the value
    #[arg(long, value_name = "BYTES")]
    pub metadata: Option<OsString>,
}
