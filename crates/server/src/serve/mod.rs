//! `eyewall serve`: answers HTTP from a volume, with a folder or origins behind it.
//!
//! ```text
//! listen/     sockets, workers, connections, the end of it all; what lies ready is answered here
//!   plain     requests that ask for a page and nothing else
//!   vouched   what trusted proxies say of their clients
//!   service   one request in: its site, its key; one response out
//!     purge/  PURGE, and what purges mean
//!     files/  --root: what a folder has, by `eyewall-files`
//!     proxy/  --origin: what the page cache is told of a site   origin/
//! upkeep      a thread that looks after the volume
//! admin/      purges and status, for who looks after the server
//! ```
//! `log/` writes a line for each request, from where a connection has its head until its response has left.
//! What may be stored and used again says `eyewall-http`.
//!
//! A body that is stored goes out from the pinned entry: [`bytes::Bytes::from_owner`] over an
//! [`eyewall::OwnedHit`], which the kernel copies from when it is written to the socket. Never by `sendfile`, which
//! would let the kernel read those pages after the pin is gone.
//!
//! # What is absent
//! HTTPS to clients, so that all keys begin with `http:`. More than eight ranges at once of what isn't stored, and ranges of a QUERY: they go past
//! the volume.

mod admin;
mod body;
mod fields;
mod files;
mod interim;
mod listen;
mod log;
mod origin;
mod plain;
mod proxy;
mod purge;
mod reply;
mod service;
mod shared;
mod token;
mod upkeep;
mod vouched;

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use eyewall::{Cache, Options};
use tracing::Level;

use crate::config::settings::CACHE_SIZE_DEFAULT;
use crate::config::{self, Config, Volume};
use crate::{Error, Outcome, args, units, volume};
use admin::Admin;
use log::Log;
pub use origin::{OriginUrl, TrustError};
use service::Service;
use shared::Shared;
use upkeep::Upkeep;

/// The name of this cache in `Cache-Status`.
const NAME: &str = "Eyewall";

pub(crate) fn run(cache: Option<&Path>, serve: &args::Serve) -> Result<Outcome, Error> {
    start_log(serve.verbose);
    let config = configured(cache, serve)?;
    let cache = open_cache(&config.cache, serve.keep_broken)?;
    volume::warn_of_storage(&cache);
    let listen: Vec<SocketAddr> = config.server.listen.iter().map(|address| *address.get_ref()).collect();
    let workers = config.server.workers.as_ref().map_or_else(processors, |workers| workers.0 as usize);
    let shared = Arc::new(Shared::new(config, &cache)?);
    let sockets = listen::Sockets::bind(&listen, workers)?;
    let admin = shared.config.server.admin.as_ref();
    let admin = admin.map(|settings| Admin::bind(settings.get_ref(), &shared, &cache)).transpose()?;
    let place = admin.as_ref().map(Admin::place);
    let announced = Arc::clone(&shared);
    let ready = |addresses: &[SocketAddr]| announce(addresses, &announced, place.as_deref(), &cache);
    let server = &announced.config.server;
    // It writes what is left when it is dropped, behind the last connection.
    let log = server.access_log.as_ref().map(|log| Log::start(log.get_ref())).transpose()?;
    let lines = log.as_ref().map(Log::lines);
    let _upkeep = Upkeep::start(Arc::clone(&announced.pages.store), announced.config.cache.scrub.0)?;
    listen::run(sockets, admin, &server.limits, lines.as_ref(), move || Service::new(&shared), ready)?;
    Ok(Outcome::Done)
}

/// What the file says, or the command line; `cache` goes before what the file says of the volume's path.
fn configured(cache: Option<&Path>, serve: &args::Serve) -> Result<Config, Error> {
    let Some(path) = &serve.config else {
        return Config::of_flags(cache, serve).map_err(Error::Flags);
    };
    let wrong = |problems| Error::Config { path: path.clone(), problems };
    let mut config = config::load(path).map_err(wrong)?;
    if let Some(cache) = cache {
        config.cache.path = Some(toml::Spanned::new(0..0, cache.to_owned()));
    }
    Ok(config)
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// An existing volume keeps its size unless another one was asked for, which the engine then refuses. A broken one is put aside,
/// and a new one is made in its place, unless it is to be kept.
fn open_cache(volume: &Volume, keeps_broken: bool) -> Result<Cache, Error> {
    let mut options = Options::new().survive_sigbus(true).verify_hits(volume.verify_hits);
    if let Some(bytes) = &volume.entry_bytes_max {
        options = options.entry_bytes_max(bytes.get_ref().0);
    }
    if let Some(bytes) = &volume.entry_size_hint {
        // It was read as one that fits.
        options = options.entry_size_hint(u32::try_from(bytes.0).unwrap_or(u32::MAX));
    }
    if let Some(bytes) = &volume.tier {
        options = options.tier(bytes.get_ref().0);
    }
    let size = volume.size.as_ref().map(|size| size.0);
    let made = options.clone().size(size.unwrap_or(CACHE_SIZE_DEFAULT));
    let Some(path) = volume.path.as_ref().map(toml::Spanned::get_ref) else { return Ok(made.anonymous()?) };
    let opened = match size {
        Some(_) => made.open(path),
        None => options.create(false).open(path),
    };
    match opened {
        Err(eyewall::Error::NotFound { .. }) => Ok(made.open(path)?),
        Err(eyewall::Error::Corrupt { path: broken, what }) if !keeps_broken => {
            let cache = made.put_aside_broken(true).open(path)?;
            let aside = cache.put_aside().map_or_else(String::new, |aside| aside.display().to_string());
            let volume = broken.display();
            tracing::warn!(%volume, aside, "the volume was broken ({what}): it was put aside, and a new one was made");
            Ok(cache)
        }
        other => Ok(other?),
    }
}

/// Tells people and scripts what was started; the first line is for scripts, too.
fn announce(addresses: &[SocketAddr], shared: &Shared, admin: Option<&str>, cache: &Cache) {
    let mut text = String::new();
    for address in addresses {
        let _ = writeln!(text, "listening on http://{address}/");
    }
    let place = cache.path().map_or_else(|| "in memory".to_owned(), |path| path.display().to_string());
    let (size, largest) = (units::size(cache.size()), units::size(cache.entry_bytes_max()));
    let _ = writeln!(text, "{shared}cache        {place}, {size}, entries up to {largest}");
    if let Some(admin) = admin {
        let _ = writeln!(text, "admin        {admin}");
    }
    text.push_str("stop with Ctrl-C\n");
    // Whoever started us need not read it.
    let _ = io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush());
}

fn start_log(is_verbose: bool) {
    let level = if is_verbose { Level::DEBUG } else { Level::WARN };
    // Fails only if a program that embeds this library has a log of its own, which then serves.
    let _ = tracing_subscriber::fmt().with_max_level(level).with_writer(io::stderr).with_ansi(false).try_init();
}
