//! The command line of `log`.

use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use eyewall_server::units::parse_duration;

use super::operate::ServerPlace;

pub(super) const LOG_AFTER_HELP: &str = "\
Each line has the time, the method, the status, the verdict with its reason, the time until the response began, the bytes of the \
body, the address and the client. A request is shown when its response has left. No line has cookies or other fields of the client.

A request has to meet all filters; if you repeat one, it has to meet one of them. The server applies them. If `log` doesn't read \
fast enough, the server drops lines, and `log` says how many: when it happens, and in all at the end.

`log` ends with exit code 0 after --count lines, at Ctrl-C, and when the server ends. Up to 16 clients can follow a server.";

/// `eyewall log`
#[derive(Debug, Clone, Args)]
pub struct Log {
    /// Follow this running server: the path of its socket, or `http://127.0.0.1:PORT`
    #[arg(long, value_name = "SERVER")]
    pub server: ServerPlace,
    /// The file with the token, which a server at a port requires
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Requests for this site or host; may be repeated
    #[arg(long, value_name = "HOST")]
    pub site: Vec<String>,
    /// Requests for which an origin was asked: the verdicts miss, pass, revalidated and error
    #[arg(long)]
    pub miss: bool,
    /// Requests with this verdict: hit, stale, revalidated, miss, pass, error or none; may be repeated
    #[arg(long, value_name = "VERDICT")]
    pub verdict: Vec<String>,
    /// Requests whose response began later than this
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub slower: Option<Duration>,
    /// Requests with this status, or with one of a class such as 5xx; may be repeated
    #[arg(long, value_name = "STATUS")]
    pub status: Vec<String>,
    /// Requests whose path begins with this, or matches this pattern (`*.png`); may be repeated
    #[arg(long, value_name = "PATH")]
    pub path: Vec<String>,
    /// Requests with this method; may be repeated
    #[arg(long, value_name = "METHOD")]
    pub method: Vec<String>,
    /// End after this many requests
    #[arg(long, value_name = "NUMBER")]
    pub count: Option<NonZeroU64>,
    /// Write one JSON object per request
    #[arg(long)]
    pub json: bool,
}
