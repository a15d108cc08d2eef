//! The command line of `advise`.

use std::path::PathBuf;

use clap::Args;
use eyewall_server::units::parse_size;

use eyewall_access_log::Format;

use super::operate::ServerPlace;

pub(super) const ADVISE_AFTER_HELP: &str = "\
For each size, Eyewall replays the requests through a volume of that size, in the order of the log. After each miss it puts \
the object.

GET requests with the status 200, 203, 204, 206, 300, 301, 304, 308, 404 or 410 count. The key is the target with its query, \
after the host if a JSON line names one. An object is as large as the largest response that the log has for its key, so 304 \
and `-` don't make it small. Eyewall counts the lines that it can't read, and skips them.

If the log is large, Eyewall replays only a sample of the keys, with all of their requests, through a volume that is smaller \
in the same proportion (spatial sampling; Waldspurger et al., FAST 2015). Each figure has the standard error of this sampling \
beside it. In our measurements, small volumes differed from large ones by less than one percentage point.

With --server, the server advises from a sample of its requests: the hit ratio at other sizes, why requests miss, and the lines of the \
configuration that would help, each with its expected gain.";

/// `eyewall advise`
#[derive(Debug, Args)]
pub struct Advise {
    /// Access logs, the oldest first, plain or in gzip; `-` is standard input
    #[arg(required_unless_present = "server", value_name = "LOG")]
    pub logs: Vec<PathBuf>,
    /// Ask this running server, which needs no log: the path of its socket, or `http://127.0.0.1:PORT`
    #[arg(long, value_name = "SERVER", conflicts_with_all = ["logs", "format", "size", "now", "exact", "svg"])]
    pub server: Option<ServerPlace>,
    /// The file with the token, which a server at a port requires
    #[arg(long, value_name = "FILE", requires = "server")]
    pub token_file: Option<PathBuf>,
    /// The format of the lines [default: the one of most lines at the beginning]
    #[arg(long)]
    pub format: Option<Format>,
    /// Try this size; may be repeated [default: sizes from a part of the log's footprint to all of it]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub size: Vec<u64>,
    /// The current size of the volume; shows what 1.5 times and twice as much would gain
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub now: Option<u64>,
    /// Replay all keys; needs as much memory as the two largest sizes together
    #[arg(long)]
    pub exact: bool,
    /// Write one JSON object
    #[arg(long)]
    pub json: bool,
    /// Also draw the curve into this file
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}
