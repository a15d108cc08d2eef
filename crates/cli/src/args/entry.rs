//! The command lines of the verbs about single entries: `put`, `get`, `rm`, and `ls`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use eyewall_server::units::parse_duration;

pub(super) const GET_AFTER_HELP: &str = "\
Exit codes: 0 a valid value, or with --stale a stale one; 1 nothing is there; 4 there is a stale value only (nothing is \
written); 5 a negative entry says that there is nothing, and why (standard error gives its reason).";

pub(super) const LIST_AFTER_HELP: &str = "\
A pattern with `*`, `?`, `[a-z]` or `{a,b}` has to match the whole key; a backslash before one of these takes it as it is. \
Any other pattern is the beginning of the key. `*` goes over slashes, `?` is one byte.

Without --sort entries come as they are found, and nothing is collected.";

/// `eyewall put`
#[derive(Debug, Args)]
pub struct Put {
    /// The key, any bytes
    pub key: OsString,
    /// The file that holds the value; `-` is standard input
    #[arg(default_value = "-")]
    pub file: PathBuf,
    /// Times, tags, metadata.
    #[command(flatten)]
    pub beside: PutBeside,
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

/// `eyewall get`
#[derive(Debug, Args)]
pub struct Get {
    /// The key, any bytes
    pub key: OsString,
    /// Write the metadata instead of the value
    #[arg(long)]
    pub metadata: bool,
    /// A stale value will do
    #[arg(long)]
    pub stale: bool,
    /// Write what is known of the entry instead of its value, as one JSON object
    #[arg(long, conflicts_with = "metadata")]
    pub json: bool,
}

/// `eyewall rm`
#[derive(Debug, Args)]
pub struct Remove {
    /// The key, any bytes
    pub key: OsString,
}

/// `eyewall ls`
#[derive(Debug, Args)]
pub struct List {
    /// Only keys like this: a glob, or the beginning of a key
    pub pattern: Option<OsString>,
    /// Only entries that carry this tag
    #[arg(long, value_name = "TAG")]
    pub tag: Option<String>,
    /// Show the tags, too
    #[arg(long)]
    pub tags: bool,
    /// Sort: the largest, the youngest, or the first in the order of bytes comes first
    #[arg(long, value_name = "BY")]
    pub sort: Option<SortBy>,
    /// Turn the order round
    #[arg(long, requires = "sort")]
    pub reverse: bool,
    /// No more than this many
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// What `eyewall ls` sorts by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SortBy {
    /// Bytes of the value.
    Size,
    /// Time since it was put.
    Age,
    /// Bytes of the key.
    Key,
}
