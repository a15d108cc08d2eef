//! `eyewall serve`: answers HTTP from a volume, with a folder or origins behind it.
//!
//! ```text
//! listen/     sockets, workers, connections, the end of it all
//!   service   one request in, one response out; the log line
//!     files   --root: look-up, freshness by stat, loading       path, root, stamp
//!     proxy/  --origin: select, decide, ask, fill               origin/
//!       store the volume: stored responses in and out           head
//! ```
//! What may be stored and used again says `eyewall-http`.
//!
//! A body that is stored goes out from the pinned entry: [`bytes::Bytes::from_owner`] over an
//! [`eyewall::OwnedHit`], which the kernel copies from when it is written to the socket. Never by `sendfile`, which
//! would let the kernel read those pages after the pin is gone.
//!
//! # What is absent
//! HTTPS to clients. Ranges of what isn't stored that count from the end, and several at once: they go past the volume.

mod body;
mod fields;
mod files;
mod head;
mod listen;
#[cfg_attr(
    not(test),
    expect(
        dead_code,
        reason = "checks, and the ways to name the host, are for a configuration file that is not served from yet"
    )
)]
mod origin;
mod path;
mod proxy;
mod reply;
mod root;
mod service;
mod stamp;
mod store;

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::Path;

use eyewall::{Cache, Options};
use tracing::Level;

use crate::{Error, Outcome, args, units, volume};
pub use origin::{OriginUrl, TrustError};
use service::{Service, Source};

/// The name of this cache in `Cache-Status`.
const NAME: &str = "Eyewall";
const SIZE_DEFAULT: u64 = 256 << 20;

pub(crate) fn run(cache: Option<&Path>, serve: &args::Serve) -> Result<Outcome, Error> {
    start_log(serve.verbose);
    let cache = open_cache(cache, serve.size)?;
    volume::warn_of_storage(&cache);
    let workers = serve.workers.map_or_else(processors, |workers| workers.get().into());
    let source = Source::of(serve, &cache)?;
    let sockets = listen::Sockets::bind(&serve.listen, workers)?;
    let announced = source.clone();
    let ready = |addresses: &[SocketAddr]| announce(addresses, &announced, &cache);
    listen::run(sockets, move || Service::new(&source), ready)?;
    Ok(Outcome::Done)
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// An existing volume keeps its size unless another one was asked for, which the engine then refuses.
fn open_cache(path: Option<&Path>, size: Option<u64>) -> Result<Cache, Error> {
    let options = Options::new().survive_sigbus(true);
    let made = options.clone().size(size.unwrap_or(SIZE_DEFAULT));
    let Some(path) = path else { return Ok(made.anonymous()?) };
    if size.is_some() {
        return Ok(made.open(path)?);
    }
    match options.create(false).open(path) {
        Err(eyewall::Error::NotFound { .. }) => Ok(made.open(path)?),
        other => Ok(other?),
    }
}

/// Tells people and scripts what was started; the first line is for scripts, too.
fn announce(addresses: &[SocketAddr], source: &Source, cache: &Cache) {
    let mut text = String::new();
    for address in addresses {
        let _ = writeln!(text, "listening on http://{address}/");
    }
    let place = cache.path().map_or_else(|| "in memory".to_owned(), |path| path.display().to_string());
    let (size, largest) = (units::size(cache.size()), units::size(cache.entry_bytes_max()));
    let _ = writeln!(
        text,
        "serving      {source}\ncache        {place}, {size}, entries up to {largest}\nstop with Ctrl-C"
    );
    // Whoever started us need not read it.
    let _ = io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush());
}

fn start_log(verbose: u8) {
    let level = match verbose {
        0 => Level::WARN,
        1 => Level::INFO,
        _ => Level::DEBUG,
    };
    // Fails only if a program that embeds this library has a log of its own, which then serves.
    let _ = tracing_subscriber::fmt().with_max_level(level).with_writer(io::stderr).with_ansi(false).try_init();
}
