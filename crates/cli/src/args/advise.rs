//! The command line of `advise`.

use std::path::PathBuf;

use clap::Args;
use eyewall_server::units::parse_size;

use eyewall_access_log::Format;

pub(super) const ADVISE_AFTER_HELP: &str = "\
Each size is tried with a volume of that size: the requests are replayed through the cache itself, in the order of the log. \
What misses is put.

Requests count that are GET and whose status is 200, 203, 204, 206, 300, 301, 304, 308, 404 or 410. The key is the target \
with its query, after the host where a JSON line names one. An object is as large as the largest answer that the log has \
for its key, so 304 and `-` don't make it small. Lines that can't be read are counted and left out.

Of large logs some of the keys are replayed, with all of their requests, through a volume that is smaller by as much \
(spatial sampling; Waldspurger et al., FAST 2015). The standard error that comes of their choice stands beside each figure; \
in what we measured, a small volume itself differed from a large one by less than a point.";

/// `eyewall advise`
#[derive(Debug, Args)]
pub struct Advise {
    /// Access logs, the oldest first; gzip is unpacked, `-` is standard input
    #[arg(required = true, value_name = "LOG")]
    pub logs: Vec<PathBuf>,
    /// The form of the lines [default: that of most lines at the beginning]
    #[arg(long)]
    pub format: Option<Format>,
    /// A size to try, any number of times [default: from a part of the log's footprint to all of it]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub size: Vec<u64>,
    /// The size that there is now, to tell what half as much again and twice as much would buy
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub now: Option<u64>,
    /// Replay all keys; takes as much memory as the two largest sizes
    #[arg(long)]
    pub exact: bool,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
    /// Draw the curve into this file, too
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}
