//! Puts another configuration in force while the server runs, without losing a request.
//!
//! ```text
//! a configuration ──> what can't change is put back ──> Shared::renewed ──> sockets of new addresses
//!                                                         │ an error: nothing has changed
//!                                                         v
//!             each worker, on its own thread: a new `Common`, sockets added and removed
//!                                                         v
//!             connections take it at their next request; requests in flight keep the old one
//! ```
//! To let a reload change one more thing, put it into [`Shared`]. `Shared::renewed` checks and opens it before anything changes, and may
//! take it from the `Shared` before. Workers get it with their `Common`; `Service::new` makes the parts that belong to one thread, such
//! as connections to origins. New kinds of sockets to listen at go into `listen/sockets.rs`: `Workers::prepare` binds them first.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use serde::Serialize;
use serde_json::{Map, Value};

use super::listen::{Binding, ListenPlace, Workers};
use super::peers::Peers;
use super::sandbox;
use super::shared::Shared;
use super::supervisor::Supervisor;
use crate::config::log::LogLevels;
use crate::config::{Config, Problem};
use crate::serve::error::Error;

/// Where a reload by a signal or by the administration gets the configuration.
pub(crate) type Source = Box<dyn Fn() -> Result<Config, Vec<Problem>> + Send + Sync>;
/// Puts levels of the program's log in force.
pub(crate) type SetLevels = Box<dyn Fn(&LogLevels) + Send + Sync>;

/// The settings that need another process. A name without a dot is a whole table.
const FIXED: [&str; 8] = [
    "cache",
    "fleet",
    "server.workers",
    "server.socket_mode",
    "server.admin",
    "server.metrics_listen",
    "server.sandbox",
    "server.log.format",
];

/// What a reload has done.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Reloaded {
    /// The addresses on which the server listens now for HTTP, in the order of the configuration.
    pub addresses: Vec<SocketAddr>,
    /// The same for HTTPS.
    pub tls_addresses: Vec<SocketAddr>,
    /// The Unix sockets on which it listens now.
    pub unix_sockets: Vec<PathBuf>,
    /// The addresses and Unix sockets (`unix:PATH`) that it has closed, because the configuration doesn't have them any more.
    pub closed: Vec<String>,
    /// The settings that differ from the running ones, and that only a new process takes over, such as `cache.size`.
    pub not_reloaded: Vec<String>,
}

/// The running configuration, and how another one takes its place.
pub(crate) struct Reloader {
    shared: ArcSwap<Shared>,
    workers: Workers,
    source: Option<Source>,
    supervisor: Supervisor,
    /// `None`: the program has no levels that can change.
    set_levels: Option<SetLevels>,
    /// Held during a reload or an upgrade: there is one at a time.
    turn: Mutex<()>,
}

impl Reloader {
    pub(crate) fn new(
        shared: Shared,
        workers: Workers,
        (source, set_levels): (Option<Source>, Option<SetLevels>),
        supervisor: Supervisor,
    ) -> Self {
        let shared = ArcSwap::from_pointee(shared);
        Self { shared, workers, source, supervisor, set_levels, turn: Mutex::default() }
    }

    /// Changes the levels of the program's log, until the next reload. False: it has none that can change.
    pub(crate) fn set_levels(&self, levels: &LogLevels) -> bool {
        if let Some(set) = &self.set_levels {
            set(levels);
        }
        self.set_levels.is_some()
    }

    pub(crate) fn supervisor(&self) -> Supervisor {
        self.supervisor
    }

    /// Waits for the turn to reload or to upgrade.
    pub(crate) fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state by the running configuration.
    pub(crate) fn shared(&self) -> Arc<Shared> {
        self.shared.load_full()
    }

    pub(crate) fn workers(&self) -> &Workers {
        &self.workers
    }

    /// Reads the configuration again, puts it in force, and logs how that ended.
    ///
    /// # Errors
    /// [`Error::Config`], [`Error::NoSource`], and those of [`Reloader::reload`].
    pub(crate) async fn reload_from_source(self: Arc<Self>) -> Result<Reloaded, Error> {
        // The supervisor knows a server that ends by that alone.
        let supervisor = if self.workers.are_ending() { Supervisor { is_told: false } } else { self.supervisor };
        supervisor.reloading();
        let reloading = tokio::task::spawn_blocking(move || {
            let source = self.source.as_ref().ok_or(Error::NoSource)?;
            self.reload(source().map_err(Error::Config)?)
        });
        // It fails only if it has panicked, which is logged.
        let reloaded = reloading.await.unwrap_or_else(|error| Err(Error::Start(error.into())));
        supervisor.ready(if reloaded.is_ok() { "reloaded" } else { "not reloaded: the log says why" });
        match &reloaded {
            Ok(Reloaded { not_reloaded, .. }) if not_reloaded.is_empty() => {
                tracing::warn!("reloaded the configuration");
            }
            Ok(Reloaded { not_reloaded, .. }) => {
                let settings = not_reloaded.join(", ");
                tracing::warn!(settings, "reloaded the configuration, except for settings that need a restart");
            }
            Err(error) => {
                tracing::error!("the configuration was not reloaded, and the server goes on as before: {error}");
            }
        }
        reloaded
    }

    /// Puts a configuration in force. When this returns, every request that begins has it. It blocks for that time.
    ///
    /// # Errors
    /// Those of starting a server: each names what can't be opened or bound. [`Error::Draining`], if the server ends. Nothing has changed
    /// then.
    pub(crate) fn reload(&self, mut config: Config) -> Result<Reloaded, Error> {
        let _turn = self.turn();
        // Before anything is opened.
        if self.workers.are_ending() {
            return Err(Error::Draining);
        }
        let before = self.shared();
        let not_reloaded = keep_fixed(&before.config, &mut config);
        sandbox::admit(&config)?;
        let client = Peers::renewed_client(&config)?;
        let mut shared = before.renewed(config)?;
        shared.open_logs()?;
        let server = &shared.config.server;
        let prepared = self.workers.prepare(&ListenPlace::all(server), |workers| Binding::of(server, workers))?;
        shared.begin_tls(prepared.https_port(), Some(&before))?;
        let shared = Arc::new(shared);
        // Before the first request of it, so that no response of another node is judged by notes of the other configuration.
        self.put(&shared);
        let closed = self.workers.change(&shared, prepared).inspect_err(|_| self.put(&before))?;
        if let Some((peers, client)) = shared.peers.as_ref().zip(client) {
            peers.use_client(client);
        }
        before.retire(&shared);
        if let Some(levels) = shared.config.server.log.as_ref().and_then(|log| log.get_ref().level.as_ref()) {
            self.set_levels(levels);
        }
        shared.config.log_warnings();
        Ok(Reloaded {
            addresses: self.workers.addresses(),
            tls_addresses: self.workers.tls_addresses(),
            unix_sockets: self.workers.unix_sockets(),
            closed: closed.iter().map(ToString::to_string).collect(),
            not_reloaded,
        })
    }

    /// Makes this the state of the server's other parts. If lines of the fleet's log cover something else from now on, they are read again:
    /// each is noted under the lock of the notes, by the state of that moment.
    fn put(&self, shared: &Arc<Shared>) {
        let before = self.shared.swap(Arc::clone(shared));
        if let Some(fleet) = shared.fleet.as_ref().filter(|_| !shared.purges_as(&before)) {
            fleet.forget_notes();
        }
    }
}

/// Puts back the settings that can't change, and returns the names of those that would have.
fn keep_fixed(running: &Config, wanted: &mut Config) -> Vec<String> {
    let (old, new) = (tree(running), tree(wanted));
    wanted.cache.clone_from(&running.cache);
    wanted.fleet.clone_from(&running.fleet);
    wanted.server.workers = running.server.workers;
    wanted.server.socket_mode = running.server.socket_mode;
    wanted.server.admin.clone_from(&running.server.admin);
    wanted.server.metrics_listen.clone_from(&running.server.metrics_listen);
    wanted.server.sandbox = running.server.sandbox;
    let mut changed = Vec::new();
    for name in FIXED {
        let pointer = format!("/{}", name.replace('.', "/"));
        differing(name, old.pointer(&pointer), new.pointer(&pointer), &mut changed);
    }
    changed
}

fn tree(config: &Config) -> Value {
    // Every configuration can be written as JSON, as `eyewall check --json` does.
    serde_json::to_value(config).unwrap_or_default()
}

/// Adds the names of the settings below `name` that differ.
fn differing(name: &str, old: Option<&Value>, new: Option<&Value>, changed: &mut Vec<String>) {
    match (old, new) {
        (old, new) if old == new => {}
        (Some(Value::Object(old)), Some(Value::Object(new))) => {
            for key in keys(old, new) {
                differing(&format!("{name}.{key}"), old.get(key), new.get(key), changed);
            }
        }
        _ => changed.push(name.to_owned()),
    }
}

/// The keys of both.
fn keys<'a>(old: &'a Map<String, Value>, new: &'a Map<String, Value>) -> impl Iterator<Item = &'a String> {
    old.keys().chain(new.keys().filter(|key| !old.contains_key(*key)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse;

    #[test]
    fn settings_that_need_another_process_are_named_and_stay() {
        let site = "[[site]]\norigins = [\"http://a\"]\n";
        let running = parse(&format!("[server]\nworkers = 2\n[cache]\nsize = \"8M\"\n{site}")).unwrap();
        let text = format!(
            "[server]\nlisten = [\"127.0.0.1:1\"]\nworkers = 3\n[cache]\nsize = \"9M\"\nscrub = \"1h\"\n{site}"
        );
        let mut wanted = parse(&text).unwrap();
        let changed = keep_fixed(&running, &mut wanted);
        assert_eq!(changed, ["cache.scrub", "cache.size", "server.workers"]);
        assert_eq!(tree(&wanted)["cache"], tree(&running)["cache"]);
        assert_eq!(wanted.server.workers.map(|workers| workers.0), Some(2));
        assert_eq!(wanted.server.http_addresses()[0].get_ref().to_string(), "127.0.0.1:1", "it can change");
        assert!(keep_fixed(&running, &mut wanted).is_empty());
    }
}
