//! The volume's settings in `Rocket.toml`, the environment or any other configuration of Rocket.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use eyewall_files::{FileCacheOptions, Freshness};
use rocket::data::ByteUnit;
use rocket::figment::Figment;
use rocket::figment::value::magic::RelativePathBuf;
use serde::Deserialize;
use serde::de::{Deserializer, Unexpected, Visitor};

/// Why the volume can't be used. Rocket doesn't launch then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The settings can't be read.
    #[error("the settings in the table `eyewall` are invalid: {0}")]
    Settings(Box<rocket::figment::Error>),
    /// The volume can't be opened or created.
    #[error("can't open the volume {}: {error}", path.as_ref().map_or("in memory".into(), |path| path.display().to_string()))]
    Volume {
        /// Its path; `None` for a volume in memory.
        path: Option<PathBuf>,
        /// The engine's error.
        #[source]
        error: eyewall::Error,
    },
    /// Rocket manages a `FileCache` already.
    #[error(
        "Rocket's state has a FileCache already; attach only one fairing of Eyewall, and don't manage a FileCache yourself"
    )]
    Managed,
}

/// The part of Rocket's profile that is read.
#[derive(Deserialize)]
struct Profile {
    #[serde(default)]
    eyewall: Settings,
}

/// The settings.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Settings {
    path: Option<RelativePathBuf>,
    size: Option<ByteUnit>,
    put_aside_broken: bool,
    verify_hits: bool,
    min_file_size: Option<ByteUnit>,
    max_file_size: Option<ByteUnit>,
    #[serde(deserialize_with = "freshness")]
    freshness: Option<Freshness>,
    pub(crate) precompressed: bool,
}

impl Settings {
    /// Reads the table, if there is one.
    pub(crate) fn of(figment: &Figment) -> Result<Self, Error> {
        // Extract from the root, so that errors name the whole key.
        let profile: Profile = figment.extract().map_err(|error| Error::Settings(Box::new(error)))?;
        Ok(profile.eyewall)
    }

    /// Opens or creates the volume. It waits for storage.
    pub(crate) fn open(&self) -> Result<eyewall::Cache, Error> {
        let mut options = eyewall::Options::new()
            .survive_sigbus(true)
            .put_aside_broken(self.put_aside_broken)
            .verify_hits(self.verify_hits);
        if let Some(size) = self.size {
            options = options.size(size.as_u64());
        }
        let path = self.path.as_ref().map(RelativePathBuf::relative);
        let opened = match &path {
            Some(path) => options.open(path),
            None => options.anonymous(),
        };
        opened.map_err(|error| Error::Volume { path, error })
    }

    /// Options of the file cache.
    pub(crate) fn file_options(&self) -> FileCacheOptions {
        let mut options = FileCacheOptions::new().precompressed(self.precompressed);
        if let Some(size) = self.min_file_size {
            options = options.min_bytes(size.as_u64());
        }
        if let Some(size) = self.max_file_size {
            options = options.max_bytes(size.as_u64());
        }
        if let Some(freshness) = self.freshness {
            options = options.freshness(freshness);
        }
        options
    }
}

/// Parses `"watched"` or a number of seconds.
fn freshness<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Freshness>, D::Error> {
    deserializer.deserialize_any(FreshnessVisitor).map(Some)
}

struct FreshnessVisitor;

impl Visitor<'_> for FreshnessVisitor {
    type Value = Freshness;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"watched\", or a number of seconds")
    }

    fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<Freshness, E> {
        match word {
            "watched" => Ok(Freshness::Watched),
            _ => Err(E::invalid_value(Unexpected::Str(word), &self)),
        }
    }

    fn visit_u64<E: serde::de::Error>(self, seconds: u64) -> Result<Freshness, E> {
        Ok(Freshness::Interval(Duration::from_secs(seconds)))
    }

    fn visit_i64<E: serde::de::Error>(self, seconds: i64) -> Result<Freshness, E> {
        let unsigned = u64::try_from(seconds).map_err(|_| E::invalid_value(Unexpected::Signed(seconds), &self))?;
        self.visit_u64(unsigned)
    }

    fn visit_f64<E: serde::de::Error>(self, seconds: f64) -> Result<Freshness, E> {
        let interval = Duration::try_from_secs_f64(seconds);
        interval.map(Freshness::Interval).map_err(|_| E::invalid_value(Unexpected::Float(seconds), &self))
    }
}
