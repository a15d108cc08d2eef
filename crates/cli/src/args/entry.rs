//! The command lines of the verbs about single entries: `put`, `get`, `rm`, and `ls`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use eyewall_server::units::parse_duration;

pub(super) const GET_AFTER_HELP: &str = "\
Exit codes: 0 the value is valid, or stale with --stale; 1 the key is absent; 4 the value is stale and was not \
written; 5 the key has a negative entry (standard error gives its reason code).";

pub(super) const LIST_AFTER_HELP: &str = "\
A pattern with `*`, `?`, `[a-z]` or `{a,b}` has to match the whole key; a backslash escapes these. Any other pattern matches \
keys that begin with it. `*` matches slashes, too, and `?` matches one byte.

Without --sort, `ls` writes entries as it finds them, and keeps no list in memory.";

/// `eyewall put`
#[derive(Debug, Args)]
pub struct Put {
    /// The key; any bytes
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
    /// Time to live, such as 60s, 5m, 1h [default: unlimited]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub ttl: Option<Duration>,
    /// How long the value may be used stale, after its time to live
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, requires = "ttl")]
    pub stale: Option<Duration>,
    /// A tag to purge the entry by; may be repeated
    #[arg(long, value_name = "TAG")]
    pub tag: Vec<String>,
    /// Store a negative entry with this reason code, a number up to 65535, such as 404
    #[arg(long, value_name = "REASON", conflicts_with = "file")]
    pub negative: Option<u16>,
    /// A few bytes to keep beside the value
    #[arg(long, value_name = "BYTES")]
    pub metadata: Option<OsString>,
}

/// `eyewall get`
#[derive(Debug, Args)]
pub struct Get {
    /// The key; any bytes
    pub key: OsString,
    /// Write the metadata instead of the value
    #[arg(long)]
    pub metadata: bool,
    /// Accept a stale value
    #[arg(long)]
    pub stale: bool,
    /// Describe the entry as one JSON object, instead of writing its value
    #[arg(long, conflicts_with = "metadata")]
    pub json: bool,
}

/// `eyewall rm`
#[derive(Debug, Args)]
pub struct Remove {
    /// The key; any bytes
    pub key: OsString,
}

/// `eyewall ls`
#[derive(Debug, Args)]
pub struct List {
    /// List only keys that match this glob, or begin with this text
    pub pattern: Option<OsString>,
    /// List only entries with this tag
    #[arg(long, value_name = "TAG")]
    pub tag: Option<String>,
    /// Also show the tags
    #[arg(long)]
    pub tags: bool,
    /// Sort by size (largest first), age (youngest first), or key (in the order of its bytes)
    #[arg(long, value_name = "BY")]
    pub sort: Option<SortBy>,
    /// Reverse the order
    #[arg(long, requires = "sort")]
    pub reverse: bool,
    /// List at most this many entries
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
    /// Write one JSON object per line
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
