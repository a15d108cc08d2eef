//! The address of a Redis server.

use std::fmt;
use std::str::FromStr;

use redis::IntoConnectionInfo as _;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The address of a Redis server, without a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedisUrl(String);

impl RedisUrl {
    /// As it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the connection has TLS.
    pub fn is_tls(&self) -> bool {
        self.0.starts_with("rediss:")
    }
}

impl FromStr for RedisUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = ["redis://", "rediss://", "redis+unix://"].iter().any(|scheme| text.starts_with(scheme));
        let info = known.then(|| text.into_connection_info().ok()).flatten().ok_or_else(|| {
            format!("`{text}` is not the address of a Redis server; give one such as redis://10.0.0.7:6379")
        })?;
        if info.redis_settings().password().is_some() {
            return Err("the address has a password; put it into a file, and name that by `password_file`".to_owned());
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for RedisUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for RedisUrl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl Serialize for RedisUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}
