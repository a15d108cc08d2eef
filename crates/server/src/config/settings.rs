//! The settings in the form of the file: `[server]` and `[cache]`; [`super::site`] has the sites.
//!
//! Each key has a default, so a table only needs keys that differ from it. `check.rs` and `check_site.rs` have the checks that
//! need more than one key.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::access_log::AccessLog;
use super::fleet::Fleet;
use super::listen::{ListenAddress, SocketMode};
use super::log::Log;
use super::names::Network;
use super::site::Site;
use super::tls::{Acme, ServerTls};
use super::trace::Tracing;
use super::value::{Period, Size, SizeWithin, Window, Within};

/// Size of a new volume without a given size.
pub const CACHE_SIZE_DEFAULT: u64 = 256 << 20;

/// The whole file.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Sockets, limits, log, administration.
    pub server: Server,
    /// The volume.
    pub cache: Volume,
    /// The purge log that this server shares with others. Without it, purges stay here.
    pub fleet: Option<Spanned<Fleet>>,
    /// The sites, by host.
    pub site: Vec<Spanned<Site>>,
}

/// `[server]`
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Server {
    /// Addresses to listen on for HTTP, or Unix sockets (`unix:/run/eyewall/http.sock`). For port 0 the kernel chooses a free port.
    ///
    /// Default: `["127.0.0.1:8080"]`, or port 80 of all addresses if a site has `tls`
    ///
    /// Example: `["0.0.0.0:80", "[::]:80"]`
    pub listen: Option<Vec<Spanned<ListenAddress>>>,
    /// The same for HTTPS.
    ///
    /// Default: `[]`, or port 443 of all addresses if a site has `tls`
    ///
    /// Example: `["0.0.0.0:443", "[::]:443"]`
    pub listen_tls: Option<Vec<Spanned<ListenAddress>>>,
    /// Permissions of the Unix sockets, in octal digits. A process needs write permission to connect.
    ///
    /// Default: `"600"`
    ///
    /// Example: `"660"`
    pub socket_mode: SocketMode,
    /// Addresses of `listen` and `listen_tls` whose connections begin with a PROXY protocol header, of version 1 or 2.
    ///
    /// Example: `["0.0.0.0:8081"]`
    pub proxy_protocol: Vec<Spanned<ListenAddress>>,
    /// Proxies whose PROXY headers Eyewall believes. It closes other connections at the addresses of `proxy_protocol`.
    ///
    /// Example: `["10.0.0.7"]`
    pub proxy_protocol_from: Vec<Network>,
    /// Worker threads.
    ///
    /// Default: one for each core
    ///
    /// Example: `4`
    pub workers: Option<Within<1, 1024>>,
    /// Time of requests in flight when the server ends, or after an upgrade. Then Eyewall cuts them off.
    ///
    /// Example: `"2m"`
    pub drain_timeout: Period,
    /// Share the addresses with other servers of the same user, which each get a part of the connections. Otherwise an address in use is
    /// an error.
    ///
    /// Example: `true`
    pub reuse_port: bool,
    /// The log of requests. Without it, none is logged.
    pub access_log: Option<Spanned<AccessLog>>,
    /// The server's own log.
    pub log: Option<Spanned<Log>>,
    /// Request ids, traces, and times for those who may know them.
    pub tracing: Option<Spanned<Tracing>>,
    /// The limits for clients.
    pub limits: Limits,
    /// The administration. Without it, there is none.
    pub admin: Option<Spanned<Admin>>,
    /// The address for [metrics](operations/monitoring.md#metrics). Everyone who can reach it may read them. Without it, only the administration has them.
    ///
    /// Default: none
    ///
    /// Example: `"127.0.0.1:9145"`
    pub metrics_listen: Option<Spanned<SocketAddr>>,
    /// Networks whose clients may send `PURGE` without a token.
    ///
    /// Example: `["192.0.2.7", "10.0.0.0/8"]`
    pub purge_from: Vec<Network>,
    /// A file with one word. Requests that carry this word as their bearer token may send `PURGE` from anywhere.
    ///
    /// Default: none
    ///
    /// Example: `"/etc/eyewall/purge-token"`
    pub purge_token_file: Option<Spanned<PathBuf>>,
    /// HTTPS to clients.
    pub tls: Option<Spanned<ServerTls>>,
    /// Certificates from an authority, for sites with `tls = "auto"`.
    pub acme: Option<Spanned<Acme>>,
    /// Proxies whose `X-Forwarded-For`, `-Proto` and `-Host` Eyewall believes.
    ///
    /// Example: `["127.0.0.1", "10.0.0.0/8"]`
    pub trusted_proxies: Vec<Network>,
    /// Restricts the files that the process may open (Landlock) and the system calls that it may make (seccomp). `"on"` uses as
    /// much as the kernel supports, and logs what is missing. With `"strict"` the server doesn't start if anything is missing.
    ///
    /// Example: `"on"`
    pub sandbox: Sandbox,
    /// Further folders that the process may read in its sandbox, such as those of sites that you will add by a reload.
    ///
    /// Example: `["/srv/releases"]`
    pub sandbox_read: Vec<Spanned<PathBuf>>,
    /// Further folders that the process, and the commands that it runs, may read and change in the sandbox.
    ///
    /// Example: `["/var/lib/lego"]`
    pub sandbox_write: Vec<Spanned<PathBuf>>,
}

/// How much of a sandbox the process has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Sandbox {
    /// None.
    #[default]
    Off,
    /// As much as the kernel supports.
    On,
    /// All, or the server doesn't start.
    Strict,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            listen: None,
            listen_tls: None,
            socket_mode: SocketMode(0o600),
            proxy_protocol: Vec::new(),
            proxy_protocol_from: Vec::new(),
            workers: None,
            drain_timeout: Period(Duration::from_secs(30)),
            reuse_port: false,
            access_log: None,
            log: None,
            tracing: None,
            limits: Limits::default(),
            admin: None,
            metrics_listen: None,
            purge_from: Vec::new(),
            purge_token_file: None,
            tls: None,
            acme: None,
            trusted_proxies: Vec::new(),
            sandbox: Sandbox::Off,
            sandbox_read: Vec::new(),
            sandbox_write: Vec::new(),
        }
    }
}

impl Server {
    /// The addresses for HTTP.
    pub fn http_addresses(&self) -> &[Spanned<ListenAddress>] {
        self.listen.as_deref().unwrap_or_default()
    }

    /// The addresses for HTTPS.
    pub fn https_addresses(&self) -> &[Spanned<ListenAddress>] {
        self.listen_tls.as_deref().unwrap_or_default()
    }

    /// Fills in the addresses that the operator left out.
    pub(super) fn complete(&mut self, has_tls: bool) {
        let addresses = |addresses: &[SocketAddr]| {
            addresses.iter().map(|address| Spanned::new(0..0, (*address).into())).collect::<Vec<_>>()
        };
        let all = |port| addresses(&[(Ipv4Addr::UNSPECIFIED, port).into(), (Ipv6Addr::UNSPECIFIED, port).into()]);
        if self.listen.is_none() && self.listen_tls.is_none() {
            if has_tls {
                (self.listen, self.listen_tls) = (Some(all(80)), Some(all(443)));
            } else {
                self.listen = Some(addresses(&[(Ipv4Addr::LOCALHOST, 8080).into()]));
            }
        }
        self.listen.get_or_insert_default();
        self.listen_tls.get_or_insert_default();
    }
}

/// `[server.limits]`
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Number of fields that a request may have. Eyewall answers 431 if it has more.
    ///
    /// Example: `200`
    pub header_count: Within<8, 1000>,
    /// Size that a request's line and fields may have. Eyewall answers 431 if they are larger.
    ///
    /// Example: `"128K"`
    pub header_bytes: SizeWithin<{ 8 << 10 }, { 1 << 20 }>,
    /// Time that a request's line and fields may take, from their first byte. After that Eyewall sends 408 and closes
    /// the connection.
    ///
    /// Example: `"10s"`
    pub head_timeout: Period,
    /// Time after which Eyewall closes a connection without a request.
    ///
    /// Example: `"5m"`
    pub idle_timeout: Period,
    /// Size that a request's body may have. Eyewall answers 413 if it is larger, at once if the request gives the
    /// length.
    ///
    /// Default: any
    ///
    /// Example: `"64M"`
    pub body_bytes_max: Option<Size>,
    /// Lowest rate of a request's body, in bytes a second. A client that falls behind by `body_grace` gets 408. `0`
    /// turns this off.
    ///
    /// Example: `"2K"`
    pub body_rate_min: Size,
    /// Time by which a client may fall behind `body_rate_min`.
    ///
    /// Example: `"20s"`
    pub body_grace: Period,
    /// Total time that Eyewall waits for a request's body. After that it sends 408. `"0s"` turns this off.
    ///
    /// Example: `"1h"`
    pub body_timeout: Window,
    /// Memory that all responses over HTTP/2 may hold together. `0` turns the limit off.
    ///
    /// Example: `"512M"`
    pub stream_bytes: Size,
    /// Memory that the server may need in the worst case, without the volume. Connections beyond it wait while idle ones are closed;
    /// Eyewall answers requests beyond it by 503. [How it is computed](security.md#set-a-limit-for-memory)
    ///
    /// Default: any
    ///
    /// Example: `"1G"`
    pub memory: Option<Spanned<Size>>,
    /// Connections that all clients together may have. At the limit, a new connection waits, and Eyewall closes the one that has
    /// been idle for longest.
    ///
    /// Default: any number
    ///
    /// Example: `20000`
    pub connections: Option<Within<16, 1_000_000>>,
    /// Connections that each address of `listen` and `listen_tls` may have. At the limit, Eyewall does the same as for `connections`.
    ///
    /// Default: any number
    ///
    /// Example: `10000`
    pub connections_per_listener: Option<Within<1, 1_000_000>>,
    /// Connections that one client may have: an IPv4 address, or a /64 network of IPv6. Eyewall closes further ones at
    /// once. Trusted proxies may have any number.
    ///
    /// Default: any number
    ///
    /// Example: `100`
    pub connections_per_client: Option<Within<1, 1_000_000>>,
    /// Requests that one client may send in a second. Eyewall answers further ones by 429. Behind a trusted proxy, the
    /// client is the one that the proxy names.
    ///
    /// Default: any number
    ///
    /// Example: `50`
    pub requests_per_second: Option<Within<1, 1_000_000>>,
    /// Requests that one client may send at once, after a pause.
    ///
    /// Default: `requests_per_second`
    ///
    /// Example: `200`
    pub request_burst: Option<Spanned<Within<1, 1_000_000>>>,
    /// Networks whose clients may connect. Eyewall closes the connections of others, and answers their requests through
    /// a trusted proxy by 403. If the list is empty, all may.
    ///
    /// Example: `["10.0.0.0/8"]`
    pub allow: Vec<Network>,
    /// Networks whose clients may not connect, even if `allow` names them.
    ///
    /// Example: `["192.0.2.0/24"]`
    pub deny: Vec<Network>,
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
            memory: None,
            connections: None,
            connections_per_listener: None,
            connections_per_client: None,
            requests_per_second: None,
            request_burst: None,
            allow: Vec::new(),
            deny: Vec::new(),
        }
    }
}

/// `[server.admin]`: one of a socket and an address.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Admin {
    /// A Unix socket with mode 0600. Every process that can open it may administer the server.
    ///
    /// Default: none
    ///
    /// Example: `"/run/eyewall/admin.sock"`
    pub socket: Option<Spanned<PathBuf>>,
    /// A loopback address.
    ///
    /// Default: none
    ///
    /// Example: `"127.0.0.1:8081"`
    pub listen: Option<Spanned<SocketAddr>>,
    /// A file with one word, the bearer token that requests to `listen` must carry. At a `socket`, only pages in a browser need it, and only to change something.
    ///
    /// Default: none
    ///
    /// Example: `"/etc/eyewall/token"`
    pub token_file: Option<Spanned<PathBuf>>,
    /// Whether requests to `listen` that only read need no token: [the dashboard](operations/monitoring.md#the-dashboard), status, metrics and explanations, but not the requests one by one.
    ///
    /// Example: `true`
    pub read_without_token: bool,
    /// Further names under which browsers reach the administration, for instance that of a proxy before it. Addresses and `localhost` are always allowed.
    ///
    /// Example: `["cache.example.org"]`
    pub hosts: Vec<String>,
}

/// `[cache]`
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Volume {
    /// The volume's file. Without it the volume is in memory and ends with the server.
    ///
    /// Default: none
    ///
    /// Example: `"/var/cache/site.eye"`
    pub path: Option<Spanned<PathBuf>>,
    /// Size of a new volume. Leave it out for an existing volume: a different size is an error (`eyewall resize` changes it).
    ///
    /// Default: `"256M"`
    ///
    /// Example: `"4G"`
    pub size: Option<SizeWithin<{ 512 << 10 }, { 2 << 40 }>>,
    /// Size of a typical entry. The index starts with this guess and adapts.
    ///
    /// Default: `"1K"`
    ///
    /// Example: `"2K"`
    pub entry_size_hint: Option<SizeWithin<1, { (4 << 30) - 1 }>>,
    /// The largest entry, up to a quarter of `size`.
    ///
    /// Default: a sixteenth of `size`, at most 4M
    ///
    /// Example: `"64M"`
    pub entry_bytes_max: Option<Spanned<Size>>,
    /// Memory for copies of hot entries, for a volume on a disk.
    ///
    /// Default: none
    ///
    /// Example: `"512M"`
    pub tier: Option<Spanned<Size>>,
    /// Verify the checksum of each hit before sending it. Eyewall drops a damaged entry and counts a miss.
    ///
    /// Example: `true`
    pub verify_hits: bool,
    /// Length of a pass in which Eyewall verifies the checksums of all entries in memory, and drops damaged ones. It
    /// takes at most 1 % of a core. `"0s"` turns this off.
    ///
    /// Example: `"6h"`
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
