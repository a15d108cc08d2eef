//! The command lines of the verbs for operators: to create, inspect and maintain a volume.

use std::ffi::OsString;
use std::fmt;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{ArgGroup, Args};
use eyewall_server::units::{parse_duration, parse_size};
use http::uri::Authority;

use super::mode::parse_mode;

pub(super) const PURGE_AFTER_HELP: &str = "\
A purge takes as long as a few writes to memory, however many entries it covers. It also covers puts whose work began before \
the purge. Later puts reuse the bytes; --sweep frees them now.

With --server, a running server purges its own volume, and --cache and EYEWALL_CACHE are ignored. --url purges an address with \
all its variants. --tag takes tags as the origin sent them. --prefix takes the beginning of an address, with the whole host, \
such as http://example.org/shop/. If nothing is stored under an address, that is no error.

The command says how many entries it purged. In the volume, tags of a server begin with the host of their site: \
example.org:home.";

pub(super) const VERIFY_AFTER_HELP: &str = "\
Exit codes: 0 the volume is sound; 6 it is damaged, also if --repair repaired it; 3 it could not be checked.

`verify` opens the volume for writing. So it checks and repairs a copy, or a volume after power loss, at once. Writers wait \
while `verify` walks the logs of their stripe; readers don't.";

pub(super) const SCRUB_AFTER_HELP: &str = "\
Exit codes: 0 all entries are intact; 6 damaged entries were dropped; 3 a volume could not be scrubbed.

The volumes may be in use: no process waits for the scrub. It reads all entries, from storage if they are not in memory. \
`eyewall serve` scrubs the entries in memory by itself. `eyewall verify` also checks logs and index.";

pub(super) const RESIZE_AFTER_HELP: &str = "\
Eyewall copies the entries to a new file beside the old one. If not all fit, the most used ones stay. Until that is done there \
are two files, and writers wait; readers don't. Options that you leave out keep their values.";

pub(super) const IMPORT_AFTER_HELP: &str = "\
Entries keep their ages and times to live; the time since the export counts, by the wall clocks of both machines. Eyewall \
skips entries that are too large for the volume, and reports them. If the stream breaks off, the entries before that point \
stay.";

pub(super) const TOP_AFTER_HELP: &str = "\
`top` measures the time of gets by looking up hot keys, which changes no statistics. If other processes use the volume, `top` \
opens it as they do, and appears among the processes. If the output is not a terminal, it writes one page and ends.

With --server, --cache is ignored, and `top` shows what the dashboard of the server shows: sites, verdicts, the worst origins, the paths \
whose responses begin latest, and the keys that are hottest and missed most. The server takes a sample each second. Up to 16 can watch a \
server, pages in browsers included. Times of origins are those since the start of the server, times of paths those of the last requests of its \
sample.";

/// `eyewall create`
#[derive(Debug, Args)]
pub struct Create {
    /// Size of the file; it never grows
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub size: u64,
    /// Typical size of an entry; the index starts with it, and adapts later [default: 1K]
    #[arg(long, value_name = "SIZE", value_parser = parse_hint)]
    pub entry_size_hint: Option<u32>,
    /// The largest entry to accept, up to a quarter of the size [default: a sixteenth, at most 4M]
    #[arg(long, alias = "entry-max", value_name = "SIZE", value_parser = parse_size)]
    pub entry_bytes_max: Option<u64>,
    /// Permission bits of the file; all users who can write it are trusted [default: 0600]
    #[arg(long, value_name = "OCTAL", value_parser = parse_mode)]
    pub mode: Option<u32>,
    /// Group of the file, by name or number, to share it between users
    #[arg(long, value_name = "GROUP", value_parser = parse_group)]
    pub group: Option<u32>,
}

/// `eyewall purge`
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("what").required(true).multiple(true).args(["tag", "prefix", "all", "url", "host"]))]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct Purge {
    /// Ask this running server to purge: the path of its socket, or `http://127.0.0.1:PORT`
    #[arg(long, value_name = "SERVER", conflicts_with = "sweep")]
    pub server: Option<ServerPlace>,
    /// File with the token; a server at a port requires it
    #[arg(long, value_name = "FILE", requires = "server")]
    pub token_file: Option<PathBuf>,
    /// An address, such as `http://example.org/page`, with all its variants; may be repeated; needs --server
    #[arg(long, value_name = "URL", requires = "server")]
    pub url: Vec<String>,
    /// All addresses of this host; with --tag, only entries of its site with that tag; needs --server
    #[arg(long, value_name = "HOST", requires = "server", conflicts_with_all = ["url", "prefix", "all"])]
    pub host: Option<String>,
    /// Entries with this tag; may be repeated
    #[arg(long, value_name = "TAG")]
    pub tag: Vec<String>,
    /// Entries whose keys begin with this; may be repeated
    #[arg(long, value_name = "PREFIX")]
    pub prefix: Vec<OsString>,
    /// All entries
    #[arg(long, conflicts_with_all = ["tag", "prefix", "url"])]
    pub all: bool,
    /// Make the entries stale instead of removing them; they may be used until they are replaced or their stale time ends
    #[arg(long)]
    pub soft: bool,
    /// Wait until all live nodes of the server's fleet have applied the purge; needs --server
    #[arg(long, requires = "server")]
    pub wait: bool,
    /// Sweep after the purge, to free the bytes now
    #[arg(long)]
    pub sweep: bool,
    /// Write one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Where a running server is administered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerPlace {
    /// A Unix socket.
    Socket(PathBuf),
    /// Host and port.
    Address(String),
}

impl FromStr for ServerPlace {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((scheme, rest)) = text.split_once("://") else {
            return if text.is_empty() {
                Err("give the path of a socket, or a URL such as http://127.0.0.1:8081".to_owned())
            } else {
                Ok(Self::Socket(text.into()))
            };
        };
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        match authority.parse::<Authority>() {
            Ok(found) if scheme == "http" && found.port().is_some() && !authority.contains('@') => {
                Ok(Self::Address(authority.to_owned()))
            }
            _ => Err("give the path of a socket, or a URL such as http://127.0.0.1:8081".to_owned()),
        }
    }
}

impl fmt::Display for ServerPlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(path) => path.display().fmt(formatter),
            Self::Address(authority) => write!(formatter, "http://{authority}"),
        }
    }
}

/// `eyewall verify`
#[derive(Debug, Args)]
pub struct Verify {
    /// Also read every entry, and check it against its checksum
    #[arg(long)]
    pub deep: bool,
    /// Drop the damaged parts
    #[arg(long)]
    pub repair: bool,
    /// Write one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `eyewall scrub`
#[derive(Debug, Args)]
pub struct Scrub {
    /// The volumes [default: the one of --cache]
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Read at most this many bytes per second, such as 50M [default: unlimited]
    #[arg(long, value_name = "SIZE", value_parser = parse_rate)]
    pub rate: Option<NonZeroU64>,
    /// Write one JSON object per volume
    #[arg(long)]
    pub json: bool,
}

/// `eyewall sweep` and `eyewall sync`
#[derive(Debug, Args)]
pub struct Upkeep {
    /// Write one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `eyewall resize`
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("shape").required(true).multiple(true))]
pub struct Resize {
    /// The new size of the file
    #[arg(long, value_name = "SIZE", value_parser = parse_size, group = "shape")]
    pub size: Option<u64>,
    /// Typical size of an entry; the index starts with it, and adapts later
    #[arg(long, value_name = "SIZE", value_parser = parse_hint, group = "shape")]
    pub entry_size_hint: Option<u32>,
    /// The largest entry to accept, up to a quarter of the size
    #[arg(long, alias = "entry-max", value_name = "SIZE", value_parser = parse_size, group = "shape")]
    pub entry_bytes_max: Option<u64>,
    /// Write one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `eyewall export`
#[derive(Debug, Args)]
pub struct Export {
    /// The file to write; `-` is standard output
    #[arg(default_value = "-")]
    pub file: PathBuf,
    /// Report the result as one JSON object, on standard error if the stream goes to standard output
    #[arg(long)]
    pub json: bool,
}

/// `eyewall import`
#[derive(Debug, Args)]
pub struct Import {
    /// The file to read; `-` is standard input
    #[arg(default_value = "-")]
    pub file: PathBuf,
    /// Don't replace valid entries
    #[arg(long)]
    pub keep: bool,
    /// Write one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `eyewall map`
#[derive(Debug, Args)]
pub struct Map {
    /// Draw an SVG image into this file, instead of the terminal
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Write one JSON object, with every extent
    #[arg(long)]
    pub json: bool,
}

/// `eyewall stat`
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct Stat {
    /// Ask this running server, and show its sites and the best advice, too: the path of its socket, or `http://127.0.0.1:PORT`
    #[arg(long, value_name = "SERVER", conflicts_with_all = ["stripes", "processes", "sizes", "tier_folder"])]
    pub server: Option<ServerPlace>,
    /// The file with the token, which a server at a port requires
    #[arg(long, value_name = "FILE", requires = "server")]
    pub token_file: Option<PathBuf>,
    /// Also show each stripe: the content of its rings, their laps, the evictions
    #[arg(long)]
    pub stripes: bool,
    /// Also show each process: since when it is attached, its threads, its pins, its hits
    #[arg(long)]
    pub processes: bool,
    /// Also show the entries by size
    #[arg(long)]
    pub sizes: bool,
    /// The folder of the volume's tier: copies in shared memory, for programs that open the volume with one
    #[arg(long, value_name = "DIR", default_value = "/dev/shm")]
    pub tier_folder: PathBuf,
    /// Write one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `eyewall top`
#[derive(Debug, Args)]
pub struct Top {
    /// Show this running server in place of a volume: the path of its socket, or `http://127.0.0.1:PORT`
    #[arg(long, value_name = "SERVER", conflicts_with = "probe_puts")]
    pub server: Option<ServerPlace>,
    /// The file with the token, which a server at a port requires
    #[arg(long, value_name = "FILE", requires = "server")]
    pub token_file: Option<PathBuf>,
    /// The time between two updates
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "1s")]
    pub interval: Duration,
    /// Also measure puts: store small values under a key of `top`, and remove it
    #[arg(long)]
    pub probe_puts: bool,
    /// Show one update, then end
    #[arg(long)]
    pub once: bool,
    /// Write one JSON object per update
    #[arg(long)]
    pub json: bool,
}

fn parse_rate(text: &str) -> Result<NonZeroU64, String> {
    NonZeroU64::new(parse_size(text)?)
        .ok_or_else(|| "a rate must be more than 0; leave --rate out to read without a limit".to_owned())
}

fn parse_hint(text: &str) -> Result<u32, String> {
    u32::try_from(parse_size(text)?).map_err(|_| "the typical size of an entry must be less than 4G".to_owned())
}

/// A group by its number, or by its name, from `/etc/group` or from the system's other sources (`getent`).
fn parse_group(text: &str) -> Result<u32, String> {
    let id_in = |lines: &str| {
        lines.lines().find_map(|line| {
            let mut fields = line.split(':');
            (fields.next() == Some(text)).then(|| fields.nth(1)?.parse().ok()).flatten()
        })
    };
    let asked = || {
        let output = std::process::Command::new("getent").args(["group", text]).output().ok()?;
        id_in(&String::from_utf8_lossy(&output.stdout))
    };
    text.parse()
        .ok()
        .or_else(|| id_in(&std::fs::read_to_string("/etc/group").ok()?))
        .or_else(asked)
        .ok_or_else(|| format!("there is no group `{text}` on this machine; `getent group` lists them"))
}
