//! `[fleet]`: the purge log that this server shares with others.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use eyewall_fleet_redis::RedisUrl;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use toml::Spanned;

use super::check_path::file;
use super::problem::Fault;
use super::value::{Period, Within};

/// The bounds of `max_blind`.
const MAX_BLIND: std::ops::RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_hours(24);

/// `[fleet]`
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Fleet {
    /// Redis servers that may have the purge log: one, or one with its replicas. Eyewall uses the first that can be written to.
    /// `rediss://` is with TLS, `redis+unix:///path` a Unix socket. `redis+sentinel://host/mymaster` is a Sentinel, and
    /// `redis+cluster://host:6379` a server of a cluster.
    ///
    /// Default: none; it is required
    ///
    /// Example: `["redis://10.0.0.7:6379"]`
    pub redis: Vec<Spanned<RedisUrl>>,
    /// The name of the fleet. Servers with the same name at the same Redis purge together.
    ///
    /// Example: `"shop"`
    pub name: Name,
    /// The name of this node, for `eyewall fleet`.
    ///
    /// Default: the name of the machine
    ///
    /// Example: `"web-1"`
    pub node: Option<Name>,
    /// A file with the password of Redis.
    ///
    /// Default: none
    ///
    /// Example: `"/etc/eyewall/redis-password"`
    pub password_file: Option<Spanned<PathBuf>>,
    /// A file with the password of Sentinels.
    ///
    /// Default: none
    ///
    /// Example: `"/etc/eyewall/sentinel-password"`
    pub sentinel_password_file: Option<Spanned<PathBuf>>,
    /// Certificates to trust for `rediss://`, in PEM.
    ///
    /// Default: those of the system
    ///
    /// Example: `"/etc/eyewall/redis.pem"`
    pub ca_file: Option<Spanned<PathBuf>>,
    /// Replicas that must have a purge before it counts as written.
    ///
    /// Example: `1`
    pub min_replicas: Within<0, 16>,
    /// Redis never loses a purge that it has acknowledged, also if a replica takes over or the server restarts. Otherwise Eyewall
    /// revalidates everything then.
    ///
    /// Example: `true`
    pub durable: bool,
    /// How long a node may be cut off from the log before it revalidates everything that it has stored.
    ///
    /// Example: `"30s"`
    pub max_blind: Spanned<Period>,
    /// Purges that the log keeps for nodes that are away. Nodes that miss more revalidate everything.
    ///
    /// Example: `1000000`
    pub lines: Within<100, 100_000_000>,
}

impl Default for Fleet {
    fn default() -> Self {
        Self {
            redis: Vec::new(),
            name: Name("eyewall".to_owned()),
            node: None,
            password_file: None,
            sentinel_password_file: None,
            ca_file: None,
            min_replicas: Within(0),
            durable: false,
            max_blind: Spanned::new(0..0, Period(Duration::from_secs(10))),
            lines: Within(100_000),
        }
    }
}

/// A name of letters, digits, `-`, `_` and `.`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name(pub String);

impl FromStr for Name {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_name = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '-' | '_' | '.');
        if (1..=64).contains(&text.len()) && text.chars().all(is_name) {
            return Ok(Self(text.to_owned()));
        }
        Err(format!("`{text}` is not a name; give up to 64 letters, digits, `-`, `_` and `.`"))
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// Reports the mistakes of the table.
pub(super) fn check(found: &Spanned<Fleet>, faults: &mut Vec<Fault>) {
    let fleet = found.get_ref();
    if fleet.redis.is_empty() {
        let hint = "give `redis`, the addresses of the servers, such as redis = [\"redis://10.0.0.7:6379\"]";
        faults.push(Fault::absence(found.span(), "[fleet] has no Redis server for its purge log", hint));
    }
    if !MAX_BLIND.contains(&fleet.max_blind.get_ref().0) {
        let message = format!("`max_blind` is {}", fleet.max_blind.get_ref());
        faults.push(Fault::new(fleet.max_blind.span(), message, "give 1s to 24h"));
    }
    if let Some(path) = &fleet.password_file {
        file(path, "the password of Redis", faults);
    }
    if let Some(path) = &fleet.sentinel_password_file {
        file(path, "the password of Sentinels", faults);
        if !fleet.redis.iter().any(|url| url.get_ref().is_sentinel()) {
            let hint = "use redis+sentinel:// in `redis`, or remove the key";
            faults.push(Fault::absence(path.span(), "`sentinel_password_file` of [fleet] has no effect", hint));
        }
    }
    if let Some(path) = &fleet.ca_file {
        file(path, "the certificates for Redis", faults);
        if !fleet.redis.iter().any(|url| url.get_ref().is_tls()) {
            let hint = "use rediss:// in `redis`, or remove the key";
            faults.push(Fault::absence(path.span(), "`ca_file` of [fleet] has no effect without TLS", hint));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::config::parse;

    fn mistakes(fleet: &str) -> Vec<String> {
        let text = format!("[[site]]\norigins = [\"http://a\"]\n[fleet]\n{fleet}");
        parse(&text).err().unwrap_or_default().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn mistakes_have_hints() {
        for (fleet, words) in [
            ("", "no Redis server"),
            ("redis = []", "no Redis server"),
            ("redis = [\"http://a\"]", "not the address of a Redis server"),
            ("redis = [\"redis://user:secret@a\"]", "put it into a file"),
            ("redis = [\"redis://a\"]\nname = \"a b\"", "not a name"),
            ("redis = [\"redis://a\"]\nmax_blind = \"100ms\"", "1s to 24h"),
            ("redis = [\"redis://a\"]\npassword_file = \"/nowhere/x\"", "password of Redis"),
            ("redis = [\"redis://a\"]\nsentinel_password_file = \"/etc/hostname\"", "has no effect"),
            ("redis = [\"redis+sentinel://a\"]", "redis+sentinel://10.0.0.7/mymaster"),
            ("redis = [\"redis+cluster://a/3\"]", "only database 0"),
            ("redis = [\"redis://a\"]\nca_file = \"/etc/hostname\"", "no effect without TLS"),
        ] {
            let found = mistakes(fleet);
            assert!(found.len() == 1 && found[0].contains(words), "{fleet}: {found:?}");
        }
        assert_eq!(
            mistakes("redis = [\"redis://user@a:1/2\", \"rediss://b\", \"redis+unix:///run/redis.sock\"]"),
            [""; 0]
        );
    }
}
