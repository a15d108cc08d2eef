//! What an agent is told: the keys of `[fleet]`, for programs that have no configuration file of a server.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use eyewall_fleet_redis::Settings;
use eyewall_second_level as second_level;

use crate::AgentSettings;
use crate::words::Purging;

/// The bounds of `max_blind`.
const MAX_BLIND: std::ops::RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_hours(24);
/// The bounds of `lines`.
const LINES: std::ops::RangeInclusive<u64> = 100..=100_000_000;
const REPLICAS_MAX: u64 = 16;
/// The longest time that a fill waits for the second level, and the longest object there.
const SECOND_LEVEL_TIMEOUT: Duration = Duration::from_millis(100);
const SECOND_LEVEL_OBJECT_MAX: u64 = 1 << 20;

/// The options of an agent. All have the defaults of `[fleet]`.
#[derive(Debug, Clone)]
pub struct Options {
    /// Redis servers that may have the purge log.
    pub redis: Vec<String>,
    /// The name of the fleet.
    pub name: String,
    /// The name of this node. `None`: that of the machine.
    pub node: Option<String>,
    /// A file with the password of Redis.
    pub password_file: Option<PathBuf>,
    /// A file with the password of Sentinels.
    pub sentinel_password_file: Option<PathBuf>,
    /// Certificates to trust for `rediss://`, in PEM. `None`: those of the system.
    pub ca_file: Option<PathBuf>,
    /// Replicas that must have a purge before it counts as written.
    pub min_replicas: u64,
    /// Redis never loses a purge that it has acknowledged.
    pub durable: bool,
    /// How long a node may be cut off from the log before all its entries become stale.
    pub max_blind: Duration,
    /// Purges that the log keeps for nodes that are away.
    pub lines: u64,
    /// The most bytes of objects that the volumes of the fleet share on the same Redis. `None`: they share none.
    pub second_level_size: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            redis: Vec::new(),
            name: "eyewall".to_owned(),
            node: None,
            password_file: None,
            sentinel_password_file: None,
            ca_file: None,
            min_replicas: 0,
            durable: false,
            max_blind: Duration::from_secs(10),
            lines: 100_000,
            second_level_size: None,
        }
    }
}

/// A mistake in the options.
#[derive(Debug, thiserror::Error)]
pub enum OptionsError {
    /// No Redis server is named.
    #[error("no Redis server is given for the purge log; give one such as redis://10.0.0.7:6379")]
    NoRedis,
    /// An address is wrong.
    #[error("{0}")]
    Redis(String),
    /// A name has other signs, or is too long.
    #[error("`{0}` is not a name; give up to 64 letters, digits, `-`, `_` and `.`")]
    Name(String),
    /// A number is out of range.
    #[error("{what} is out of range; give {range}")]
    OutOfRange {
        /// The option.
        what: &'static str,
        /// What it may be.
        range: &'static str,
    },
    /// A file can't be read.
    #[error("can't read {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl Options {
    /// The settings of a node. Reads the files.
    ///
    /// # Errors
    /// [`OptionsError`].
    pub fn settings(&self) -> Result<AgentSettings, OptionsError> {
        if self.redis.is_empty() {
            return Err(OptionsError::NoRedis);
        }
        for name in [&self.name].into_iter().chain(&self.node) {
            let is_part = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '-' | '_' | '.');
            if !(1..=64).contains(&name.len()) || !name.chars().all(is_part) {
                return Err(OptionsError::Name(name.clone()));
            }
        }
        let in_range = |is_so: bool, what, range| is_so.then_some(()).ok_or(OptionsError::OutOfRange { what, range });
        in_range(MAX_BLIND.contains(&self.max_blind), "max_blind", "1s to 24h")?;
        in_range(LINES.contains(&self.lines), "lines", "100 to 100000000")?;
        in_range(self.min_replicas <= REPLICAS_MAX, "min_replicas", "0 to 16")?;
        let servers = self.redis.iter().map(|url| url.parse().map_err(OptionsError::Redis));
        let word = |file: &Option<PathBuf>| {
            let bytes = file.as_deref().map(read).transpose()?;
            Ok::<_, OptionsError>(bytes.map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned()))
        };
        let node = Settings {
            servers: servers.collect::<Result<_, _>>()?,
            name: self.name.clone(),
            node: self.node.clone(),
            password: word(&self.password_file)?,
            sentinel_password: word(&self.sentinel_password_file)?,
            authority: self.ca_file.as_deref().map(read).transpose()?,
            min_replicas: self.min_replicas,
            durable: self.durable,
            max_blind: self.max_blind,
            lines: self.lines,
            everything: Purging::everything_softly().encode(),
            takes_foreign: self.second_level_size.is_some(),
            peer_url: None,
        };
        let second_level = self.second_level_size.map(|size| second_level(&node, size));
        Ok(AgentSettings { node, second_level })
    }
}

/// The store on the Redis of the log.
fn second_level(node: &Settings, size: u64) -> second_level::Settings {
    second_level::Settings {
        backend: second_level::Backend::Redis(second_level::RedisSettings {
            servers: node.servers.clone(),
            password: node.password.clone(),
            sentinel_password: node.sentinel_password.clone(),
            authority: node.authority.clone(),
            name: node.name.clone(),
            size,
        }),
        timeout: SECOND_LEVEL_TIMEOUT,
        object_bytes_max: SECOND_LEVEL_OBJECT_MAX,
        secret: None,
    }
}

fn read(path: &Path) -> Result<Vec<u8>, OptionsError> {
    std::fs::read(path).map_err(|source| OptionsError::File { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_have_hints() {
        let good = || Options { redis: vec!["redis://a".to_owned()], ..Options::default() };
        assert!(good().settings().is_ok());
        for (options, words) in [
            (Options::default(), "no Redis server"),
            (Options { redis: vec!["http://a".to_owned()], ..good() }, "not the address of a Redis server"),
            (Options { name: "a b".to_owned(), ..good() }, "not a name"),
            (Options { node: Some(String::new()), ..good() }, "not a name"),
            (Options { max_blind: Duration::ZERO, ..good() }, "1s to 24h"),
            (Options { lines: 1, ..good() }, "lines is out of range"),
            (Options { min_replicas: 17, ..good() }, "0 to 16"),
            (Options { password_file: Some("/nowhere/x".into()), ..good() }, "can't read /nowhere/x"),
        ] {
            let error = options.settings().err().unwrap().to_string();
            assert!(error.contains(words), "{options:?}: {error}");
        }
    }
}
