//! A server from its start to its end.

use std::net::SocketAddr;
use std::sync::Arc;

use eyewall::Cache;
use eyewall_tls::clock::{Clock, SystemClock};
use toml::Spanned;

use super::admin::Admin;
use super::error::Error;
use super::handle::Handle;
use super::listen::{Listening, Sockets};
use super::log::Log;
use super::service::Service;
use super::shared::Shared;
use super::tls::Tls;
use super::upkeep::Upkeep;
use super::volume;
use crate::config::{self, Config};

/// Starts a server. [`Server::builder`] makes one.
#[derive(Debug, Default)]
#[must_use = "nothing runs before `start` or `run`"]
pub struct Builder {
    config: Option<Config>,
    cache: Option<Cache>,
    keeps_broken: bool,
    handles_signals: bool,
    clock: Option<Arc<dyn Clock>>,
}

/// A running server. Dropping it ends it as [`Server::stop`] does.
///
/// It has its own threads, so it can be used from a thread with a runtime and from one without.
pub struct Server {
    shared: Arc<Shared>,
    cache: Cache,
    admin: Option<String>,
    handle: Handle,
    /// In the order in which they end: connections, the volume's upkeep, and the log after its last line.
    listening: Listening,
    _upkeep: Upkeep,
    _log: Option<Log>,
}

impl Builder {
    /// The configuration, from a file by [`config::load`], or from settings by [`Config::of_settings`].
    pub fn config(mut self, config: Config) -> Self {
        self.config = Some(config);
        self
    }

    /// The configuration, as the text of a TOML file.
    ///
    /// # Errors
    /// [`Error::Config`] with every mistake in it.
    pub fn toml(self, text: &str) -> Result<Self, Error> {
        config::parse(text).map(|config| self.config(config)).map_err(Error::Config)
    }

    /// An open volume, which the program may use, too. The configuration's settings for the volume then have no effect, except
    /// `scrub`.
    ///
    /// An error of the storage kills the process by SIGBUS unless the volume was opened with
    /// [`Options::survive_sigbus`](eyewall::Options::survive_sigbus).
    pub fn cache(mut self, cache: Cache) -> Self {
        self.cache = Some(cache);
        self
    }

    /// Whether a broken volume is an error. By default the server renames it, and creates a new one in its place.
    pub fn keep_broken(mut self, keeps: bool) -> Self {
        self.keeps_broken = keeps;
        self
    }

    /// Whether SIGINT and SIGTERM end the server: the first one gracefully, the second one at once. SIGHUP and SIGUSR1 then don't
    /// kill the process, either. By default the server handles no signal.
    pub fn signals(mut self, handles: bool) -> Self {
        self.handles_signals = handles;
        self
    }

    /// The clock by which certificates are renewed and the keys of session tickets change, for tests. By default it is the system's.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Opens the volume, binds the addresses, and starts to answer. When it returns, the server accepts connections.
    ///
    /// # Errors
    /// Each [`Error`] names what could not be opened or bound. Nothing runs then.
    pub fn start(self) -> Result<Server, Error> {
        let config = match self.config {
            Some(config) => config,
            // This is an error: a configuration needs a site, which has no default.
            None => config::parse("").map_err(Error::Config)?,
        };
        let cache = match self.cache {
            Some(cache) => cache,
            None => volume::open(&config.cache, self.keeps_broken)?,
        };
        let addresses = |all: &[Spanned<SocketAddr>]| all.iter().map(|address| *address.get_ref()).collect::<Vec<_>>();
        let (http, https) = (addresses(config.server.http_addresses()), addresses(config.server.https_addresses()));
        let workers = config.server.workers.as_ref().map_or_else(processors, |workers| workers.0 as usize);
        let mut shared = Shared::new(config, &cache)?;
        let sockets = Sockets::bind(&http, &https, workers)?;
        shared.https_port = sockets.addresses().https_port();
        shared.tls = Tls::start(&shared.config, &self.clock.unwrap_or_else(|| Arc::new(SystemClock)))?;
        let shared = Arc::new(shared);
        let server = &shared.config.server;
        let admin = server.admin.as_ref();
        let admin = admin.map(|settings| Admin::bind(settings.get_ref(), &shared, &cache)).transpose()?;
        let place = admin.as_ref().map(Admin::place);
        let log = server.access_log.as_ref().map(|log| Log::start(log.get_ref())).transpose()?;
        let lines = log.as_ref().map(Log::lines);
        let upkeep = Upkeep::start(Arc::clone(&shared.pages.store), shared.config.cache.scrub.0)?;
        let handle = Handle::new();
        let service = {
            let shared = Arc::clone(&shared);
            move || Service::new(&shared)
        };
        let listening =
            Listening::start(sockets, admin, &server.limits, lines.as_ref(), service, &handle, self.handles_signals)?;
        Ok(Server { admin: place, cache, handle, listening, _upkeep: upkeep, _log: log, shared })
    }

    /// Starts, and waits for the end: [`Builder::start`], then [`Server::wait`]. Only SIGINT and SIGTERM end it, with
    /// [`Builder::signals`].
    ///
    /// # Errors
    /// The errors of both.
    pub fn run(self) -> Result<(), Error> {
        self.start()?.wait()
    }
}

impl Server {
    /// The settings to start a server with.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// The addresses on which it listens for HTTP, in the order of the configuration, with the real port instead of port 0.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.listening.addresses().http
    }

    /// The same for HTTPS.
    pub fn tls_addresses(&self) -> &[SocketAddr] {
        &self.listening.addresses().https
    }

    /// The place of its administration: the path of a socket, or a URL.
    pub fn admin(&self) -> Option<&str> {
        self.admin.as_deref()
    }

    /// Its configuration, with every default filled in.
    pub fn config(&self) -> &Config {
        &self.shared.config
    }

    /// Its volume. The server sees every change that the program makes there.
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// A handle to end it from another thread.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Ends it gracefully: it accepts no more connections, and requests in flight have ten seconds. When this returns, the access
    /// log has the lines of all requests, and the addresses are free.
    ///
    /// # Errors
    /// As [`Server::wait`].
    pub fn stop(self) -> Result<(), Error> {
        self.handle.stop();
        self.wait()
    }

    /// Waits until a [`Handle`] or a signal has ended it.
    ///
    /// It blocks the thread. In a task of tokio, call it by `spawn_blocking`.
    ///
    /// # Errors
    /// [`Error::Start`], if the system gave a worker no runtime.
    pub fn wait(mut self) -> Result<(), Error> {
        self.listening.wait()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.handle.stop();
        // The error of a worker's start; `wait` has returned it if the caller waited.
        let _ = self.listening.wait();
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Server").field("addresses", &self.addresses()).finish_non_exhaustive()
    }
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
