//! The second level: responses that the nodes of a fleet share in a store (`eyewall-second-level`).
//!
//! ```text
//! a miss ──> proxy/inbound ──ask──> record ──> judged by the notes of the fleet ──> stored like a response of the origin
//! a fill of the origin is stored ──> offering: once it was asked for again ──> the store
//! ```
//! A node that doesn't follow the purge log neither asks nor offers.

mod offering;
mod record;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use eyewall_fleet::Subject;
use eyewall_fleet_redis::Fleet;
use eyewall_http::message::Exchange;
use eyewall_http::vary_index::Variant;
use eyewall_page_cache::carried::Carried;
use eyewall_second_level::{
    Backend, Credentials, RedisSettings, S3Settings, SecondLevel, SecondLevelThread, Settings, Status,
};
use http::HeaderMap;
use toml::Spanned;

use super::error::Error;
use super::shared::Shared;
use crate::config::fleet::Fleet as Table;
use crate::config::second_level::{SecondLevel as LevelTable, SharedStore};
use offering::Offering;
#[cfg(feature = "seams")]
pub(crate) use record::reread as reread_record;
use record::{Record, Shared as Found, variant_key};

/// The shortest secret.
const SECRET_BYTES_MIN: usize = 16;

/// The second level of this node.
pub(crate) struct Level {
    store: SecondLevel,
    /// The purge log, which says what may be taken.
    fleet: Arc<Fleet>,
}

/// Its threads. Dropping this ends them, in this order.
pub(crate) struct LevelThreads {
    _offering: Offering,
    _store: SecondLevelThread,
}

/// The response that a request wants.
pub(crate) struct Wanted<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) address: &'a str,
    pub(crate) fields: &'a HeaderMap,
}

impl Level {
    /// Starts the second level of the configuration, if it has one.
    ///
    /// # Errors
    /// [`Error::Fleet`] for a file, [`Error::SecondLevel`] for settings that the store refuses.
    pub(crate) fn start(shared: &mut Shared) -> Result<Option<LevelThreads>, Error> {
        let table = shared.config.fleet.as_ref().map(Spanned::get_ref);
        let tables = table.and_then(|table| Some((table, table.second_level.as_ref()?.get_ref())));
        let Some(((table, level), fleet)) = tables.zip(shared.fleet.clone()) else { return Ok(None) };
        let settings = settings(table, level).map_err(Error::Fleet)?;
        let (store, thread) =
            SecondLevelThread::start(&settings).map_err(|error| Error::SecondLevel(error.to_string()))?;
        let level = Arc::new(Self { store, fleet });
        let offering = Offering::start(&level, &shared.pages).map_err(Error::Start)?;
        shared.second_level = Some(level);
        Ok(Some(LevelThreads { _offering: offering, _store: thread }))
    }

    /// The response for a request. `None`: there is none, or it isn't right any more.
    pub(crate) async fn ask(&self, wanted: Wanted<'_>) -> Option<(Carried, Bytes)> {
        let Wanted { key, address, fields } = wanted;
        self.fleet.as_of()?;
        let found = match self.read(key).await? {
            Record::Response(shared) => shared,
            Record::Varies(names) => match self.read(&variant_key(key, &Variant::of(&names, fields))).await? {
                Record::Response(shared) if shared.carried.vary == names => shared,
                Record::Response(_) | Record::Varies(_) => return None,
            },
        };
        let Found { carried, body } = *found;
        if carried.terms.fresh_for(SystemTime::now()).is_zero() {
            return None;
        }
        let subject = Subject { address, key, tags: &carried.tags };
        if !self.fleet.allows(&carried.as_of, subject) {
            self.store.was_outdated();
            return None;
        }
        Some((carried, body))
    }

    async fn read(&self, key: &[u8]) -> Option<Record> {
        let requested = SystemTime::now();
        let value = self.store.ask(key).await?;
        Record::read(&value, Exchange { requested, received: SystemTime::now() })
    }

    /// How long the origin took for a response.
    pub(crate) fn origin_took(&self, took: Duration) {
        self.store.origin_took(took);
    }

    pub(crate) fn status(&self) -> Status {
        self.store.status()
    }
}

fn settings(fleet: &Table, level: &LevelTable) -> io::Result<Settings> {
    let read = |path: &Spanned<PathBuf>| std::fs::read(path.get_ref());
    let text = |path: &Spanned<PathBuf>| std::fs::read_to_string(path.get_ref()).map(|text| text.trim().to_owned());
    let secret = level.secret_file.as_ref().map(text).transpose()?;
    if secret.as_ref().is_some_and(|secret| secret.len() < SECRET_BYTES_MIN) {
        return Err(io::Error::other(format!("`secret_file` has less than {SECRET_BYTES_MIN} bytes")));
    }
    let authority = level.ca_file.as_ref().map(read).transpose()?;
    let backend = match level.store {
        SharedStore::Redis => {
            let is_own = !level.redis.is_empty();
            let servers = if is_own { &level.redis } else { &fleet.redis };
            let password = level.password_file.as_ref().or(fleet.password_file.as_ref());
            let fleets = fleet.ca_file.as_ref().map(read).transpose()?;
            Backend::Redis(RedisSettings {
                servers: servers.iter().map(|server| server.get_ref().clone()).collect(),
                password: password.map(text).transpose()?,
                sentinel_password: fleet.sentinel_password_file.as_ref().map(text).transpose()?,
                authority: authority.or(fleets),
                name: fleet.name.0.clone(),
                size: level.size.0,
            })
        }
        SharedStore::S3 => Backend::S3(S3Settings {
            bucket: level.bucket.as_ref().map(|bucket| bucket.0.clone()).unwrap_or_default(),
            prefix: fleet.name.0.clone(),
            endpoint: level.endpoint.as_ref().map(|endpoint| endpoint.get_ref().clone()),
            region: level.region.0.clone(),
            credentials: level.credentials_file.as_ref().map(credentials).transpose()?,
            authority,
        }),
    };
    Ok(Settings {
        backend,
        timeout: level.timeout(),
        object_bytes_max: level.object_bytes_max.0,
        secret: secret.map(String::into_bytes),
    })
}

fn credentials(path: &Spanned<PathBuf>) -> io::Result<Credentials> {
    let text = std::fs::read_to_string(path.get_ref())?;
    let wrong =
        || io::Error::other("`credentials_file` needs two lines: the identifier of the access key, and its secret");
    Credentials::parse(&text).ok_or_else(wrong)
}
