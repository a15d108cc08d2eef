//! The fleet: purges of this server reach others, and theirs reach this one, through a log on Redis.
//!
//! ```text
//! PURGE, administration ──> Fleet ──> eyewall-fleet-redis ──> apply ──> the volume
//!                             ^ eyewall-fleet-agent <── outbox <── purges of other programs
//! ```
//! The crate does the work on a thread of its own, so no hit waits for it. This folder gives it the settings, and the volume. Without
//! `[fleet]`, there is no such thread.

mod apply;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use eyewall::Cache;
use eyewall_fleet_agent::Passing;
use eyewall_fleet_agent::words::Purging;
use eyewall_fleet_redis::{Fleet, FleetThread, Orders, Settings};
use toml::Spanned;

use super::error::Error;
use super::peers::Peers;
use super::reload::Reloader;
use crate::config::fleet::Fleet as Table;
use apply::Applier;

/// This server as a node. Dropping it ends its threads, in this order.
pub(crate) struct Node {
    _passing: Passing,
    _thread: FleetThread,
}

/// Starts to follow the log, and to pass on what other programs purge in the volume.
///
/// # Errors
/// [`Error::Fleet`] for a file, [`Error::Start`] if the system gives no thread or runtime.
pub(crate) fn start(
    table: &Table,
    (fleet, orders): (Arc<Fleet>, Orders),
    peers: Option<&Peers>,
    reloader: &Arc<Reloader>,
    cache: &Cache,
) -> Result<Node, Error> {
    let settings = settings(table, peers.map(|peers| peers.url().to_owned())).map_err(Error::Fleet)?;
    let volume = Arc::new(Applier::new(reloader, cache, &settings.name));
    // Purges that wait in the outbox since before the start must keep foreign responses out as soon as the node follows the log.
    let passing = Passing::start(cache, fleet).map_err(Error::Start)?;
    let thread = FleetThread::start(&settings, orders, volume).map_err(Error::Start)?;
    Ok(Node { _passing: passing, _thread: thread })
}

fn settings(table: &Table, peer_url: Option<String>) -> io::Result<Settings> {
    let path = |path: &Option<Spanned<PathBuf>>| path.as_ref().map(|path| path.get_ref().clone());
    let word = |file: &Option<Spanned<PathBuf>>| {
        let text = path(file).map(std::fs::read_to_string).transpose()?;
        Ok::<_, io::Error>(text.map(|text| text.trim().to_owned()))
    };
    Ok(Settings {
        servers: table.redis.iter().map(|server| server.get_ref().clone()).collect(),
        name: table.name.0.clone(),
        node: table.node.as_ref().map(|name| name.0.clone()),
        password: word(&table.password_file)?,
        sentinel_password: word(&table.sentinel_password_file)?,
        authority: path(&table.ca_file).map(std::fs::read).transpose()?,
        min_replicas: table.min_replicas.0,
        durable: table.durable,
        max_blind: table.max_blind.get_ref().0,
        lines: table.lines.0,
        takes_foreign: table.peers.is_some() || table.second_level.is_some(),
        peer_url,
        everything: Purging::everything_softly().encode(),
    })
}
