//! A server from its start to its end.

use std::net::SocketAddr;
use std::sync::Arc;

use eyewall::Cache;

use super::admin::Admin;
use super::handle::Handle;
use super::listen::{Listening, Sockets};
use super::log::Log;
use super::service::Service;
use super::shared::Shared;
use super::upkeep::Upkeep;
use super::volume;
use crate::Error;
use crate::config::{self, Config};

/// What a server is started with. [`Server::builder`] makes one.
#[derive(Debug, Default)]
#[must_use = "nothing runs before `start` or `run`"]
pub struct Builder {
    config: Option<Config>,
    cache: Option<Cache>,
    keeps_broken: bool,
    handles_signals: bool,
}

/// A running server. Dropping it ends it as [`Server::stop`] does.
///
/// All its threads are its own, so that it can be used from a thread with a runtime and from one without.
pub struct Server {
    shared: Arc<Shared>,
    cache: Cache,
    admin: Option<String>,
    handle: Handle,
    /// In the order in which they end: connections, the volume's upkeep, and the log behind the last line.
    listening: Listening,
    _upkeep: Upkeep,
    _log: Option<Log>,
}

impl Builder {
    /// The configuration, as [`config::load`] reads it from a file, or [`Config::of_settings`] makes it of settings.
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

    /// A volume that is open already, which the program may use, too. What the configuration says of the volume then has no
    /// effect, except how often it is scrubbed.
    ///
    /// An error of the storage ends the process by SIGBUS unless the volume was opened with
    /// [`Options::survive_sigbus`](eyewall::Options::survive_sigbus).
    pub fn cache(mut self, cache: Cache) -> Self {
        self.cache = Some(cache);
        self
    }

    /// Whether a broken volume is an error. By default it is put aside, and a new one is made in its place.
    pub fn keep_broken(mut self, keeps: bool) -> Self {
        self.keeps_broken = keeps;
        self
    }

    /// Whether SIGINT and SIGTERM end the server: the first one gracefully, the second one at once. SIGHUP and SIGUSR1 then end
    /// no process either. By default no signal is handled.
    pub fn signals(mut self, handles: bool) -> Self {
        self.handles_signals = handles;
        self
    }

    /// Opens the volume, binds the addresses, and starts to answer. When it returns, connections are accepted.
    ///
    /// # Errors
    /// Each [`Error`] names what could not be opened or bound. Nothing keeps running then.
    pub fn start(self) -> Result<Server, Error> {
        let config = match self.config {
            Some(config) => config,
            // A configuration needs a site, which has no default: this tells so.
            None => config::parse("").map_err(Error::Config)?,
        };
        let cache = match self.cache {
            Some(cache) => cache,
            None => volume::open(&config.cache, self.keeps_broken)?,
        };
        let listen: Vec<SocketAddr> = config.server.listen.iter().map(|address| *address.get_ref()).collect();
        let workers = config.server.workers.as_ref().map_or_else(processors, |workers| workers.0 as usize);
        let shared = Arc::new(Shared::new(config, &cache)?);
        let sockets = Sockets::bind(&listen, workers)?;
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

    /// Starts, and waits for the end: [`Builder::start`], then [`Server::wait`]. With [`Builder::signals`], SIGINT and SIGTERM
    /// end it; without, nothing does.
    ///
    /// # Errors
    /// Those of both.
    pub fn run(self) -> Result<(), Error> {
        self.start()?.wait()
    }
}

impl Server {
    /// What a server is started with.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// The addresses on which it listens, in the order of the configuration. Port 0 has become the port that it got.
    pub fn addresses(&self) -> &[SocketAddr] {
        self.listening.addresses()
    }

    /// Where it is administered: the path of a socket, or a URL.
    pub fn admin(&self) -> Option<&str> {
        self.admin.as_deref()
    }

    /// Its configuration, with every default filled in.
    pub fn config(&self) -> &Config {
        &self.shared.config
    }

    /// Its volume. What a program changes in it, the server notices.
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// What ends it from another thread.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Ends it gracefully: it accepts no more connections, and requests in flight have ten seconds. When this returns, the lines of
    /// all requests are in the access log, and the addresses are free.
    ///
    /// # Errors
    /// As [`Server::wait`].
    pub fn stop(self) -> Result<(), Error> {
        self.handle.stop();
        self.wait()
    }

    /// Waits until a [`Handle`] or a signal has ended it.
    ///
    /// It blocks its thread. Call it in a task of tokio by `spawn_blocking`.
    ///
    /// # Errors
    /// [`Error::Start`], where the system gave a worker no runtime.
    pub fn wait(mut self) -> Result<(), Error> {
        self.listening.wait()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.handle.stop();
        // An error is of its start, and was given to who waited; nobody is left to tell it to here.
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
