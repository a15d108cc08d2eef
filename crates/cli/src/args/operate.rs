//! The command lines of the verbs by which an operator makes a volume and looks after it.

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
A purge takes the time of a few stores, however many entries it means. What is being put meanwhile is purged, too, if the \
work on it began before. The bytes are given back as puts go on; --sweep gives them back now.

With --server it is the server that purges. It knows of its sites: --url takes an address with all that is stored of it, --tag \
takes tags as the origin gave them, and a --prefix is one of addresses and names a whole host, such as \
http://example.org/shop/. --cache and EYEWALL_CACHE don't count then: the server knows its volume. An address of which nothing is \
stored is no error.

It tells how many entries it meant. In a volume, tags of a server carry the host of their site: example.org:home.";

pub(super) const VERIFY_AFTER_HELP: &str = "\
Exit codes: 0 the volume is sound; 6 something contradicts the format, whether or not it was repaired; 3 it could not be \
looked at.

It joins the volume as those do that write: one that has lost power, or a copy, is gone through at once. Writers of a \
stripe wait while its logs are walked; readers don't.";

pub(super) const SCRUB_AFTER_HELP: &str = "\
Exit codes: 0 all entries are as they were put; 6 something was dropped; 3 a volume could not be scrubbed.

The volumes may be in use: nobody waits for an entry that is read. All entries are read, from storage where they are not in \
memory. `eyewall serve` scrubs what is in memory by itself. `eyewall verify` looks at logs and index, too.";

pub(super) const RESIZE_AFTER_HELP: &str = "\
The entries are copied to a new file beside the old one, the hottest last, so that these stay where not all fit. For that \
time there are two files, and writers wait; readers go on. What isn't given stays as it is.";

pub(super) const IMPORT_AFTER_HELP: &str = "\
Ages and times go on: the time since the export counts, by the wall clocks of both machines. What is too large for this \
volume is left out and told. Where the stream breaks off, what came before stays.";

pub(super) const TOP_AFTER_HELP: &str = "\
How long look-ups take is measured here, by looking hot keys up; that leaves no trace. Where other processes are attached it \
joins them, as one of the users that it shows. Where the output is no terminal, one page is written.";

/// `eyewall create`
#[derive(Debug, Args)]
pub struct Create {
    /// Size of the file, and the hard limit of all that is in it
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub size: u64,
    /// A typical entry, the first guess of the index, which follows what is put [default: 1K]
    #[arg(long, value_name = "SIZE", value_parser = parse_hint)]
    pub entry_size_hint: Option<u32>,
    /// The largest entry to take, up to a quarter of the size [default: a sixteenth, at most 4M]
    #[arg(long, alias = "entry-max", value_name = "SIZE", value_parser = parse_size)]
    pub entry_bytes_max: Option<u64>,
    /// Permission bits of the file; who may write it is trusted [default: 0600]
    #[arg(long, value_name = "OCTAL", value_parser = parse_mode)]
    pub mode: Option<u32>,
    /// Group of the file, by name or number, so that several users can share it
    #[arg(long, value_name = "GROUP", value_parser = parse_group)]
    pub group: Option<u32>,
}

/// `eyewall purge`
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("what").required(true).multiple(true).args(["tag", "prefix", "all", "url", "host"]))]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct Purge {
    /// Ask this running server: the path of its socket, or `http://127.0.0.1:PORT`
    #[arg(long, value_name = "SERVER", conflicts_with = "sweep")]
    pub server: Option<ServerPlace>,
    /// The file with the token that a server wants which has a port
    #[arg(long, value_name = "FILE", requires = "server")]
    pub token_file: Option<PathBuf>,
    /// An address, such as `http://example.org/page`, with all its variants; any number of times, with --server
    #[arg(long, value_name = "URL", requires = "server")]
    pub url: Vec<String>,
    /// All of a host, or with --tag what of its site carries the tag; with --server
    #[arg(long, value_name = "HOST", requires = "server", conflicts_with_all = ["url", "prefix", "all"])]
    pub host: Option<String>,
    /// Entries that carry this tag; any number of times
    #[arg(long, value_name = "TAG")]
    pub tag: Vec<String>,
    /// Entries whose key begins so; any number of times
    #[arg(long, value_name = "PREFIX")]
    pub prefix: Vec<OsString>,
    /// All entries
    #[arg(long, conflicts_with_all = ["tag", "prefix", "url"])]
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
                Err("give a path or a URL".to_owned())
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

/// `eyewall scrub`
#[derive(Debug, Args)]
pub struct Scrub {
    /// The volumes; without any, that of --cache
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Read at most so many bytes a second, such as 50M [default: as fast as it goes]
    #[arg(long, value_name = "SIZE", value_parser = parse_rate)]
    pub rate: Option<NonZeroU64>,
    /// One JSON object a volume
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

/// `eyewall resize`
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("shape").required(true).multiple(true))]
pub struct Resize {
    /// The new size of the file
    #[arg(long, value_name = "SIZE", value_parser = parse_size, group = "shape")]
    pub size: Option<u64>,
    /// A typical entry, the first guess of the index, which follows what is put
    #[arg(long, value_name = "SIZE", value_parser = parse_hint, group = "shape")]
    pub entry_size_hint: Option<u32>,
    /// The largest entry to take, up to a quarter of the size
    #[arg(long, alias = "entry-max", value_name = "SIZE", value_parser = parse_size, group = "shape")]
    pub entry_bytes_max: Option<u64>,
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

/// `eyewall map`
#[derive(Debug, Args)]
pub struct Map {
    /// Draw it into this file, instead of the terminal
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// One JSON object, with every extent
    #[arg(long)]
    pub json: bool,
}

/// `eyewall stat`
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct Stat {
    /// Each stripe, too: what its rings hold, how often they have turned, what was evicted
    #[arg(long)]
    pub stripes: bool,
    /// Each process, too: since when it is there, what it holds, how often it has hit
    #[arg(long)]
    pub processes: bool,
    /// The entries by size, too
    #[arg(long)]
    pub sizes: bool,
    /// Where the volume's tier is looked for: copies in shared memory, of programs that open the volume with one
    #[arg(long, value_name = "DIR", default_value = "/dev/shm")]
    pub tier_folder: PathBuf,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
}

/// `eyewall top`
#[derive(Debug, Args)]
pub struct Top {
    /// How long to wait between two looks
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "1s")]
    pub interval: Duration,
    /// Measure puts, too: small values under a key of its own, which is removed again
    #[arg(long)]
    pub probe_puts: bool,
    /// One look, then end
    #[arg(long)]
    pub once: bool,
    /// One JSON object a look
    #[arg(long)]
    pub json: bool,
}

fn parse_rate(text: &str) -> Result<NonZeroU64, String> {
    NonZeroU64::new(parse_size(text)?)
        .ok_or_else(|| "a rate is more than 0; leave it out to read as fast as it goes".to_owned())
}

fn parse_hint(text: &str) -> Result<u32, String> {
    u32::try_from(parse_size(text)?).map_err(|_| "a typical entry can't have 4G or more".to_owned())
}

/// A group by its number, or by its name: one of `/etc/group`, or of what else the system asks (`getent`).
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
