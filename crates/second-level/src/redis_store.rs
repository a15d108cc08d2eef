//! Objects on a Redis server. Their bytes together are bounded: the least popular ones make room.
//!
//! ```text
//! {NAME}:second:o:OBJECT   string   the object, which expires by itself
//! {NAME}:second:index      hash     object: its bytes, how often it was asked for, in which period, and when it expires
//! {NAME}:second:bytes      string   the bytes of all objects in the index
//! ```
//! Scripts make each step one step. The braces keep all keys in one slot of a cluster. The number of questions for an object is halved
//! in each period, so that yesterday's favourites give way.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use eyewall_fleet_redis::{Access, Connection as ServerConnection};
use redis::{ErrorKind, RedisError, RedisResult};
use tokio::sync::Mutex;

use crate::frame::Name;
use crate::script::Script;
use crate::settings::RedisSettings;
use crate::store::{Kept, StoreError};

/// The timeout of a command.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(5);
/// What Redis needs for an object beside its bytes: two keys, an expiry, and the index.
const OVERHEAD_BYTES: u64 = 400;
/// After each period, the popularity of an object is halved.
const PERIOD: Duration = Duration::from_mins(10);

pub(crate) struct RedisStore {
    settings: RedisSettings,
    access: Access,
    get: Script,
    put: Script,
    /// Gets and puts have connections of their own: a long object on its way to the server holds up no question.
    reads: Mutex<Connection>,
    writes: Mutex<Connection>,
}

/// A connection, if there is one, and the number of the server to connect to.
#[derive(Default)]
struct Connection {
    open: Option<ServerConnection>,
    server: usize,
    /// Counts the connections, so that only the first of many failed commands closes one.
    number: u64,
}

impl std::fmt::Debug for RedisStore {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_tuple("RedisStore").field(&self.settings).finish()
    }
}

impl RedisStore {
    pub(crate) fn new(settings: &RedisSettings) -> Self {
        let RedisSettings { password, sentinel_password, authority, name, .. } = settings.clone();
        let access = Access::new((password, sentinel_password), authority, format!("{{{name}}}:second:index"));
        let popularity = include_str!("popularity.lua");
        Self {
            settings: settings.clone(),
            access,
            get: Script::new(&[popularity, include_str!("get.lua")]),
            put: Script::new(&[popularity, include_str!("put.lua")]),
            reads: Mutex::default(),
            writes: Mutex::default(),
        }
    }

    pub(crate) async fn get(&self, name: &Name) -> Result<Option<Bytes>, StoreError> {
        let (mut connection, number) = self.connection(&self.reads).await?;
        let period = period();
        let arguments = [name.as_str().as_bytes(), period.as_bytes()];
        let found: RedisResult<Option<Vec<u8>>> = self.get.call(&mut connection, &self.keys(name), &arguments).await;
        match found {
            Ok(found) => Ok(found.map(Bytes::from)),
            Err(error) => Err(Self::failed(&self.reads, number, error).await),
        }
    }

    pub(crate) async fn put(&self, name: &Name, object: Bytes, ttl: Duration) -> Result<Kept, StoreError> {
        let bytes = object.len() as u64 + OVERHEAD_BYTES + self.settings.name.len() as u64;
        let numbers = [bytes, ttl.as_millis().max(1) as u64, self.settings.size].map(|number| number.to_string());
        let [bytes, ttl, size] = numbers.each_ref().map(String::as_bytes);
        let (period, prefix) = (period(), self.key("o:"));
        let arguments = [name.as_str().as_bytes(), period.as_bytes(), &object[..], bytes, ttl, size, prefix.as_bytes()];
        let (mut connection, number) = self.connection(&self.writes).await?;
        let kept: RedisResult<(bool, u64)> = self.put.call(&mut connection, &self.keys(name), &arguments).await;
        match kept {
            Ok((true, bytes)) => Ok(Kept::Stored(Some(bytes))),
            Ok((false, _)) => Ok(Kept::Refused),
            Err(error) => Err(Self::failed(&self.writes, number, error).await),
        }
    }

    fn key(&self, what: &str) -> String {
        format!("{{{}}}:second:{what}", self.settings.name)
    }

    /// The keys of a script about an object.
    fn keys(&self, name: &Name) -> [String; 3] {
        [self.key("o:") + name.as_str(), self.key("index"), self.key("bytes")]
    }

    /// The connection with its number. A new one if there is none: others wait for it meanwhile.
    async fn connection(&self, place: &Mutex<Connection>) -> RedisResult<(ServerConnection, u64)> {
        let mut place = place.lock().await;
        if let Some(open) = &place.open {
            return Ok((open.clone(), place.number));
        }
        let servers = &self.settings.servers;
        let Some(server) = servers.get(place.server % servers.len().max(1)) else {
            return Err(RedisError::from((ErrorKind::InvalidClientConfig, "there is no server")));
        };
        place.number += 1;
        // If this one fails, another one is next.
        place.server += 1;
        let open = self.access.connect(&self.access.find(server).await?, COMMAND_TIMEOUT).await?;
        place.server -= 1;
        place.open = Some(open.clone());
        Ok((open, place.number))
    }

    /// Closes a connection that is of no use any more.
    async fn failed(place: &Mutex<Connection>, number: u64, error: RedisError) -> StoreError {
        let is_replica = error.code() == Some("READONLY");
        if error.is_unrecoverable_error() || error.is_timeout() || error.redirect_node().is_some() || is_replica {
            let mut place = place.lock().await;
            if place.number == number {
                place.open = None;
                place.server += usize::from(is_replica);
            }
        }
        error.into()
    }
}

/// The number of the present period.
fn period() -> String {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (since_1970.as_secs() / PERIOD.as_secs()).to_string()
}
