//! An entry as the tools show it, for people and for programs.

use std::time::Duration;

use eyewall::Hit;
use serde::Serialize;

/// An entry without its value. A hit holds its bytes in place, so none is kept.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) key: Vec<u8>,
    pub(crate) state: State,
    pub(crate) value_bytes: usize,
    pub(crate) metadata_bytes: usize,
    pub(crate) age: Duration,
    pub(crate) ttl_left: Option<Duration>,
    pub(crate) usable_left: Option<Duration>,
    pub(crate) reason: Option<u16>,
    pub(crate) serial: u64,
    pub(crate) tags: Vec<String>,
}

/// The state of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    /// Valid.
    Fresh,
    /// Expired or soft purged, and still usable.
    Stale,
    /// A negative entry.
    Negative,
}

impl State {
    /// The state of a hit; `None` for a negative entry that has expired.
    pub(crate) fn of(hit: &Hit<'_>) -> Option<Self> {
        match (hit.reason(), hit.is_stale()) {
            (None, false) => Some(Self::Fresh),
            (None, true) => Some(Self::Stale),
            (Some(_), false) => Some(Self::Negative),
            (Some(_), true) => None,
        }
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Fresh => "fresh",
            Self::Stale => "stale",
            Self::Negative => "negative",
        }
    }
}

impl Entry {
    /// `None` for an entry that a get would no longer find.
    pub(crate) fn new(hit: &Hit<'_>) -> Option<Self> {
        Some(Self {
            key: hit.key().to_owned(),
            state: State::of(hit)?,
            value_bytes: hit.value().len(),
            metadata_bytes: hit.metadata().len(),
            age: hit.age(),
            ttl_left: hit.ttl_left(),
            usable_left: hit.usable_left(),
            reason: hit.reason(),
            serial: hit.serial(),
            tags: hit.tags().map(str::to_owned).collect(),
        })
    }

    /// An entry for programs: a key of UTF-8 is text, any other key is in hexadecimal digits.
    pub(crate) fn line(&self) -> Line<'_> {
        let key = std::str::from_utf8(&self.key).ok();
        Line {
            key,
            key_hex: key.is_none().then(|| hexadecimal(&self.key)),
            state: self.state,
            reason: self.reason,
            value_bytes: self.value_bytes,
            metadata_bytes: self.metadata_bytes,
            age_seconds: self.age.as_secs_f64(),
            ttl_left_seconds: self.ttl_left.map(|left| left.as_secs_f64()),
            usable_left_seconds: self.usable_left.map(|left| left.as_secs_f64()),
            serial: self.serial,
            tags: &self.tags,
        }
    }
}

/// One entry as a JSON object.
#[derive(Debug, Serialize)]
pub(crate) struct Line<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_hex: Option<String>,
    state: State,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<u16>,
    value_bytes: usize,
    metadata_bytes: usize,
    age_seconds: f64,
    ttl_left_seconds: Option<f64>,
    usable_left_seconds: Option<f64>,
    serial: u64,
    tags: &'a [String],
}

pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(value.into(), 16).unwrap_or_default();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}
