//! The address of a Redis server, or of something that names one.

use std::fmt;
use std::str::FromStr;

use redis::{ConnectionInfo, IntoConnectionInfo as _};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

const SENTINEL_PORT: u16 = 26379;

/// The address of a Redis server, without a password.
///
/// | address | leads to |
/// |---|---|
/// | `redis://HOST:PORT/DATABASE` | a server |
/// | `redis+unix:///PATH` | a server at a Unix socket |
/// | `redis+sentinel://HOST:PORT/MASTER/DATABASE` | a Sentinel, which knows the server by the name MASTER |
/// | `redis+cluster://HOST:PORT` | any server of a cluster |
///
/// `rediss` in the place of `redis` is with TLS, also for the server that is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedisUrl {
    text: String,
    place: Place,
    /// The same place as an address that the library reads.
    plain: String,
}

/// The thing at the address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    Server,
    Sentinel {
        /// The name that Sentinels give to the server.
        master: String,
    },
    Cluster,
}

impl RedisUrl {
    /// As it is written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the connection has TLS.
    pub fn is_tls(&self) -> bool {
        self.text.starts_with("rediss")
    }

    /// Whether a Sentinel is there.
    pub fn is_sentinel(&self) -> bool {
        matches!(self.place, Place::Sentinel { .. })
    }

    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    /// # Errors
    /// None, since it was read before.
    pub(crate) fn info(&self) -> redis::RedisResult<ConnectionInfo> {
        self.plain.as_str().into_connection_info()
    }
}

impl FromStr for RedisUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{text}` is not the address of a Redis server; give one such as redis://10.0.0.7:6379, \
                 redis+sentinel://10.0.0.7/mymaster or redis+cluster://10.0.0.7:6379"
            )
        };
        let (scheme, rest) = text.split_once("://").ok_or_else(wrong)?;
        let (place, plain) = match scheme {
            "redis" | "rediss" | "redis+unix" => (Place::Server, text.to_owned()),
            "redis+cluster" | "rediss+cluster" => {
                (Place::Cluster, format!("{}://{rest}", scheme.trim_end_matches("+cluster")))
            }
            "redis+sentinel" | "rediss+sentinel" => {
                let (sentinel, path) = rest.split_once('/').ok_or_else(wrong)?;
                let (master, database) = path.split_once('/').unwrap_or((path, ""));
                if master.is_empty() {
                    return Err(wrong());
                }
                let scheme = scheme.trim_end_matches("+sentinel");
                let plain = format!("{scheme}://{}/{database}", with_port(sentinel));
                (Place::Sentinel { master: master.to_owned() }, plain)
            }
            _ => return Err(wrong()),
        };
        let info = plain.as_str().into_connection_info().map_err(|_| wrong())?;
        if info.redis_settings().password().is_some() {
            return Err("the address has a password; put it into a file, and name that by `password_file`".to_owned());
        }
        if place == Place::Cluster && info.redis_settings().db() != 0 {
            return Err(format!("`{text}` names a database, and a cluster has only database 0"));
        }
        Ok(Self { text: text.to_owned(), place, plain })
    }
}

/// The host and port of a Sentinel, which has a port of its own by default.
fn with_port(host: &str) -> String {
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok() && !host.ends_with(']'));
    if has_port { host.to_owned() } else { format!("{host}:{SENTINEL_PORT}") }
}

impl fmt::Display for RedisUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for RedisUrl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl Serialize for RedisUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_all_kinds_are_read() {
        let sentinel = |master: &str| Place::Sentinel { master: master.to_owned() };
        for (text, place, address, database) in [
            ("redis://a", Place::Server, "a:6379", 0),
            ("rediss://user@a:1/2", Place::Server, "a:1", 2),
            ("redis+sentinel://a/mymaster", sentinel("mymaster"), "a:26379", 0),
            ("redis+sentinel://a:5/mymaster/3", sentinel("mymaster"), "a:5", 3),
            ("rediss+sentinel://[::1]/mymaster", sentinel("mymaster"), "[::1]:26379", 0),
            ("redis+cluster://a:7000", Place::Cluster, "a:7000", 0),
            ("rediss+cluster://a:7000", Place::Cluster, "a:7000", 0),
        ] {
            let url: RedisUrl = text.parse().unwrap();
            let info = url.info().unwrap();
            assert_eq!((url.place(), info.redis_settings().db()), (&place, database), "{text}");
            assert_eq!(info.addr().to_string().replace("::1:", "[::1]:"), address, "{text}");
            assert_eq!((url.to_string().as_str(), url.is_tls()), (text, text.starts_with("rediss")));
        }
        for text in ["a", "http://a", "redis+sentinel://a", "redis+sentinel://a/", "redis+cluster://a/3", "redis://"] {
            assert!(text.parse::<RedisUrl>().is_err(), "{text}");
        }
    }
}
