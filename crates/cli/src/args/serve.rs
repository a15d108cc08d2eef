//! The command lines of the server: `serve`, and `check`, which checks its configuration.

use std::num::NonZeroU16;
use std::path::PathBuf;
use std::time::Duration;

use super::operate::ServerPlace;
use clap::{ArgGroup, Args, ValueEnum};
use eyewall_server::OriginUrl;
use eyewall_server::config::access_log::{AccessLog, LogTarget, Share};
use eyewall_server::config::listen::ListenAddress;
use eyewall_server::config::log_format::LogFormat;
use eyewall_server::config::names::{HostHeader, Network};
use eyewall_server::config::settings::Sandbox;
use eyewall_server::units::{parse_duration, parse_size};

pub(super) const SERVE_AFTER_HELP: &str = "\
The server speaks HTTP/1.1 and HTTP/2, and both over TLS if a configuration file gives a site certificates. In responses of an \
origin, and for existing files, the field Cache-Status says what the cache did.

In front of an origin, Eyewall is a shared cache (RFC 9111). It follows the caching fields of the origin. A response without \
them is fresh for a tenth of the time since Last-Modified, at most a day. Eyewall revalidates stale responses, and serves them \
stale as the origin allows by stale-while-revalidate and stale-if-error (RFC 5861). CDN-Cache-Control overrides Cache-Control. \
Responses that set a cookie aren't stored without --store-set-cookie. Methods other than GET, HEAD and QUERY go to the origin, \
and invalidate the responses that they change. Upgrades, such as to WebSocket, are passed on.

With several --origin, requests go to each in turn. After three failures in a row, Eyewall leaves an origin out for a time. If \
the URL of an origin has a path, Eyewall puts it before the path of each request.

PURGE removes the stored responses of an address. It is refused unless --purge-token-file or --purge-from allows it. `eyewall \
purge --server` can do more, and needs --admin.

Eyewall answers GET and HEAD for files, whole or in ranges. Other methods get 405, or go to the origin if there is one.

A configuration file can set more: rules, keys, several sites, HTTPS; see docs/configuration.md.";

pub(super) const RELOAD_AFTER_HELP: &str = "\
The server reads its configuration file again and checks it. If the file has mistakes, nothing changes, and `reload` reports \
them. Otherwise new requests have the new configuration, and requests in flight keep the old one. No request fails.

Changes of [cache], and of `workers`, `socket_mode`, `admin` and `metrics_listen` of [server], need `eyewall upgrade` or a restart. \
A change of `sandbox` needs a restart. `reload` names those that differ.

SIGHUP to the server does the same; its log says how it ended.";

pub(super) const FLEET_AFTER_HELP: &str = "\
A node is a process of `eyewall serve` with a [fleet] in its configuration. The list has all nodes that are live, and those that \
ended in the last ten minutes. A node that is blind is cut off from the purge log, and revalidates stored responses. If the \
server can't reach the purge log, it knows only about itself.

With peers, a line for each says whether this server asks it for responses, and if not, why. With a second level, a line has its \
state: whether misses ask it, and how many of them it answered.";

pub(super) const DOCTOR_AFTER_HELP: &str = "\
It looks at the kernel, the limits of this process, memory, the clock, the place for the volume, and the configuration. It asks each \
origin for its front page, and says whether the server would store it. It changes nothing.

Run it as the user of the server. The limits are those of your shell: a unit of systemd has its own.";

pub(super) const UPGRADE_AFTER_HELP: &str = "\
The running process starts the program that now has its path, with the same command line. The new process gets the listening \
sockets, reads the configuration, and works on the same volume. When it accepts connections, the old one accepts no more, \
answers what its connections still ask, and ends after `drain_timeout` at the latest. No request fails.

If the new process fails, or isn't ready within a minute, the old one goes on as before, and `upgrade` says why.

SIGUSR2 to the server does the same; its log says how it ended.";

pub(super) const CHECK_AFTER_HELP: &str = "\
`check` reports all mistakes at once, each with its line and column. It checks that the named folders and files exist. It \
doesn't resolve hosts, open the volume or listen. Without mistakes it prints what the configuration does, and then warnings. \
Warnings don't change the exit code; the server logs them, too.";

/// `eyewall serve`
#[derive(Debug, Clone, Args)]
#[command(group = ArgGroup::new("source").required(true).multiple(true).args(["root", "origin", "config"]))]
pub struct Serve {
    /// The configuration file (see `eyewall check`); you can add only --cache, --keep-broken, --sandbox and -v
    #[arg(long, value_name = "FILE", conflicts_with_all = [
        "listen", "workers", "root", "origin", "origin_ca", "origin_host", "origin_timeout", "size", "store_set_cookie",
        "access_log", "access_log_format", "admin", "purge_from", "purge_token_file",
    ])]
    pub config: Option<PathBuf>,
    /// Listen on this address and port, or on a Unix socket (`unix:/run/eyewall/http.sock`); may be repeated; port 0 takes a free port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    pub listen: Vec<ListenAddress>,
    /// Number of threads that serve [default: one per core]
    #[arg(long, value_name = "N")]
    pub workers: Option<NonZeroU16>,
    /// Serve the files of this folder; with --origin, requests for other paths go to the origin
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// Cache the responses of this server, such as `http://127.0.0.1:3000` or `unix:/run/app.sock`; may be repeated for servers with the same content
    #[arg(long, value_name = "URL")]
    pub origin: Vec<OriginUrl>,
    /// For https:// origins: trust the certificate authorities in this PEM file, instead of the system's
    #[arg(long, value_name = "FILE", requires = "origin")]
    pub origin_ca: Option<PathBuf>,
    /// The Host field for origins: `client` (as the client sent it), `origin` (the origin's own), or a name [default: client]
    #[arg(long, value_name = "HOST", requires = "origin")]
    pub origin_host: Option<HostHeader>,
    /// Size of a new volume [default: 256M]; an error if an existing volume has another size; without --cache the volume is in memory only
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub size: Option<u64>,
    /// Timeout until the origin's response begins, and between two pieces of it; the timeout to connect is 5 seconds at most
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "30s")]
    pub origin_timeout: Duration,
    /// Also store responses that set a cookie; only for origins that give everybody the same cookies
    #[arg(long)]
    pub store_set_cookie: bool,
    /// Accept purges and report the status at this Unix socket, which only this user may open; for `eyewall purge --server`
    #[arg(long, value_name = "SOCKET")]
    pub admin: Option<PathBuf>,
    /// If the volume is broken, end with an error, instead of renaming it and creating a new one
    #[arg(long)]
    pub keep_broken: bool,
    /// Allow PURGE for requests with the token of this file: Authorization: Bearer TOKEN
    #[arg(long, value_name = "FILE")]
    pub purge_token_file: Option<PathBuf>,
    /// Allow PURGE from this network or address; may be repeated; behind a proxy on this machine, all clients have the proxy's address
    #[arg(long, value_name = "NETWORK")]
    pub purge_from: Vec<Network>,
    /// Log each request to this file; SIGUSR1 reopens it; `-` is standard output, `syslog:/dev/log` the system's log
    #[arg(long, value_name = "FILE")]
    pub access_log: Option<LogTarget>,
    /// The format of the log's lines: `combined`, `json`, or a text with names such as `$status`
    #[arg(long, value_name = "FORMAT", default_value = "combined", requires = "access_log")]
    pub access_log_format: LogFormat,
    /// Restrict this process to the files and system calls that it needs; overrides `sandbox` of the configuration file
    #[arg(long, value_name = "MODE")]
    pub sandbox: Option<SandboxMode>,
    /// Also log failures of single connections and requests, on standard error
    #[arg(short, long)]
    pub verbose: bool,
}

impl Serve {
    /// Where requests are logged, if they are.
    pub(crate) fn access_log(&self) -> Option<AccessLog> {
        let format = self.access_log_format.clone();
        self.access_log.clone().map(|path| AccessLog { path, format, sample: Share::default() })
    }
}

/// The modes of the sandbox, with the words of `--help`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SandboxMode {
    /// No sandbox
    Off,
    /// As much of Landlock and seccomp as the kernel supports; the log says what is missing
    On,
    /// Landlock and seccomp; the server doesn't start if the kernel lacks a part
    Strict,
}

impl From<SandboxMode> for Sandbox {
    fn from(mode: SandboxMode) -> Self {
        match mode {
            SandboxMode::Off => Self::Off,
            SandboxMode::On => Self::On,
            SandboxMode::Strict => Self::Strict,
        }
    }
}

/// `eyewall reload`, `eyewall upgrade` and `eyewall fleet`
#[derive(Debug, Args)]
pub struct RunningServer {
    /// Ask this running server: the path of its socket, or `http://127.0.0.1:PORT`
    #[arg(long, value_name = "SERVER")]
    pub server: ServerPlace,
    /// The file with the token, which a server at a port requires
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Write one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `eyewall doctor`
#[derive(Debug, Args)]
pub struct Doctor {
    /// The configuration file, in TOML
    pub file: PathBuf,
    /// Write one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `eyewall check`
#[derive(Debug, Args)]
pub struct Check {
    /// The configuration file, in TOML
    pub file: PathBuf,
    /// Write one JSON object, with all defaults filled in
    #[arg(long)]
    pub json: bool,
}
