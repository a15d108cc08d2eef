//! What a second level needs to know.

use std::fmt;
use std::time::Duration;

use eyewall_fleet_redis::RedisUrl;

/// A second level.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where the objects are.
    pub backend: Backend,
    /// The longest time that a question waits.
    pub timeout: Duration,
    /// The greatest length of a value.
    pub object_bytes_max: u64,
    /// Values are signed by this secret, and those without its signature are refused.
    pub secret: Option<Vec<u8>>,
}

/// Where the objects are.
#[derive(Debug, Clone)]
pub enum Backend {
    /// On Redis or Valkey.
    Redis(RedisSettings),
    /// On S3, or a store that speaks its protocol.
    S3(S3Settings),
}

/// A Redis server, and the place on it.
#[derive(Clone)]
pub struct RedisSettings {
    /// The addresses of the server and of those that may take over.
    pub servers: Vec<RedisUrl>,
    /// The password of all of them.
    pub password: Option<String>,
    /// The password of Sentinels.
    pub sentinel_password: Option<String>,
    /// Certificates to trust for `rediss://`, in PEM. `None`: those of the system.
    pub authority: Option<Vec<u8>>,
    /// The first part of all keys.
    pub name: String,
    /// The most bytes of all objects together.
    pub size: u64,
}

/// A bucket, and the place in it.
#[derive(Clone)]
pub struct S3Settings {
    /// The name of the bucket.
    pub bucket: String,
    /// The first part of all paths.
    pub prefix: String,
    /// The address of the service. `None`: that of AWS for the region.
    pub endpoint: Option<String>,
    /// The region.
    pub region: String,
    /// `None`: as AWS's own programs find them: in the environment, or from the machine's role.
    pub credentials: Option<Credentials>,
    /// Certificates to trust, in PEM, beside those of the system.
    pub authority: Option<Vec<u8>>,
}

/// An access key of S3.
#[derive(Clone)]
pub struct Credentials {
    /// Its identifier.
    pub access_key_id: String,
    /// Its secret.
    pub secret_access_key: String,
}

impl Credentials {
    /// Reads two lines: the identifier and the secret. `None`: the text is something else.
    pub fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace().map(str::to_owned);
        let credentials = Self { access_key_id: words.next()?, secret_access_key: words.next()? };
        words.next().is_none().then_some(credentials)
    }
}

// Secrets don't belong into logs.

impl fmt::Debug for RedisSettings {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { servers, name, size, .. } = self;
        to.debug_struct("RedisSettings").field("servers", servers).field("name", name).field("size", size).finish()
    }
}

impl fmt::Debug for S3Settings {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bucket, prefix, endpoint, region, .. } = self;
        let mut told = to.debug_struct("S3Settings");
        told.field("bucket", bucket).field("prefix", prefix).field("endpoint", endpoint).field("region", region);
        told.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_two_words() {
        let credentials = Credentials::parse("AKIA\n secret/+ \n").unwrap();
        assert_eq!((&*credentials.access_key_id, &*credentials.secret_access_key), ("AKIA", "secret/+"));
        for text in ["", "AKIA", "AKIA secret more"] {
            assert!(Credentials::parse(text).is_none(), "{text}");
        }
    }
}
