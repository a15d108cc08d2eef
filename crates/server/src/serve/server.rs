//! A server from its start to its end.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use eyewall::Cache;
use eyewall_fleet_redis::Fleet;
use eyewall_tls::clock::{Clock, SystemClock};
use toml::Spanned;

use super::admin::Admin;
use super::error::Error;
use super::handle::Handle;
use super::listen::{Activated, Binding, ListenPlace, Listening, Sockets, Workers, https_port};
use super::log::LastLines;
use super::metrics::Door;
use super::peers::{Peers, PeersThreads};
use super::reload::{Reloaded, Reloader, SetLevels, Source};
use super::sandbox;
use super::second_level::{Level, LevelThreads};
use super::shared::Shared;
use super::spans::LastSpans;
use super::supervisor::Supervisor;
use super::upgrade::{Inherited, InheritedAdmin, Successor, Upgrader};
use super::upkeep::Upkeep;
use super::volume;
use crate::config::{self, Config, Problem};

/// Starts a server. [`Server::builder`] makes one.
#[derive(Default)]
#[must_use = "nothing runs before `start` or `run`"]
pub struct Builder {
    config: Option<Config>,
    cache: Option<Cache>,
    source: Option<Source>,
    set_levels: Option<SetLevels>,
    source_files: Vec<PathBuf>,
    successor: Option<Successor>,
    inherited: Option<Inherited>,
    is_service: bool,
    keeps_broken: bool,
    handles_signals: bool,
    clock: Option<Arc<dyn Clock>>,
}

/// A running server. Dropping it ends it as [`Server::stop`] does.
///
/// It has its own threads, so it can be used from a thread with a runtime and from one without.
pub struct Server {
    reloader: Arc<Reloader>,
    cache: Cache,
    admin: Option<String>,
    metrics: Option<SocketAddr>,
    handle: Handle,
    /// In the order in which they end: connections, those of peers, the fleet, the second level, the volume's upkeep, and the log and the spans after the last ones.
    listening: Listening,
    _peers: Option<PeersThreads>,
    _fleet: Option<super::fleet::Node>,
    _second_level: Option<LevelThreads>,
    _upkeep: Upkeep,
    _last: (LastLines, LastSpans),
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

    /// Where a reload gets the configuration if SIGHUP or the administration asks for one. Without it, they can't reload.
    /// [`Server::reload`] doesn't need it.
    pub fn reload_from(mut self, source: impl Fn() -> Result<Config, Vec<Problem>> + Send + Sync + 'static) -> Self {
        self.source = Some(Box::new(source));
        self
    }

    /// How a reload and the administration change the levels of the program's log. The server itself writes its log by the crate `tracing`,
    /// and the program decides where it goes.
    pub fn log_levels(mut self, set: impl Fn(&config::log::LogLevels) + Send + Sync + 'static) -> Self {
        self.set_levels = Some(Box::new(set));
        self
    }

    /// A file that the function of [`Builder::reload_from`] reads: the sandbox includes its folder.
    pub fn source_file(mut self, path: PathBuf) -> Self {
        self.source_files.push(path);
        self
    }

    /// How an upgrade, by SIGUSR2 or the administration, starts the process that takes over: the path of a program, and its arguments.
    /// The program calls [`Inherited::from_parent`] first. Without this, the server can't be upgraded.
    pub fn successor(mut self, program: PathBuf, arguments: Vec<OsString>) -> Self {
        self.successor = Some(Successor { program, arguments });
        self
    }

    /// Takes over from the process that has started this one: uses its sockets, and tells it how the start ended.
    pub fn inherit(mut self, inherited: Option<Inherited>) -> Self {
        self.inherited = inherited;
        self
    }

    /// Whether the server is what this process is for. It then tells systemd, or another supervisor with the protocol of `sd_notify`,
    /// how it is doing, and feeds its watchdog. By default it doesn't.
    ///
    /// It also takes the sockets that the supervisor passes (`LISTEN_FDS`), in the place of those that it would bind for the same
    /// addresses. [`Builder::start`] removes these variables from the environment, so call it before the program has other threads.
    ///
    /// `sandbox` of the configuration restricts the whole process, and only then has an effect. It, too, must come before other threads.
    pub fn service(mut self, is_service: bool) -> Self {
        self.is_service = is_service;
        self
    }

    /// Whether a broken volume is an error. By default the server renames it, and creates a new one in its place.
    pub fn keep_broken(mut self, keeps: bool) -> Self {
        self.keeps_broken = keeps;
        self
    }

    /// Whether SIGINT and SIGTERM end the server: the first one gracefully, the second one at once. SIGHUP then reloads the
    /// configuration ([`Builder::reload_from`]), SIGUSR2 starts a process that takes over ([`Builder::successor`]), and SIGUSR1 doesn't
    /// kill the process. By default the server handles no signal.
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
    pub fn start(mut self) -> Result<Server, Error> {
        let mut inherited = self.inherited.take();
        let supervisor = Supervisor { is_told: self.is_service };
        let started = self.start_with(inherited.as_mut(), supervisor);
        match (&started, &inherited) {
            (Ok((_, has_admin)), Some(inherited)) => inherited.ready(*has_admin),
            (Err(error), Some(inherited)) => inherited.fail(&error.to_string()),
            (_, None) => {}
        }
        let (server, _) = started?;
        supervisor.ready("serving");
        Ok(server)
    }

    /// Also returns whether it has the administration's socket of the process before.
    fn start_with(self, inherited: Option<&mut Inherited>, supervisor: Supervisor) -> Result<(Server, bool), Error> {
        let is_successor = inherited.is_some();
        let config = match self.config {
            Some(config) => config,
            // This is an error: a configuration needs a site, which has no default.
            None => config::parse("").map_err(Error::Config)?,
        };
        let (mut inherited_sockets, inherited_admin, memory) = match inherited {
            Some(inherited) => {
                (std::mem::take(&mut inherited.sockets), inherited.admin.take(), inherited.memory.take())
            }
            None => (Vec::new(), None, None),
        };
        sandbox::admit(&config)?;
        let cache = match self.cache {
            Some(cache) => cache,
            None => volume::open(&config.cache, self.keeps_broken, memory)?,
        };
        let programs: Vec<_> = self.successor.iter().map(|successor| successor.program.as_path()).collect();
        sandbox::close(&config, self.is_service, &programs, &self.source_files)?;
        let mut activated = if self.is_service { Activated::from_environment()? } else { Activated::default() };
        let places = ListenPlace::all(&config.server);
        let workers = config.server.workers.as_ref().map_or_else(processors, |workers| workers.0 as usize);
        let clock = self.clock.unwrap_or_else(|| Arc::new(SystemClock));
        let fleet = config.fleet.as_ref().map(|table| Fleet::new(table.get_ref().durable));
        // The node writes its own purges to the log, not to the outbox. A program that has this server inside purges through the outbox.
        let programs = cache;
        let cache = if fleet.is_some() { programs.for_node() } else { programs.clone() };
        let (peers, mut peers_threads) = Peers::bind(&config, fleet.as_ref().map(|(fleet, _)| fleet), &clock)?.unzip();
        let mut shared = Shared::new(config, &cache, clock)?;
        (shared.peers, shared.fleet) = (peers.clone(), fleet.as_ref().map(|(fleet, _)| Arc::clone(fleet)));
        let second_level = Level::start(&mut shared)?;
        shared.open_logs()?;
        let last = (LastLines(Arc::clone(&shared.sinks)), LastSpans(Arc::clone(&shared.exporters)));
        let (config, store) = (Arc::clone(&shared.config), Arc::clone(&shared.pages.store));
        let (server, binding) = (&config.server, Binding::of(&config.server, workers));
        let sockets = Sockets::bind(&places, binding, &mut inherited_sockets, &mut activated)?;
        activated.check_all_taken()?;
        shared.begin_tls(https_port(&sockets.tls_addresses()), None)?;
        // The others belong to addresses that this process doesn't have.
        drop(inherited_sockets);
        let (workers, beginnings) = Workers::new(sockets, workers, server.limits.stream_bytes.0)?;
        let handle = Handle::new();
        let reloader = Arc::new(Reloader::new(shared, workers, (self.source, self.set_levels), supervisor));
        let upgrader = Arc::new(Upgrader::new(Arc::clone(&reloader), cache.clone(), self.successor, handle.clone()));
        let (admin, metrics) = bind_for_operators(server, &upgrader, &cache, (is_successor, inherited_admin))?;
        let has_admin = admin.as_ref().is_some_and(Admin::is_inherited);
        let (place, metrics_address) = (admin.as_ref().map(Admin::place), metrics.as_ref().map(Door::address));
        let follow = |(settings, fleet): (&Spanned<_>, _)| {
            super::fleet::start(settings.get_ref(), fleet, peers.as_deref(), &reloader, &cache)
        };
        let fleet = config.fleet.as_ref().zip(fleet).map(follow).transpose()?;
        let stop_peers = PeersThreads::start(peers_threads.as_mut(), peers.as_ref(), &reloader)?;
        let upkeep = Upkeep::start(store, config.cache.scrub.0, Arc::clone(&reloader.shared().metrics))?;
        let stops = (&handle, self.handles_signals, stop_peers);
        let listening = Listening::start(beginnings, &upgrader, (admin, metrics), stops)?;
        upgrader.own_files();
        config.log_warnings();
        let server = Server {
            admin: place,
            metrics: metrics_address,
            cache: programs,
            handle,
            listening,
            _peers: peers_threads,
            _fleet: fleet,
            _second_level: second_level,
            _upkeep: upkeep,
            _last: last,
            reloader,
        };
        Ok((server, has_admin))
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

    /// The addresses of the network on which it listens for HTTP, in the order of the configuration, with the real port instead of port 0.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.reloader.workers().addresses()
    }

    /// The same for HTTPS.
    pub fn tls_addresses(&self) -> Vec<SocketAddr> {
        self.reloader.workers().tls_addresses()
    }

    /// The Unix sockets on which it listens, in the order of the configuration.
    pub fn unix_sockets(&self) -> Vec<PathBuf> {
        self.reloader.workers().unix_sockets()
    }

    /// The place of its administration: the path of a socket, or a URL.
    pub fn admin(&self) -> Option<&str> {
        self.admin.as_deref()
    }

    /// The address for metrics (`metrics_listen`), with the real port.
    pub fn metrics(&self) -> Option<SocketAddr> {
        self.metrics
    }

    /// The restrictions of this process by its sandbox; `None` without one.
    pub fn sandbox(&self) -> Option<String> {
        crate::sandbox::closed().map(ToString::to_string)
    }

    /// Its present configuration, with every default filled in.
    pub fn config(&self) -> Arc<Config> {
        Arc::clone(&self.reloader.shared().config)
    }

    /// Puts another configuration in force, without losing a request. When this returns, every request that begins has it; requests
    /// in flight keep the one before. Settings that only a new process can take over stay as they are, and the result names them:
    /// the volume, the number of workers, and the administration.
    ///
    /// It blocks the thread until all workers have the configuration, which takes milliseconds.
    ///
    /// # Errors
    /// Each [`Error`] names what could not be opened or bound. [`Error::Draining`], once the server ends. Nothing has changed then.
    pub fn reload(&self, config: Config) -> Result<Reloaded, Error> {
        self.reloader.reload(config)
    }

    /// Its volume. The server sees every change that the program makes there.
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// A handle to end it from another thread.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Ends it gracefully: it accepts no more connections, and requests in flight have the time of `drain_timeout`. When this returns,
    /// the access log has the lines of all requests, and the addresses are free.
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

impl std::fmt::Debug for Builder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Builder").field("config", &self.config).finish_non_exhaustive()
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

/// Binds the administration and the address for metrics. `is_successor` says whether another process of this server may have the latter.
fn bind_for_operators(
    server: &config::Server,
    upgrader: &Arc<Upgrader>,
    cache: &Cache,
    (is_successor, inherited): (bool, Option<InheritedAdmin>),
) -> Result<(Option<Admin>, Option<Door>), Error> {
    let bind = |settings: &Spanned<_>| Admin::bind(settings.get_ref(), upgrader, cache, inherited);
    let admin = server.admin.as_ref().map(bind).transpose()?;
    upgrader.set_admin(admin.as_ref().map(Admin::socket).transpose().map_err(Error::Start)?);
    let bind = |address: &Spanned<_>| Door::bind(*address.get_ref(), is_successor, &upgrader.reloader);
    Ok((admin, server.metrics_listen.as_ref().map(bind).transpose()?))
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
