//! What the file says, as it says it: `[server]` and `[cache]`; the sites are in [`super::site`].
//!
//! Each key has a default, so that no table has to say more than what is special about it. What needs more than one key to be
//! judged is left to the checks of this module's parent.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::names::Network;
use super::site::Site;
use super::value::{Period, Size, SizeWithin, Window, Within};

/// Size of a volume that has to be made and was given none.
pub const CACHE_SIZE_DEFAULT: u64 = 256 << 20;

/// The whole file.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Sockets, limits, log, administration.
    pub server: Server,
    /// The volume.
    pub cache: Volume,
    /// What is served, by host.
    pub site: Vec<Spanned<Site>>,
}

/// `[server]`
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Server {
    /// Addresses to listen on.
    pub listen: Vec<Spanned<SocketAddr>>,
    /// Threads that serve; without it, one for each core.
    pub workers: Option<Within<1, 1024>>,
    /// Where requests are logged; without it, nowhere.
    pub access_log: Option<Spanned<AccessLog>>,
    /// What a client may ask of us.
    pub limits: Limits,
    /// Where the server is administered; without it, nowhere.
    pub admin: Option<Spanned<Admin>>,
    /// Networks from which `PURGE` is allowed; without them and without a token it is closed.
    pub purge_from: Vec<Network>,
    /// The file with the token that allows `PURGE` from anywhere.
    pub purge_token_file: Option<Spanned<PathBuf>>,
    /// Proxies that are believed what they say of their clients.
    pub trusted_proxies: Vec<Network>,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            listen: vec![Spanned::new(0..0, SocketAddr::from(([127, 0, 0, 1], 8080)))],
            workers: None,
            access_log: None,
            limits: Limits::default(),
            admin: None,
            purge_from: Vec::new(),
            purge_token_file: None,
            trusted_proxies: Vec::new(),
        }
    }
}

/// `[server.access_log]`
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct AccessLog {
    /// The file; `-` is standard output.
    pub path: PathBuf,
    /// The form of its lines.
    pub format: LogFormat,
}

impl Default for AccessLog {
    fn default() -> Self {
        Self { path: PathBuf::from("-"), format: LogFormat::Combined }
    }
}

/// The form of the access log's lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// NCSA combined, with what the cache did and how long it took at the end.
    Combined,
    /// One JSON object a line.
    Json,
}

/// `[server.limits]`
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Fields of a request.
    pub header_count: Within<8, 1000>,
    /// Bytes of a request's line and fields.
    pub header_bytes: SizeWithin<{ 8 << 10 }, { 1 << 20 }>,
    /// Time for a request's line and fields, from their first byte.
    pub head_timeout: Period,
    /// How long a connection without a request is kept.
    pub idle_timeout: Period,
    /// Bytes of a request's body; without it, any.
    pub body_bytes_max: Option<Size>,
    /// Bytes a second of a request's body, averaged over the time in which the client is waited for; zero: any.
    pub body_rate_min: Size,
    /// How long a client may fall behind `body_rate_min`.
    pub body_grace: Period,
    /// Time that a client may be waited for in all until its request's body is whole; zero: any.
    pub body_timeout: Window,
    /// Bytes that responses over HTTP/2 may hold in memory, all of them together; zero: any.
    pub stream_bytes: Size,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            header_count: Within(100),
            header_bytes: SizeWithin(64 << 10),
            head_timeout: Period(Duration::from_secs(30)),
            idle_timeout: Period(Duration::from_mins(1)),
            body_bytes_max: None,
            body_rate_min: Size(500),
            body_grace: Period(Duration::from_secs(30)),
            body_timeout: Window(Duration::from_hours(6)),
            stream_bytes: Size(128 << 20),
        }
    }
}

/// `[server.admin]`: one of a socket and an address.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Admin {
    /// The path of a Unix socket; who may open it may administer.
    pub socket: Option<Spanned<PathBuf>>,
    /// An address of the loopback.
    pub listen: Option<Spanned<SocketAddr>>,
    /// The file that holds what a request must show as its bearer token, for `listen`.
    pub token_file: Option<Spanned<PathBuf>>,
}

/// `[cache]`
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Volume {
    /// The volume's file; without it, it lives in memory and ends with the server.
    pub path: Option<Spanned<PathBuf>>,
    /// Size of the volume. One that is there already keeps its own where this is left out.
    pub size: Option<SizeWithin<{ 512 << 10 }, { 2 << 40 }>>,
    /// A typical entry, which sizes the index.
    pub entry_size_hint: Option<SizeWithin<1, { (4 << 30) - 1 }>>,
    /// The largest entry to take.
    pub entry_bytes_max: Option<Spanned<Size>>,
    /// Bytes of memory for a tier before a volume on a disk.
    pub tier: Option<Spanned<Size>>,
    /// Whether each hit is held against its checksum before it is sent.
    pub verify_hits: bool,
    /// In this time all entries in memory are held against their checksums; nothing: they aren't.
    pub scrub: Window,
}

impl Default for Volume {
    fn default() -> Self {
        Self {
            path: None,
            size: None,
            entry_size_hint: None,
            entry_bytes_max: None,
            tier: None,
            verify_hits: false,
            scrub: Window(Duration::from_hours(24)),
        }
    }
}
