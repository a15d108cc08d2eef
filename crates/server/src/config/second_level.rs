//! `[fleet.second_level]`: the store that the nodes of a fleet share.

use std::path::PathBuf;
use std::time::Duration;

use eyewall_fleet_redis::RedisUrl;
use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::check_path::file;
use super::fleet::Name;
use super::problem::Fault;
use super::value::{Period, Size};

/// The bounds of `timeout`.
const TIMEOUT: std::ops::RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(10);

/// `[fleet.second_level]`
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct SecondLevel {
    /// `"redis"`: on Redis or Valkey; `"s3"`: in a bucket of S3, or of a store that speaks its protocol.
    ///
    /// Example: `"s3"`
    pub store: SharedStore,
    /// The longest time that a miss waits for the store. It never waits longer than the origin takes on average.
    ///
    /// Default: `"100ms"`; `"500ms"` with S3
    ///
    /// Example: `"20ms"`
    pub timeout: Option<Spanned<Period>>,
    /// Longer bodies are not shared.
    ///
    /// Example: `"4M"`
    pub object_bytes_max: Size,
    /// A file with a secret of at least 16 bytes, the same for all nodes. Nodes sign what they store, and refuse what isn't signed.
    ///
    /// Default: none
    ///
    /// Example: `"/etc/eyewall/second-level-secret"`
    pub secret_file: Option<Spanned<PathBuf>>,
    /// Redis: the servers to use, as in `redis` of `[fleet]`.
    ///
    /// Default: those of the purge log
    ///
    /// Example: `["redis://10.0.0.8:6379"]`
    pub redis: Vec<Spanned<RedisUrl>>,
    /// Redis: a file with its password.
    ///
    /// Default: that of `[fleet]`
    ///
    /// Example: `"/etc/eyewall/second-level-password"`
    pub password_file: Option<Spanned<PathBuf>>,
    /// Redis: the space for all objects together. The least popular ones make room.
    ///
    /// Example: `"2G"`
    pub size: Size,
    /// S3: the bucket.
    ///
    /// Default: none; S3 needs it
    ///
    /// Example: `"shop-pages"`
    pub bucket: Option<Name>,
    /// S3: the region of the bucket.
    ///
    /// Example: `"eu-central-1"`
    pub region: Name,
    /// S3: the address of the service.
    ///
    /// Default: that of AWS in the region
    ///
    /// Example: `"https://s3.example.org"`
    pub endpoint: Option<Spanned<String>>,
    /// S3: a file with two lines, the identifier of the access key and its secret.
    ///
    /// Default: as AWS's programs find them, in the environment or from the machine's role
    ///
    /// Example: `"/etc/eyewall/s3-credentials"`
    pub credentials_file: Option<Spanned<PathBuf>>,
    /// Certificates to trust for the store, in PEM.
    ///
    /// Default: those of the system
    ///
    /// Example: `"/etc/eyewall/store.pem"`
    pub ca_file: Option<Spanned<PathBuf>>,
}

/// The kind of a store that nodes share.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SharedStore {
    /// Redis or Valkey.
    #[default]
    Redis,
    /// A bucket.
    S3,
}

impl Default for SecondLevel {
    fn default() -> Self {
        Self {
            store: SharedStore::default(),
            timeout: None,
            object_bytes_max: Size(1 << 20),
            secret_file: None,
            redis: Vec::new(),
            password_file: None,
            size: Size(256 << 20),
            bucket: None,
            region: Name("us-east-1".to_owned()),
            endpoint: None,
            credentials_file: None,
            ca_file: None,
        }
    }
}

impl SecondLevel {
    /// The files that it names, with their settings.
    pub(crate) fn files(&self) -> [(&'static str, Option<&Spanned<PathBuf>>); 4] {
        [
            ("fleet.second_level.secret_file", self.secret_file.as_ref()),
            ("fleet.second_level.password_file", self.password_file.as_ref()),
            ("fleet.second_level.credentials_file", self.credentials_file.as_ref()),
            ("fleet.second_level.ca_file", self.ca_file.as_ref()),
        ]
    }

    /// The longest time that a miss waits.
    pub(crate) fn timeout(&self) -> Duration {
        let usual = match self.store {
            SharedStore::Redis => Duration::from_millis(100),
            SharedStore::S3 => Duration::from_millis(500),
        };
        self.timeout.as_ref().map_or(usual, |timeout| timeout.get_ref().0)
    }
}

/// Reports the mistakes of the table.
pub(super) fn check(found: &Spanned<SecondLevel>, faults: &mut Vec<Fault>) {
    let table = found.get_ref();
    if table.store == SharedStore::S3 && table.bucket.is_none() {
        let hint = "give `bucket`, such as bucket = \"shop-pages\"";
        faults.push(Fault::absence(found.span(), "[fleet.second_level] has no bucket", hint));
    }
    if let Some(timeout) = &table.timeout
        && !TIMEOUT.contains(&timeout.get_ref().0)
    {
        let message = format!("`timeout` is {}", timeout.get_ref());
        faults.push(Fault::new(timeout.span(), message, "give 1ms to 10s"));
    }
    if let Some(endpoint) = &table.endpoint
        && !["https://", "http://"].iter().any(|scheme| endpoint.get_ref().starts_with(scheme))
    {
        let message = format!("`{}` is not the address of a service", endpoint.get_ref());
        faults.push(Fault::new(endpoint.span(), message, "give one such as https://s3.example.org"));
    }
    for (setting, path) in table.files() {
        if let Some(path) = path {
            file(path, &format!("`{}`", setting.rsplit('.').next().unwrap_or_default()), faults);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::config::parse;

    #[test]
    fn mistakes_have_hints() {
        let mistakes = |table: &str| {
            let fleet = "[fleet]\nredis = [\"redis://a\"]\n[fleet.second_level]\n";
            let text = format!("[[site]]\norigins = [\"http://a\"]\n{fleet}{table}");
            parse(&text).err().unwrap_or_default().iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        for (table, words) in [
            ("store = \"s3\"", "has no bucket"),
            ("store = \"disk\"", "disk"),
            ("timeout = \"1m\"", "1ms to 10s"),
            ("endpoint = \"s3.example.org\"", "https://s3.example.org"),
            ("secret_file = \"/nowhere/x\"", "secret_file"),
            ("redis = [\"http://a\"]", "not the address of a Redis server"),
        ] {
            let found = mistakes(table);
            assert!(found.len() == 1 && found[0].contains(words), "{table}: {found:?}");
        }
        for table in ["", "size = \"1G\"\nobject_bytes_max = \"2M\"", "store = \"s3\"\nbucket = \"pages\""] {
            assert_eq!(mistakes(table), [""; 0]);
        }
    }
}
