//! The command line.

mod operate;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::num::NonZeroU16;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};

use crate::advise::Format;
use crate::config::names::HostHeader;
use crate::config::settings::{AccessLog, LogFormat};
use crate::serve::OriginUrl;
use crate::units::{parse_duration, parse_mode, parse_size};
pub use operate::{Check, Export, Import, Map, Purge, PutBeside, Resize, ServerPlace, Top, Upkeep, Verify};

const AFTER_HELP: &str = "\
Exit codes: 0 done or hit, also if the reader of the output went away; 1 the key is not there; 2 a wrong command line or \
configuration, or a log that is none; 3 it could not be done (standard error says why); 4 only a stale value is there; 5 a negative entry is \
there; 6 verify found something wrong. Ctrl-C ends a tool by its signal, which shells show as 130; the server and `top` end \
in order, with 0.

Colours are for terminals only; NO_COLOR=1 does without.";

const SERVE_AFTER_HELP: &str = "\
HTTP/1.1 and HTTP/2 (without negotiation), without TLS. The field Cache-Status of each response tells what happened.

In front of an origin it is a shared cache as in RFC 9111: what it says of storing and times is done, and where it says \
nothing, a tenth of the time since Last-Modified is guessed, a day at most. What is stale is validated, and used beyond that \
as the origin allows by stale-while-revalidate and stale-if-error (RFC 5861). CDN-Cache-Control goes before Cache-Control. \
Responses that set a cookie aren't stored, unless --store-set-cookie is given. Other methods than GET, HEAD and QUERY go to the \
origin, and what they change is asked for anew. Upgrades, such as to WebSocket, are passed on.

Where --origin is given several times, each request goes to the next of them; one that fails three times in a row is left \
out for a time. A path of an origin goes before that of each request.

PURGE removes what is stored of an address; it is allowed from this machine only. --admin takes more: `eyewall purge --server`.

Files are answered to GET and HEAD, whole or in ranges; other methods get 405, or go to the origin if there is one.

What more there is to set, rules, keys, several sites, is set by a file: see docs/configuration.md.";

const LIST_AFTER_HELP: &str = "\
A pattern with `*`, `?`, `[a-z]` or `{a,b}` has to match the whole key; a backslash before one of these takes it as it is. \
Any other pattern is the beginning of the key. `*` goes over slashes, `?` is one byte.

Without --sort entries come as they are found, and nothing is collected.";

const ADVISE_AFTER_HELP: &str = "\
Each size is tried with a volume of that size: the requests are replayed through the cache itself, in the order of the log. \
What misses is put.

Requests count that are GET and whose status is 200, 203, 204, 206, 300, 301, 304, 308, 404 or 410. The key is the target \
with its query, after the host where a JSON line names one. An object is as large as the largest answer that the log has \
for its key, so 304 and `-` don't make it small. Lines that can't be read are counted and left out.

Of large logs some of the keys are replayed, with all of their requests, through a volume that is smaller by as much \
(spatial sampling; Waldspurger et al., FAST 2015). The standard error that comes of their choice stands beside each figure; \
in what we measured, a small volume itself differed from a large one by less than a point.";

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
    #[command(after_help = operate::GET_AFTER_HELP)]
    Get(Get),
    /// Remove an entry; exit 1 if it was not there
    Rm(Remove),
    /// List the entries
    #[command(after_help = LIST_AFTER_HELP)]
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
    /// Write all entries as a stream that `import` takes, on any machine
    Export(Export),
    /// Store the entries of such a stream
    #[command(after_help = operate::IMPORT_AFTER_HELP)]
    Import(Import),
    /// Answer HTTP from the volume, with a folder or an origin behind it
    #[command(after_help = SERVE_AFTER_HELP)]
    Serve(Serve),
    /// Check a configuration of the server, and show what it would serve; exit 2 if something is wrong
    #[command(after_help = operate::CHECK_AFTER_HELP)]
    Check(Check),
    /// Tell from an access log how large a volume should be
    #[command(after_help = ADVISE_AFTER_HELP)]
    Advise(Advise),
    /// Write a script by which a shell completes this command
    Completions(Completions),
    /// Write the manual page; with a folder, one for each verb into it
    Man(Man),
}

/// `eyewall create`
#[derive(Debug, Args)]
pub struct Create {
    /// Size of the file, and the hard limit of all that is in it
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub size: u64,
    /// A typical entry, the median if sizes differ; sizes the index, more than 4K counts as 4K [default: 1K]
    #[arg(long, value_name = "SIZE", value_parser = parse_hint)]
    pub entry_size_hint: Option<u32>,
    /// The largest entry to take, up to a quarter of the size [default: a sixteenth, at most 4M]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub entry_max: Option<u64>,
    /// Permission bits of the file; who may write it is trusted [default: 0600]
    #[arg(long, value_name = "OCTAL", value_parser = parse_mode)]
    pub mode: Option<u32>,
    /// Group of the file, so that several users can share it
    #[arg(long, value_name = "GID")]
    pub group: Option<u32>,
}

fn parse_hint(text: &str) -> Result<u32, String> {
    u32::try_from(parse_size(text)?).map_err(|_| "a typical entry can't have 4G or more".to_owned())
}

/// `eyewall put`
#[derive(Debug, Args)]
pub struct Put {
    /// The key, any bytes
    pub key: OsString,
    /// Where the value comes from; `-` is standard input
    #[arg(default_value = "-")]
    pub file: PathBuf,
    /// Times, tags, metadata.
    #[command(flatten)]
    pub beside: PutBeside,
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

/// `eyewall serve`
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("source").required(true).multiple(true).args(["root", "origin", "config"]))]
pub struct Serve {
    /// Serve as this file says, which no other flag but --cache and -v goes with; `eyewall check` looks for mistakes in it
    #[arg(long, value_name = "FILE", conflicts_with_all = [
        "listen", "workers", "root", "origin", "origin_ca", "origin_host", "origin_timeout", "size", "store_set_cookie",
        "access_log", "access_log_format", "admin",
    ])]
    pub config: Option<PathBuf>,
    /// Address and port, any number of times; port 0 takes any free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    pub listen: Vec<SocketAddr>,
    /// Threads that serve [default: one for each processor]
    #[arg(long, value_name = "N")]
    pub workers: Option<NonZeroU16>,
    /// Serve the files of this folder; with --origin, too, what is no file goes there
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// Serve what this server answers, such as `http://127.0.0.1:3000`; several take turns, and have to answer alike
    #[arg(long, value_name = "URL")]
    pub origin: Vec<OriginUrl>,
    /// Trust the authorities of this file, in PEM, and not those of the system; for https:// origins
    #[arg(long, value_name = "FILE", requires = "origin")]
    pub origin_ca: Option<PathBuf>,
    /// The host that origins are asked for: the `client`'s, the `origin`'s own, or a name [default: client]
    #[arg(long, value_name = "HOST", requires = "origin")]
    pub origin_host: Option<HostHeader>,
    /// Size of the volume if it has to be made [default: 256M]; another than that of one that is there is an error; without --cache it lives in memory only
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub size: Option<u64>,
    /// How long to wait for the origin to begin its answer, and to go on with it; to connect, 5 seconds at most
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "30s")]
    pub origin_timeout: Duration,
    /// Store responses that set a cookie, too: for origins whose cookies are the same for everybody
    #[arg(long)]
    pub store_set_cookie: bool,
    /// Take purges and tell the status at this Unix socket, which only this user may open; for `eyewall purge --server`
    #[arg(long, value_name = "SOCKET")]
    pub admin: Option<PathBuf>,
    /// Log each request into this file, which SIGUSR1 has opened anew; `-` is standard output
    #[arg(long, value_name = "FILE")]
    pub access_log: Option<PathBuf>,
    /// The form of its lines
    #[arg(long, value_name = "FORMAT", default_value = "combined", requires = "access_log")]
    pub access_log_format: LogFormat,
    /// Tell on standard error what fails of single connections and requests, too
    #[arg(short, long)]
    pub verbose: bool,
}

impl Serve {
    /// Where requests are logged, if they are.
    pub(crate) fn access_log(&self) -> Option<AccessLog> {
        self.access_log.clone().map(|path| AccessLog { path, format: self.access_log_format })
    }
}

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
