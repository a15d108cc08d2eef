//! The command lines of the server: `serve`, and `check`, which looks at what it would serve.

use std::net::SocketAddr;
use std::num::NonZeroU16;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args, ValueEnum};
use eyewall_server::OriginUrl;
use eyewall_server::config::names::{HostHeader, Network, listen_address};
use eyewall_server::config::settings::{AccessLog, LogFormat};
use eyewall_server::units::{parse_duration, parse_size};

pub(super) const SERVE_AFTER_HELP: &str = "\
HTTP/1.1 and HTTP/2 (without negotiation), without TLS. The field Cache-Status tells what happened, in each response of an origin and of \
a file that is there.

In front of an origin it is a shared cache as in RFC 9111: what it says of storing and times is done, and where it says \
nothing, a tenth of the time since Last-Modified is guessed, a day at most. What is stale is validated, and used beyond that \
as the origin allows by stale-while-revalidate and stale-if-error (RFC 5861). CDN-Cache-Control goes before Cache-Control. \
Responses that set a cookie aren't stored, unless --store-set-cookie is given. Other methods than GET, HEAD and QUERY go to the \
origin, and what they change is asked for anew. Upgrades, such as to WebSocket, are passed on.

Where --origin is given several times, each request goes to the next of them; one that fails three times in a row is left \
out for a time. A path of an origin goes before that of each request.

PURGE removes what is stored of an address. It is refused unless --purge-token-file or --purge-from allows it. --admin takes more: \
`eyewall purge --server`.

Files are answered to GET and HEAD, whole or in ranges; other methods get 405, or go to the origin if there is one.

What more there is to set, rules, keys, several sites, is set by a file: see docs/configuration.md.";

pub(super) const CHECK_AFTER_HELP: &str = "\
All that is wrong is told at once, each with its line and column. It looks for the folders and files that are named; it \
resolves no host, opens no volume and listens nowhere.";

/// `eyewall serve`
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("source").required(true).multiple(true).args(["root", "origin", "config"]))]
pub struct Serve {
    /// Serve as this file says, which no other flag but --cache, --keep-broken and -v goes with; `eyewall check` looks for mistakes in it
    #[arg(long, value_name = "FILE", conflicts_with_all = [
        "listen", "workers", "root", "origin", "origin_ca", "origin_host", "origin_timeout", "size", "store_set_cookie",
        "access_log", "access_log_format", "admin", "purge_from", "purge_token_file",
    ])]
    pub config: Option<PathBuf>,
    /// Address and port, any number of times; port 0 takes any free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080", value_parser = listen_address)]
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
    /// End with an error where the volume is broken, instead of putting it aside and making a new one
    #[arg(long)]
    pub keep_broken: bool,
    /// Allow PURGE to requests with the token in this file: Authorization: Bearer TOKEN
    #[arg(long, value_name = "FILE")]
    pub purge_token_file: Option<PathBuf>,
    /// Allow PURGE from this network or address, any number of times; proxies on this machine share its address
    #[arg(long, value_name = "NETWORK")]
    pub purge_from: Vec<Network>,
    /// Log each request into this file, which SIGUSR1 has opened anew; `-` is standard output
    #[arg(long, value_name = "FILE")]
    pub access_log: Option<PathBuf>,
    /// The form of its lines
    #[arg(long, value_name = "FORMAT", default_value = "combined", requires = "access_log")]
    pub access_log_format: LogForm,
    /// Tell on standard error what fails of single connections and requests, too
    #[arg(short, long)]
    pub verbose: bool,
}

impl Serve {
    /// Where requests are logged, if they are.
    pub(crate) fn access_log(&self) -> Option<AccessLog> {
        self.access_log.clone().map(|path| AccessLog { path, format: self.access_log_format.into() })
    }
}

/// The form of the access log's lines, with the words of `--help`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogForm {
    /// NCSA combined, with what the cache did and how long it took at the end
    Combined,
    /// One JSON object a line
    Json,
}

impl From<LogForm> for LogFormat {
    fn from(form: LogForm) -> Self {
        match form {
            LogForm::Combined => Self::Combined,
            LogForm::Json => Self::Json,
        }
    }
}

/// `eyewall check`
#[derive(Debug, Args)]
pub struct Check {
    /// The configuration, in TOML
    pub file: PathBuf,
    /// One JSON object, with all defaults filled in
    #[arg(long)]
    pub json: bool,
}
