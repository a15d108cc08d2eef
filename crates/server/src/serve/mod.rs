//! `eyewall serve`: answers HTTP from a volume, with a folder or an origin behind it.
//!
//! ```text
//! listen      sockets, connections, the end of it all
//!   service   one request in, one response out; the method, the log line
//!     files   --root: look-up, freshness by stat, loading      path, root, stamp
//!     proxy   --origin: look-up, bypass, fetch, fill           origin/, fill, flight, passes
//!       store the volume: stored responses in and out          head
//! pure rules, without sockets or clocks: policy, cache_control, coding, conditional, fields, cache_status
//! ```
//!
//! A body that is stored goes out from the pinned entry: [`bytes::Bytes::from_owner`] over an
//! [`eyewall::OwnedHit`], which the kernel copies from when it is written to the socket. Never by `sendfile`, which
//! would let the kernel read those pages after the pin is gone.
//!
//! # What is absent
//! HTTPS, HTTP/2, ranges from the cache, revalidation, stale answers, heuristic freshness, `Vary` on anything but
//! `Accept-Encoding`.

mod body;
mod cache_control;
mod cache_status;
mod coding;
mod conditional;
mod fields;
mod files;
mod fill;
mod flight;
mod head;
mod listen;
#[cfg_attr(
    not(test),
    expect(
        dead_code,
        reason = "bodies, upgrades and checks are for a service that takes all methods and for its configuration"
    )
)]
mod origin;
mod passes;
mod path;
mod policy;
mod proxy;
mod reply;
mod root;
mod service;
mod stamp;
mod store;

use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;

use eyewall::{Cache, Options};
use tracing::Level;

use crate::{Error, Outcome, args, units, volume};
use files::Files;
use origin::{OriginSite, Origins, Settings};
pub use origin::{OriginUrl, TrustError};
use proxy::Proxy;
use root::Root;
use service::{Service, Source};
use store::Store;

const SIZE_DEFAULT: u64 = 256 << 20;

pub(crate) fn run(cache: Option<&Path>, serve: &args::Serve) -> Result<Outcome, Error> {
    start_log(serve.verbose);
    let cache = open_cache(cache, serve.size)?;
    volume::warn_of_storage(&cache);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(Error::Start)?;
    runtime.block_on(async {
        let source = source(serve, Store::new(cache.clone()))?;
        let listener = listen::bind(serve.listen).await?;
        let stop = listen::Signals::new().map_err(Error::Start)?;
        announce(&listener, &source, &cache).map_err(Error::Start)?;
        listen::run(listener, Arc::new(Service::new(source)), stop).await;
        Ok(Outcome::Done)
    })
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

fn source(serve: &args::Serve, store: Store) -> Result<Source, Error> {
    match (&serve.root, serve.origin.as_slice()) {
        (Some(path), _) => {
            let root = Root::open(path).map_err(|source| Error::Root { path: path.clone(), source })?;
            Ok(Source::Files(Files::new(root, store)))
        }
        // The command line demands one of the two.
        (None, []) => Err(Error::NoSource),
        (None, urls) => {
            let settings =
                Settings { ca_file: serve.origin_ca.clone(), ..Settings::new(urls.to_vec(), serve.origin_timeout) };
            let site = OriginSite::new(settings).map_err(Error::Trust)?;
            Ok(Source::Origin(Proxy::new(Origins::new(Arc::new(site)), store)))
        }
    }
}

/// Tells people and scripts what was started; the first line is for scripts, too.
fn announce(listener: &tokio::net::TcpListener, source: &Source, cache: &Cache) -> io::Result<()> {
    let place = cache.path().map_or_else(|| "in memory".to_owned(), |path| path.display().to_string());
    let text = format!(
        "listening on http://{}/\nserving      {source}\ncache        {place}, {}, entries up to {}\nstop with Ctrl-C\n",
        listener.local_addr()?,
        units::size(cache.size()),
        units::size(cache.entry_bytes_max()),
    );
    // Whoever started us need not read it.
    let _ = io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush());
    Ok(())
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
