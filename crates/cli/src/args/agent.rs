//! The command line of `eyewall fleet agent`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use eyewall_server::units::{parse_duration, parse_size};

pub(super) const AGENT_AFTER_HELP: &str = "\
The agent applies the purges of the fleet to the volume. It also writes the purges that programs make in the volume to the \
purge log: by `purge_tag` and its like of all languages, and by `eyewall purge`. If the volume doesn't exist yet, the agent waits \
for it. A volume needs one agent on its machine. A second one waits, and takes over when the first ends. A volume of `eyewall \
serve` with a [fleet] needs none.

`eyewall fleet --server` of any server of the fleet also shows its agents.";

/// `eyewall fleet agent`
#[derive(Debug, Args)]
pub struct Agent {
    /// A Redis server that has or may have the purge log; may be given several times, for one server with its replicas
    #[arg(long, value_name = "URL", required = true)]
    pub redis: Vec<String>,
    /// The name of the fleet
    #[arg(long, value_name = "NAME", default_value = "eyewall")]
    pub name: String,
    /// The name of this node; otherwise that of the machine
    #[arg(long, value_name = "NAME")]
    pub node: Option<String>,
    /// A file with the password of Redis
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,
    /// A file with the password of Sentinels, for redis+sentinel://
    #[arg(long, value_name = "FILE")]
    pub sentinel_password_file: Option<PathBuf>,
    /// Certificates to trust for rediss://, in PEM; otherwise those of the system
    #[arg(long, value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
    /// Replicas that must have a purge before it counts as written
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    pub min_replicas: u64,
    /// Redis never loses a purge that it has acknowledged
    #[arg(long)]
    pub durable: bool,
    /// How long the volume may be cut off from the log before all its entries become stale
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "10s")]
    pub max_blind: Duration,
    /// Purges that the log keeps for nodes that are away
    #[arg(long, value_name = "COUNT", default_value_t = 100_000)]
    pub lines: u64,
    /// Let fills of the fleet's volumes share what they make, on the same Redis, up to this size in all. Programs open the volume \
    /// with the option `fleet`
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub second_level_size: Option<u64>,
    /// Log more to standard error
    #[arg(long, short)]
    pub verbose: bool,
}
